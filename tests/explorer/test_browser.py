"""The explorer as a person uses it, in a real browser: type, move, compare, save, copy the link and open it again."""

from __future__ import annotations

import contextlib
import csv
import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from farfield.theory.verdict.convergence import check

CHROMIUM = Path("/usr/bin/chromium")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is not installed")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
HOSTILE = json.loads((Path(__file__).parents[1] / "oracles" / "hostile.json").read_text(encoding="utf-8"))
PATIENCE = 120_000  # milliseconds
playwright.expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser, explorer):
    """A page of the explorer; at the end it has asked no other host and reported no error."""
    context = browser.new_context(
        viewport={"width": 1300, "height": 900},
        permissions=["clipboard-read", "clipboard-write"],
        accept_downloads=True,
    )
    context.set_default_timeout(PATIENCE)
    opened = context.new_page()
    asked, errors = [], []
    opened.on("request", lambda request: asked.append(request.url))
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.on("console", lambda message: errors.append(message.text) if "Content Security" in message.text else None)
    yield opened
    context.close()
    assert errors == []
    assert all(url.startswith((explorer.address, "blob:", "data:")) for url in asked), asked


def visit(page, explorer, state=""):
    page.goto("about:blank")
    page.goto(explorer.address + state)
    page.wait_for_selector("#entries .badge, #entries .error:not([hidden])")
    return page


def entry(page, number=1):
    """The upper part of an encoding: formula, verdict, sliders."""
    return page.locator("#entries article").nth(number - 1)


def card(page, number=1):
    """Its lower part: proof and numbers."""
    return page.locator("#cards article").nth(number - 1)


def formula(page, number=1):
    return entry(page, number).get_by_label("Formula of the bias r(t), or a name")


def expect(locator):
    return playwright.expect(locator)


def clipboard(page):
    return page.evaluate("navigator.clipboard.readText()")


def test_what_is_shown_at_once(page, explorer):
    visit(page, explorer, "#f=-2*log(t%2B1)")
    expect(entry(page).locator(".badge")).to_have_text("converges")
    expect(entry(page).locator(".reach")).to_contain_text("61 tokens hold all but a share 0.01 of the weight")
    expect(entry(page).locator(".reach")).to_contain_text("1.6449340668482264365 ± 2.79e-20")
    one = card(page)
    expect(one.locator("tbody tr", has_text="1e-3").locator("td").first).to_have_text("608")
    expect(one.locator(".proof ol math").first).to_be_visible()
    expect(one.locator(".window")).to_contain_text("1,325,659 tokens")
    expect(one.locator(".heat svg path").first).to_be_attached()
    for name in ("receptive-field", "partial-sums", "weights"):
        expect(page.locator(f"#figure-{name} svg path").first).to_be_attached()


def test_type_a_formula(page, explorer):
    visit(page, explorer, "#f=alibi")
    field = formula(page)
    field.fill("-sqrt(t)")
    expect(entry(page).locator(".badge")).to_have_text("converges")
    expect(entry(page).locator(".typeset math msqrt")).to_be_visible()
    assert "f=-sqrt%28t%29" in page.url
    field.fill("-log(t + 1)")
    expect(entry(page).locator(".badge")).to_have_text("diverges")
    field.fill("-log(t")
    expect(entry(page).locator(".error")).to_contain_text("column")
    field.fill("-2*log(t)")
    expect(entry(page).locator(".error")).to_contain_text("--from 1")
    entry(page).get_by_role("button", name="Start at t = 1").click()
    expect(entry(page).locator(".badge")).to_have_text("converges")
    expect(card(page).get_by_label("first distance")).to_have_value("1")


def test_another_spelling_is_read_as_what_was_meant_and_said(page, explorer):
    visit(page, explorer)
    formula(page).fill("−2·ln(1 + t²)")
    formula(page).press("Enter")
    expect(entry(page)).to_contain_text("read '−' as '-', '·' as '*', 'ln' as 'log', '²' as '**2'")
    expect(entry(page).locator(".badge")).to_have_text("converges")


