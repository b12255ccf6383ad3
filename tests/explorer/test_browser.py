"""The explorer as a person uses it, in a real browser: type, move, compare, save, copy the link and open it again."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

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
PATIENCE = 30_000  # milliseconds
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
    page.wait_for_selector("#cards article .badge, #cards article .error:not([hidden])")
    return page


def card(page, number=1):
    return page.locator("#cards article").nth(number - 1)


def expect(locator):
    return playwright.expect(locator)


def clipboard(page):
    return page.evaluate("navigator.clipboard.readText()")


def test_what_is_shown_at_once(page, explorer):
    visit(page, explorer, "#f=-2*log(t%2B1)")
    one = card(page)
    expect(one.locator(".badge")).to_have_text("converges")
    expect(one.locator(".sum")).to_contain_text("1.6449340668482264365 ± 2.79e-20")
    expect(one.locator("tbody tr", has_text="1e-3").locator("td").first).to_have_text("608")
    expect(one.locator(".proof ol math").first).to_be_visible()
    expect(one.locator(".window")).to_contain_text("1325659 tokens")
    expect(one.locator(".draws")).to_contain_text("would have claimed 54 tokens")
    expect(one.locator(".heat svg path").first).to_be_attached()
    for name in ("receptive-field", "partial-sums", "weights", "draw"):
        expect(page.locator(f"#figure-{name} svg path").first).to_be_attached()


def test_type_a_formula(page, explorer):
    visit(page, explorer, "#f=alibi")
    field = card(page).get_by_label("Formula of the bias r(t), or a name")
    field.fill("-sqrt(t)")
    expect(card(page).locator(".badge")).to_have_text("converges")
    expect(card(page).locator(".typeset math msqrt")).to_be_visible()
    assert "f=-sqrt%28t%29" in page.url
    field.fill("-log(t + 1)")
    expect(card(page).locator(".badge")).to_have_text("diverges")
    field.fill("-log(t")
    expect(card(page).locator(".error")).to_contain_text("column")
    field.fill("-2*log(t)")
    expect(card(page).locator(".error")).to_contain_text("--from 1")
    card(page).get_by_label("first distance").fill("1")
    card(page).get_by_label("first distance").press("Enter")
    expect(card(page).locator(".badge")).to_have_text("converges")


def test_pick_from_the_zoo_and_move_the_sliders(page, explorer):
    visit(page, explorer, "#f=type1")
    card(page).get_by_label("Pick from the zoo").select_option("kerple-log")
    expect(card(page).locator("summary", has_text="In general")).to_contain_text("converges if and only if p > 1")
    expect(card(page).locator(".badge")).to_have_text("diverges")  # the middle of its start is exactly the border
    slider = card(page).get_by_label("p", exact=True)
    slider.focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    expect(card(page).locator(".badge")).to_have_text("converges")
    assert "set=p%3D1.0" in page.url
    card(page).get_by_label("exact value of p").fill("1")
    card(page).get_by_label("exact value of p").press("Enter")
    expect(card(page).locator(".badge")).to_have_text("diverges")


def test_the_head_chooses_the_slope(page, explorer):
    visit(page, explorer, "#f=alibi")
    chosen = card(page).locator("tr.chosen td").first
    expect(chosen).to_have_text("1179")
    page.get_by_label("this head").press("Home")
    expect(chosen).to_have_text("10")
    expect(card(page).get_by_label("exact value of k")).to_have_value("1/2")
    card(page).locator("summary", has_text="All heads").click()
    expect(card(page).locator(".headsPlace tbody tr")).to_have_count(8)
    expect(card(page).locator(".headsPlace tbody tr").nth(7)).to_contain_text("1179")


def test_compare_side_by_side(page, explorer):
    visit(page, explorer, "#f=type1-paper")
    page.get_by_role("button", name="Add an encoding").click()
    page.keyboard.type("type2-paper")  # the new field has the focus, and its text is selected
    expect(page.locator("#cards article")).to_have_count(2)
    expect(card(page, 2).locator(".badge")).to_have_text("converges")
    expect(page.locator("#pairs summary")).to_contain_text("type1-paper sees further")
    expect(page.locator("#figure-receptive-field svg")).to_contain_text("type2-paper")
    card(page, 2).get_by_label("Remove this encoding").click()
    expect(page.locator("#cards article")).to_have_count(1)
    expect(page.locator("#pairs")).to_be_hidden()
    page.go_back()
    expect(page.locator("#cards article")).to_have_count(2)


def test_design_a_reach(page, explorer):
    visit(page, explorer, "#f=alibi")
    page.get_by_label("reach in tokens").fill("4096")
    page.get_by_role("button", name="Find the value").click()
    expect(page.locator("#design-said")).to_contain_text("k = 0.0011245 gives a receptive field of exactly 4096 tokens")
    page.get_by_role("button", name="Use this value").click()
    expect(card(page).locator("tr.chosen td").first).to_have_text("4096")


def test_a_link_shows_the_same(page, explorer):
    visit(page, explorer, "#f=alibi&f=kerple-log")
    card(page, 2).get_by_label("exact value of p").fill("3/2")
    card(page, 2).get_by_label("exact value of p").press("Enter")
    page.get_by_label("context in tokens").press("ArrowRight")
    page.get_by_label("epsilon").first.fill("0.03")
    page.get_by_label("epsilon").first.press("Enter")
    expect(card(page, 2).locator(".badge")).to_have_text("converges")
    expect(card(page, 2).locator("tr.chosen th")).to_have_text("0.03")
    expect(page.locator("article.waiting")).to_have_count(0)
    shown = [card(page, n).locator(".results").inner_text() for n in (1, 2)]
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator("#said")).to_have_text("Copied")
    link = clipboard(page)
    assert link == page.url
    page.goto("about:blank")
    page.goto(link)
    expect(card(page, 2).locator("tr.chosen th")).to_have_text("0.03")
    expect(page.locator("#context-shown")).to_have_text("1024")
    expect(card(page, 2).locator("summary", has_text="In general")).to_be_visible()
    assert [card(page, n).locator(".results").inner_text() for n in (1, 2)] == shown


def test_copy_the_command_and_the_lines(page, explorer):
    visit(page, explorer, "#f=-k*t&set=k%3D1/16")
    card(page).get_by_role("button", name="Copy command").click()
    expect(page.locator("#said")).to_have_text("Copied")
    assert clipboard(page).splitlines()[0] == "farfield check '-k*t' --set k=1/16"
    card(page).get_by_role("button", name="Copy Python").click()
    page.wait_for_function("navigator.clipboard.readText().then((text) => text.startsWith('import farfield'))")
    assert ".bind({'k': '1/16'})" in clipboard(page)


@pytest.mark.parametrize("name", ["receptive-field", "partial-sums", "weights", "draw", "heat-map", "study"])
def test_every_figure_can_be_saved(page, explorer, tmp_path, name):
    visit(page, explorer, "#f=alibi&f=type1")
    with page.expect_download() as saved:
        page.get_by_role("button", name=f"Save {name} as SVG").first.click()
    saved.value.save_as(tmp_path / "figure.svg")
    root = ElementTree.parse(tmp_path / "figure.svg").getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) > 1
    with page.expect_download() as saved:
        page.get_by_role("button", name=f"Save {name} as PNG").first.click()
    saved.value.save_as(tmp_path / "figure.png")
    content = (tmp_path / "figure.png").read_bytes()
    assert content.startswith(b"\x89PNG")
    assert len(content) > 5000  # a picture, and not an empty sheet


def test_the_figures_are_read_with_the_keyboard(page, explorer):
    visit(page, explorer, "#f=-2*log(t%2B1)")
    figure = page.locator("#figure-receptive-field")
    figure.locator(".plot").focus()
    page.keyboard.press("End")
    expect(figure.locator(".readout")).to_contain_text("607927101854 tokens at 1e-12")
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
    field = card(page).get_by_label("Formula of the bias r(t), or a name")
    for text in ["<img src=x onerror=alert(1)>", "<script>alert(1)</script>", *HOSTILE[:14]]:
        field.fill(text.replace("\n", " "))
        expect(card(page).locator(".error")).to_contain_text("column")
    visit(page, explorer, "#f=%3Cimg%20src%3Dx%3E&set=%3Cb%3E%3D1&heads=<b>&corpus=<b>")
    expect(card(page).locator(".error")).to_contain_text("column")
    assert page.locator("main img, main b, article script").count() == 0
    assert list(explorer.folder.iterdir()) == []


def test_the_keyboard_is_enough(page, explorer):
    visit(page, explorer, "#f=alibi")
    page.keyboard.press("Tab")
    expect(page.locator("#skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#cards")).to_be_focused()
    page.keyboard.press("Tab")
    expect(card(page).get_by_label("Formula of the bias r(t), or a name")).to_be_focused()
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
    expect(card(page, 3).locator(".badge")).to_have_text("diverges")
    expect(page.locator("#pairs summary").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate("document.querySelector('#figure-weights svg').getBoundingClientRect().width") <= 390
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    light = sum(int(part) for part in re.findall(r"\d+", paper)) > 384
    assert light == (scheme == "light")
    context.close()