def test_pick_from_the_zoo_and_move_the_sliders(page, explorer):
    visit(page, explorer, "#f=type1")
    entry(page).get_by_label("Pick from the zoo").select_option("kerple-log")
    expect(card(page).locator("summary", has_text="In general")).to_contain_text("converges if and only if p > 1")
    expect(entry(page).locator(".badge")).to_have_text("diverges")  # the middle of its start is exactly the border
    slider = entry(page).get_by_label("p", exact=True)
    slider.focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    assert "set=p%3D1.0" in page.url
    expect(entry(page).locator(".badge")).to_have_text("converges")
    entry(page).get_by_label("exact value of p").fill("1")
    entry(page).get_by_label("exact value of p").press("Enter")
    expect(entry(page).locator(".badge")).to_have_text("diverges")


def test_the_head_chooses_the_slope(page, explorer):
    visit(page, explorer, "#f=alibi")
    chosen = card(page).locator("tr.chosen td").first
    expect(chosen).to_have_text("1,179")
    page.get_by_label("this head").press("Home")
    expect(chosen).to_have_text("10")
    expect(entry(page).get_by_label("exact value of k")).to_have_value("1/2")
    card(page).locator("summary", has_text="All heads").click()
    expect(card(page).locator(".headsPlace tbody tr")).to_have_count(8)
    expect(card(page).locator(".headsPlace tbody tr").nth(7)).to_contain_text("1,179")


def test_compare_side_by_side(page, explorer):
    visit(page, explorer, "#f=type1-paper")
    page.get_by_role("button", name="Add an encoding").click()
    page.keyboard.type("type2-paper")  # the new field has the focus, and its text is selected
    expect(page.locator("#entries article")).to_have_count(2)
    expect(entry(page, 2).locator(".badge")).to_have_text("converges")
    expect(page.locator("#pairs summary")).to_contain_text("type1-paper sees further")
    expect(page.locator("#legend")).to_contain_text("type2-paper")
    entry(page, 2).get_by_label("Remove this encoding").click()
    expect(page.locator("#entries article")).to_have_count(1)
    expect(page.locator("#pairs")).to_be_hidden()
    page.go_back()
    expect(page.locator("#entries article")).to_have_count(2)


def test_a_curve_can_be_hidden_and_colours_stay(page, explorer):
    visit(page, explorer, "#f=alibi&f=type1&f=type2")
    colours = "[...document.querySelectorAll('#legend path:first-child')].map((e) => e.getAttribute('stroke'))"
    expect(page.locator("#legend label")).to_have_count(3)
    before = page.evaluate(colours)
    assert len(set(before)) == 3
    expect(page.locator("#figure-weights svg")).to_have_attribute("aria-label", re.compile("type1"))
    page.locator("#legend").get_by_label("type1").uncheck()
    expect(page.locator("#figure-weights svg")).not_to_have_attribute("aria-label", re.compile("type1"))
    assert "hide=1" in page.url
    entry(page, 1).get_by_label("Remove this encoding").click()
    expect(page.locator("#legend label")).to_have_count(2)
    assert page.evaluate(colours) == before[1:]


# ------------------------------------------------------------------------------------------------ what is not known
@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        ("#f=inverse", "the sum diverges, so there is no receptive field"),
        ("#f=rope", "no bias r(t), so the theorem says nothing about it"),
        ("#f=-log(t", "no verdict: expected ')' to close log("),
        ("#f=alibi&epsilon=5", "epsilon must lie strictly between 0 and 1, not 5"),
        ("#f=-log(1%2Bt)**1.0001", "it converges; whether"),
        ("#f=weight: abs(sin(t))**t", "undecided, so no receptive field is known"),
    ],
)
def test_an_empty_figure_says_why_and_no_more(page, explorer, state, sentence):
    visit(page, explorer, state)
    drawn = page.locator("#figure-receptive-field svg")
    expect(drawn).to_have_attribute("aria-label", re.compile(re.escape(sentence)))
    if "diverges" not in sentence:
        assert "diverges" not in drawn.text_content()
        assert "no receptive field" not in drawn.text_content().replace("so no receptive field is known", "")
    for figure in ("partial-sums", "weights"):  # nothing will come any more: it is not said that it is awaited
        expect(page.locator(f"#figure-{figure} svg")).not_to_contain_text("no curve yet")


def test_a_wrong_setting_is_said_at_the_setting(page, explorer):
    visit(page, explorer, "#f=alibi&epsilon=5")
    expect(page.locator("#settings-wrong")).to_contain_text("between 0 and 1")
    expect(page.locator("#epsilon")).to_have_attribute("aria-invalid", "true")
    expect(entry(page).locator(".badge")).to_have_text("converges")  # the verdict needs no epsilon
    expect(page.locator("#figure-weights svg path").first).to_be_attached()
    expect(card(page).locator(".table .note")).to_have_count(1)  # said once
    page.locator("#epsilon").fill("1e−1")  # with the sign that texts have
    page.locator("#epsilon").press("Enter")
    expect(page.locator("#settings-wrong")).to_be_hidden()
    expect(entry(page).locator(".reach")).to_contain_text("590 tokens")


def held_back(page, kind):
    """Keep the answers of one kind back until they are let go."""
    waiting = []
    page.route(f"**/api/{kind}?*", lambda route: waiting.append(route))
    return waiting


def first_of(page, waiting):
    """The first question that is kept back, which comes after what the page says meanwhile."""
    while not waiting:
        page.wait_for_timeout(10)
    return waiting[0]


def test_a_changed_formula_is_cleared_until_its_own_answer_is_there(page, explorer):
    visit(page, explorer, "#f=alibi")
    expect(entry(page).locator(".reach")).to_contain_text("1,179 tokens")
    waiting = held_back(page, "verdict")
    formula(page).fill("-sqrt(t)")
    expect(entry(page).locator(".verdict")).to_have_text("being judged…")
    expect(entry(page)).to_have_class(re.compile("waiting"))
    assert entry(page).locator(".reach").inner_text() == ""
    assert card(page).locator("tbody td").count() == 0
    assert "1,179" not in page.locator("main").inner_text()
    first_of(page, waiting).continue_()
    expect(entry(page).locator(".badge")).to_have_text("converges")
    expect(entry(page)).not_to_have_class(re.compile("waiting"))


def test_the_verdict_comes_first_and_a_cut_off_keeps_it(page, explorer):
    waiting = held_back(page, "fields")
    visit(page, explorer, "#f=type1-paper")
    expect(entry(page).locator(".badge")).to_have_text("converges")
    expect(entry(page).locator(".reach")).to_have_text("it converges; its receptive field is being computed.")
    late = {"error": "no answer within 5 seconds, so the work on this formula was cut off"}
    first_of(page, waiting).fulfill(status=504, json=late)
    expect(entry(page).locator(".reach")).to_contain_text("it converges; its receptive field is not known")
    expect(entry(page).locator(".badge")).to_have_text("converges")
    expect(card(page).locator(".proof ol li").first).to_be_visible()
    label = page.locator("#figure-receptive-field svg").get_attribute("aria-label")
    assert "not known" in label
    assert "diverge" not in label


def test_numbers_that_came_before_a_cut_off_stay(page, explorer):
    """The first epsilons are answered, the rest is cut off: what was proven is still shown."""
    row = {"epsilon": "0.5", "tokens": "2", "exact": "2", "log10": 0.30103}
    first = {
        "table": ["0.5", "0.01"],
        "sum": "3 +/- 1e-9",
        "total": 3,
        "rows": [row],
        "rest": 5,
        "law": None,
        "why": None,
    }

    def fields(route):
        if "skip=" in route.request.url:
            route.fulfill(status=504, json={"error": "no answer within 5 seconds, so the work was cut off"})
        else:
            route.fulfill(json=first)

    page.route("**/api/fields?*", fields)
    visit(page, explorer, "#f=type1-paper")
    expect(card(page).locator("tbody td")).to_have_text(["2", "cut off"])
    expect(card(page).locator(".table .note")).to_contain_text("cut off")
    said = "it converges; at epsilon 0.01 its receptive field is not known: the work was cut off."
    expect(entry(page).locator(".reach")).to_have_text(said)
    expect(page.locator("#figure-receptive-field svg")).to_have_attribute("aria-label", re.compile("2 tokens at 0.5"))


def test_the_rest_of_an_earlier_question_does_not_take_the_place_of_a_new_one(page, explorer):
    page.add_init_script(  # an overtaken question is not given up, however busy the machine is
        "{ const wait = setTimeout; window.setTimeout = (f, ms, ...more) => wait(f, ms === 400 ? 1e9 : ms, ...more); }"
    )
    waiting = held_back(page, "fields")
    visit(page, explorer, "#f=alibi")
    first = first_of(page, waiting)
    page.get_by_label("epsilon").first.fill("0.03")
    page.get_by_label("epsilon").first.press("Enter")
    expect(card(page).locator(".window")).to_contain_text("share 0.03")  # by now the new fields are wanted too
    waiting.clear()
    row = {"epsilon": "0.5", "tokens": "178", "exact": "178", "log10": 2.25}
    first.fulfill(json={"table": ["0.5", "0.01"], "sum": None, "rows": [row], "rest": 6, "law": None, "why": None})
    first_of(page, waiting).continue_()
    page.unroute("**/api/fields?*")
    expect(card(page).locator("tr.chosen td")).to_have_text("898")


def test_a_server_that_has_left_is_said(page, explorer):
    visit(page, explorer, "#f=alibi")
    page.route("**/api/**", lambda route: route.abort())
    formula(page).fill("-sqrt(t)")
    expect(entry(page).locator(".error")).to_contain_text("is `farfield explore` still running?")
    drawn = page.locator("#figure-receptive-field svg")
    expect(drawn).to_have_attribute("aria-label", re.compile("no verdict: nobody answered"))


# ------------------------------------------------------------------------------------------------ slider and effect
@pytest.mark.parametrize("size", [(1366, 768), (390, 844)], ids=["laptop", "phone"])
def test_slider_and_effect_are_on_one_screen(browser, explorer, size):
    context = browser.new_context(viewport={"width": size[0], "height": size[1]})
    page = visit(context.new_page(), explorer, "#f=alibi&f=type1")
    expect(page.locator("#figure-receptive-field svg path").first).to_be_attached()
    for number in (1, 2):
        expect(entry(page, number).locator(".badge")).to_have_text("converges")
    slider = entry(page).get_by_label("k", exact=True)
    box, figure = slider.bounding_box(), page.locator("#figure-receptive-field .plot").bounding_box()
    assert 0 <= box["y"] < box["y"] + box["height"] <= size[1]
    assert figure["y"] < size[1] - 150, "the curves begin on the first screen"
    beside = figure["x"] > box["x"] + box["width"]
    assert beside or figure["y"] >= box["y"] + box["height"], "the figure covers the slider"
    covering = slider.evaluate(  # where it stands and what is there, in one look: an answer that comes may move it
        """slider => {
            const box = slider.getBoundingClientRect();
            return document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2).id;
        }"""
    )
    assert covering == slider.get_attribute("id"), "something lies over the slider"
    context.close()


def test_the_curves_stay_in_sight_with_six_encodings(browser, explorer):
    context = browser.new_context(viewport={"width": 1366, "height": 768})
    names = ("alibi", "type1", "type2", "inverse", "kerple-power", "sandwich")
    page = visit(context.new_page(), explorer, "#" + "&".join(f"f={name}" for name in names))
    expect(entry(page, 6).locator(".badge")).to_have_text("diverges")
    entry(page, 6).get_by_label("s", exact=True).scroll_into_view_if_needed()
    box = page.locator("#figure-receptive-field .plot").bounding_box()
    assert -box["height"] / 2 < box["y"] < 400, "half of it is seen, even at the end of the list"
    colours = page.evaluate(
        "[...document.querySelectorAll('#legend path:first-child')].map((e) => e.getAttribute('stroke'))"
    )
    assert len(set(colours)) == 6
    context.close()


def test_the_toolbar_covers_nothing(page, explorer):
    visit(page, explorer, "#f=alibi&f=sandwich")
    page.evaluate("scrollTo(0, 1200)")
    assert page.locator("#settings").bounding_box()["y"] < -100


def test_what_draw_would_have_claimed_is_folded_and_said_once(page, explorer):
    visit(page, explorer, "#f=-2*log(t%2B1)")
    expect(entry(page).locator(".reach")).to_contain_text("61 tokens")
    assert "draw()" not in page.locator("#cards").inner_text()
    expect(page.locator("#draw-said")).to_be_hidden()
    page.locator("#draw summary").click()
    expect(page.locator("#draw-said")).to_contain_text("given 512 weights it claims 54 tokens at epsilon 0.01")
    expect(page.locator("#draw-said")).to_contain_text("The receptive field is 61.")
    expect(page.locator("#figure-draw svg path").first).to_be_attached()


def test_what_begins_later_is_neither_compared_nor_designed(page, explorer):
    """Both count from distance 0, where such a formula has no value: nothing is claimed of it."""
    visit(page, explorer, "#f=-k*log(t)&from=1&set=k%3D3&f=alibi&of=0&parameter=k&reach=64")
    expect(page.locator("#design-said")).to_have_text(
        "a design begins at distance 0, and this encoding at 1: write t + 1 in the place of t"
    )
    expect(page.locator("#pairs-said")).to_have_text("Compared are encodings that begin at t = 0.")


def test_a_hidden_curve_is_not_awaited(page, explorer):
    visit(page, explorer, "#f=alibi&hide=1")
    for figure in ("receptive-field", "partial-sums", "weights"):
        expect(page.locator(f"#figure-{figure} svg")).to_contain_text("every curve is hidden")


def test_design_a_reach(page, explorer):
    visit(page, explorer, "#f=alibi")
    page.get_by_label("reach in tokens").fill("4096")
    page.get_by_role("button", name="Find the value").click()
    expect(page.locator("#design-said")).to_contain_text(
        "k = 0.0011245 gives a receptive field of exactly 4,096 tokens"
    )
    page.get_by_role("button", name="Use this value").click()
    expect(entry(page).locator(".reach")).to_contain_text("4,096 tokens")


def test_a_link_shows_the_same(page, explorer):
    visit(page, explorer, "#f=alibi&f=kerple-log")
    entry(page, 2).get_by_label("exact value of p").fill("3/2")
    entry(page, 2).get_by_label("exact value of p").press("Enter")
    page.get_by_label("context in tokens").press("ArrowRight")
    page.get_by_label("epsilon").first.fill("0.03")
    page.get_by_label("epsilon").first.press("Enter")
    expect(entry(page, 2).locator(".badge")).to_have_text("converges")
    settled(page)
    shown = [card(page, n).inner_text() + entry(page, n).inner_text() for n in (1, 2)]
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator("#said")).to_have_text("Copied")
    link = clipboard(page)
    assert link == page.url
    page.goto("about:blank")
    page.goto(link)
    expect(page.locator("#context-shown")).to_have_text("1024")
    settled(page)
    assert [card(page, n).inner_text() + entry(page, n).inner_text() for n in (1, 2)] == shown


def test_a_number_of_an_earlier_setting_is_dimmed(page, explorer):
    visit(page, explorer, "#f=alibi")
    expect(card(page).locator(".window")).to_contain_text("share 0.01")
    waiting = held_back(page, "window")
    page.get_by_label("epsilon").first.fill("0.03")
    page.get_by_label("epsilon").first.press("Enter")
    expect(card(page).locator("tr.chosen th")).to_have_text("0.03")  # the verdict came, and the field
    expect(card(page).locator(".window")).to_contain_text("share 0.01")
    expect(card(page)).to_have_class("waiting")
    first_of(page, waiting).continue_()
    expect(card(page).locator(".window")).to_contain_text("share 0.03")
    expect(card(page)).to_have_class("")


def settled(page):
    """Wait until every part of both encodings has come, with the chosen epsilon and context."""
    for n in (1, 2):
        expect(card(page, n).locator(".heat svg path").first).to_be_attached()
        expect(card(page, n).locator("tr.chosen th")).to_have_text("0.03")
        expect(card(page, n).locator("tr:last-child td")).to_have_text(re.compile(r"\d"))
        expect(card(page, n).locator("summary", has_text="In general")).to_be_visible()
        expect(card(page, n).locator(".window")).to_contain_text("share 0.03")
        expect(card(page, n).locator(".table .note")).to_contain_text("as epsilon goes to 0")
        expect(card(page, n).get_by_role("button", name="Copy command")).to_be_visible()
    expect(page.locator("article.waiting")).to_have_count(0)


def test_copy_the_command_and_the_lines(page, explorer):
    visit(page, explorer, "#f=-k*t&set=k%3D1/16")
    page.bring_to_front()  # a clipboard belongs to the window that has the focus
    for _ in range(3):  # what is said of the numbers that still come may take the place of "Copied"
        card(page).get_by_role("button", name="Copy command").click()
        with contextlib.suppress(AssertionError):
            expect(page.locator("#said")).to_have_text("Copied")
            break
    assert clipboard(page).splitlines()[0] == "farfield check '-k*t' --set k=1/16"
    card(page).get_by_role("button", name="Copy Python").click()
    page.wait_for_function("navigator.clipboard.readText().then((text) => text.startsWith('import farfield'))")
    assert "'k': '1/16'" in clipboard(page)


@pytest.mark.parametrize("name", ["receptive-field", "partial-sums", "weights", "draw", "heat-map", "study"])
def test_every_figure_can_be_saved(page, explorer, tmp_path, name):
    visit(page, explorer, "#f=alibi&f=type1")
    if name == "draw":
        page.locator("#draw summary").click()
        expect(page.locator("#figure-draw svg path").first).to_be_attached()
    expect(page.locator(".heat svg path").nth(1)).to_be_attached()
    page.wait_for_load_state("networkidle")  # an answer that comes later draws the figure anew

    def save(kind: str, to: str) -> None:
        if name in ("receptive-field", "partial-sums", "weights"):  # numbers come in parts: wait for both encodings
            expect(page.locator(f"#figure-{name} svg path[stroke-width='1.8']").nth(1)).to_be_attached(timeout=30_000)
        with page.expect_download() as saved:
            page.get_by_role("button", name=f"Save {name} as {kind}").first.click()
        saved.value.save_as(tmp_path / to)

    save("SVG", "figure.svg")
    root = ElementTree.parse(tmp_path / "figure.svg").getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) > 1
    save("PNG", "figure.png")
    content = (tmp_path / "figure.png").read_bytes()
    assert content.startswith(b"\x89PNG")
    assert len(content) > 5000  # a picture, and not an empty sheet
    save("CSV", "values.csv")
    rows = list(csv.reader((tmp_path / "values.csv").read_text(encoding="utf-8").splitlines()))
    assert len(rows) > 3
    assert len({len(row) for row in rows}) == 1
    assert all(float(cell) >= 0 for row in rows[1:] for cell in row if cell)


def test_exact_fields_are_downloaded_with_all_their_digits(page, explorer, tmp_path):
    visit(page, explorer, "#f=kerple-log&set=p%3D1.1&set=a%3D1")
    expect(card(page).locator("tr:last-child td")).to_have_text(re.compile(r"e\d\d"))
    with page.expect_download() as saved:
        card(page).get_by_role("button", name="CSV", exact=True).click()
    saved.value.save_as(tmp_path / "fields.csv")
    rows = dict(csv.reader((tmp_path / "fields.csv").read_text(encoding="utf-8").splitlines()))
    assert rows["1e-6"] == "566653627067171504136993448885073028381903716378017516978676"


def test_a_parameter_to_learn_has_a_tick_and_a_range(page, explorer):
    visit(page, explorer, "#f=-a*log(1%2Bt)&set=a%3D3/2")
    tick = page.get_by_label("a is learned")
    expect(tick).not_to_be_checked()
    tick.check()
    condition = "converges if and only if a > 1; where heads may start: a = 0 diverges; a = 3 converges"
    expect(entry(page).get_by_text(condition)).to_be_visible()
    expect(page.get_by_label("exact value of a")).to_have_value("0:3")
    assert "a%3D0%3A3" in page.url
    tick.uncheck()
    expect(page.get_by_label("exact value of a")).to_have_value("3/2")
    expect(entry(page).get_by_text("where heads may start")).to_have_count(0)


def test_the_file_for_coq_is_downloaded_beside_the_proof(page, explorer, tmp_path):
    visit(page, explorer, "#f=kerple-log&set=p%3D3/2&set=a%3D1")
    with page.expect_download() as saved:
        card(page).locator(".proof").get_by_role("button", name="Coq file").click()
    saved.value.save_as(tmp_path / saved.value.suggested_filename)
    text = (tmp_path / "farfield_kerple_log.v").read_text(encoding="utf-8")
    assert text == check("kerple-log", parameters={"p": "3/2", "a": "1"}).coq()


def test_where_coq_has_no_file_a_sentence_takes_the_place_of_the_button(page, explorer):
    visit(page, explorer, "#f=rope")
    button = card(page).locator(".proof").get_by_role("button", name="Coq file")
    button.click()
    expect(card(page).locator(".coq")).to_have_text(
        "there is nothing to prove of rope in Coq: the theorem does not apply to it"
    )
    expect(button).to_have_count(0)
    formula(page).fill("-t/9")  # another proof, which has one
    expect(button).to_be_enabled()


def test_the_figures_are_read_with_the_keyboard(page, explorer):
    visit(page, explorer, "#f=-2*log(t%2B1)")
    figure = page.locator("#figure-receptive-field")
    expect(card(page).locator("tr:last-child td")).to_have_text("607,927,101,854")
    figure.locator(".plot").focus()
    page.keyboard.press("End")
    expect(figure.locator(".readout")).to_contain_text("607,927,101,854 tokens at 1e-12")
    page.keyboard.press("ArrowLeft")
    expect(figure.locator(".readout")).to_contain_text("at 2e-12")


def test_the_results_of_a_study(page, explorer):
    visit(page, explorer, "#f=alibi")
    expect(page.locator("#study")).to_be_visible()
    figure = page.locator("#figure-study")
    expect(figure.locator("svg")).to_contain_text("inverse (mean of 2 seeds)")
    figure.locator(".plot").focus()
    page.keyboard.press("End")
    expect(figure.locator(".readout")).to_contain_text("inverse (mean of 2 seeds): 199.4 at 576 tokens")
    page.get_by_label("corpus").select_option("<b>wiki</b>")
    expect(figure.locator("svg")).to_contain_text("Perplexity on <b>wiki</b>")
    page.get_by_label("inverse", exact=True).uncheck()
    expect(figure.locator("svg")).not_to_contain_text("inverse")


def test_hostile_texts_stay_texts(page, explorer):
    visit(page, explorer, "#f=alibi")
    field = formula(page)
    for text in ["<img src=x onerror=alert(1)>", "<script>alert(1)</script>", *HOSTILE[:14]]:
        field.fill(text.replace("\n", " "))
        expect(entry(page).locator(".error")).to_contain_text("column")
    visit(page, explorer, "#f=%3Cimg%20src%3Dx%3E&set=%3Cb%3E%3D1&heads=<b>&corpus=<b>")
    expect(entry(page).locator(".error")).to_contain_text("column")
    assert page.locator("main img, main b, article script").count() == 0
    assert list(explorer.folder.iterdir()) == []


def test_the_keyboard_is_enough(page, explorer):
    visit(page, explorer, "#f=alibi")
    page.keyboard.press("Tab")
    expect(page.locator("#skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#entries")).to_be_focused()
    page.keyboard.press("Tab")
    expect(formula(page)).to_be_focused()
    assert "f=alibi" in page.url


def test_everything_has_a_name(page, explorer):
    visit(page, explorer, "#f=alibi&f=sandwich")
    unnamed = page.evaluate("""() => [...document.querySelectorAll("button, input, select, [role=img]")]
        .filter((e) => !e.getAttribute("aria-label") && !e.textContent.trim() && !(e.labels && e.labels.length))
        .map((e) => e.outerHTML)""")
    assert unnamed == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone(browser, explorer, scheme):
    context = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme=scheme)
    page = visit(context.new_page(), explorer, "#f=alibi&f=sandwich&f=inverse-log")
    expect(entry(page, 3).locator(".badge")).to_have_text("diverges")
    expect(page.locator("#pairs summary").first).to_be_visible()
    page.get_by_role("button", name="Weights").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate("document.querySelector('#figure-weights svg').getBoundingClientRect().width") <= 390
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    light = sum(int(part) for part in re.findall(r"\d+", paper)) > 384
    assert light == (scheme == "light")
    context.close()


# ------------------------------------------------------------------------------------------------ classes and models
def test_a_bounded_family_shows_its_worst_case(page, explorer):
    visit(page, explorer, "#f=upper%3A%201-t%2F16%3B%20lower%3A%20-1-t%2F16&f=upper%3A%201%3B%20lower%3A%20-1")
    playwright.expect(entry(page).locator(".verdict")).to_contain_text("one window serves the whole family")
    playwright.expect(entry(page).locator(".reach")).to_contain_text("106 tokens")
    playwright.expect(entry(page).locator(".reach")).to_contain_text("in the worst case over the family")
    playwright.expect(card(page).locator("caption")).to_contain_text("in the worst case over the family")
    playwright.expect(page.locator("#figure-weights svg")).to_contain_text("of a bounded family its")
    playwright.expect(entry(page, 2).locator(".reach")).to_contain_text("attention disperses over the row")
    playwright.expect(card(page, 2).locator(".window")).to_contain_text("since attention disperses")


def test_a_pasted_configuration_is_inspected_and_the_link_shows_it_again(page, explorer):
    config = {"model_type": "mistral", "num_hidden_layers": 6, "num_attention_heads": 8, "hidden_size": 64}
    visit(page, explorer)
    page.locator("#config summary").click()
    page.fill("#config-text", "{ no JSON")
    page.locator("#config-form button").click()
    playwright.expect(page.locator("#config-said .error")).to_contain_text("cannot be read as JSON")
    page.fill("#config-text", json.dumps(config))
    page.locator("#config-form button").click()
    said = page.locator("#config-said")
    playwright.expect(said).to_contain_text("all 6 layers see a window of 4,096 tokens")
    playwright.expect(said.locator("figure rect title")).to_have_count(6)
    playwright.expect(said.locator("table")).to_have_count(2)
    visit(page, explorer, page.url.removeprefix(explorer.address))
    playwright.expect(page.locator("#config-said")).to_contain_text("all 6 layers see a window of 4,096 tokens")
    page.fill("#config-text", '{"model_type": "<img src=x onerror=alert(1)>"}')
    page.locator("#config-form button").click()
    playwright.expect(said).to_contain_text("is not known, so nothing is claimed")
    playwright.expect(said.locator("img")).to_have_count(0)
