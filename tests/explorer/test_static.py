"""The page without a server: built once, served as plain files, with Python running in Chromium."""

from __future__ import annotations

import functools
import http.server
import json
import re
import shutil
import subprocess
import threading
import time
from array import array
from pathlib import Path
from types import SimpleNamespace

import pytest

from farfield.explorer import static
from farfield.explorer.browser import tree
from farfield.explorer.question import read
from farfield.explorer.replies import reply
from farfield.formula import parse
from farfield.formula.functions import CALLS, OPERATIONS
from farfield.theory.budget import time_limit
from farfield.theory.verdict.horizon import weights

CHROMIUM = Path("/usr/bin/chromium")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
ORACLES = Path(__file__).parents[1] / "oracles"
PATIENCE = 180_000  # milliseconds
FORMULAS = [
    "-1.5*log(1+t)",
    "-log(1+t)**2/3",
    "weight: 2**(-t)",
    "-log(t+1)",
    "where(t < 10, 0, -t)",
    "sin(t) - t/9",
    "-log(1+t)**",
    "upper: -t/16 + 1; lower: -t/16 - 1; sink: 1",
]
ASK = "async ([kind, fields]) => { const {ask} = await import('./static.js'); \
return ask(kind, fields).catch((e) => ({error: e.message, pointer: e.pointer})); }"


class Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *words):
        pass


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    try:
        for pinned in (static.PYODIDE, static.FLINT, static.LAZY_LOADER):
            static.fetch(pinned)
    except ValueError as error:
        if "could not be fetched" not in str(error):
            raise
        pytest.skip(f"the registries are out of reach: {error}")
    place = tmp_path_factory.mktemp("static") / "page"
    static.build(place, None, 120, say=lambda words: None)  # seconds: this machine may be busy
    return place


@pytest.fixture(scope="module")
def host(folder):
    """A web host that knows nothing but files, with the names of what was asked of it."""
    asked = []

    class Files(Silent):
        def do_GET(self):
            asked.append(self.path)
            super().do_GET()

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Files, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield SimpleNamespace(address=f"http://127.0.0.1:{server.server_address[1]}/", asked=asked)
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def chromium():
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not installed")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def page(chromium, host):
    """The page, from its first screen on; at the end it has asked no other host and reported no error."""
    context = chromium.new_context(viewport={"width": 1300, "height": 900})
    context.set_default_timeout(PATIENCE)
    opened = context.new_page()
    asked, errors = [], []
    opened.on("request", lambda request: asked.append(request.url))
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
    opened.goto(host.address)
    yield opened
    context.close()
    assert errors == []
    assert all(url.startswith((host.address, "blob:", "data:")) for url in asked), asked


def native(kind, fields):
    """What the command line's Python answers, in all its parts."""
    return json.loads(json.dumps(whole(lambda f: reply(read(kind, f))[0], fields)))


def whole(ask, fields):
    """An answer with the parts that are asked for later."""
    answer = ask(fields)
    while answer.get("rest"):
        further = ask([*fields, ("skip", str(len(answer["rows"])))])
        answer = {**further, "rows": [*answer["rows"], *further.get("rows", [])]}
    return answer


KINDS = {"verdict": [], "fields": [("epsilon", "0.01")]}


def same(page, formula, kinds=tuple(KINDS), seconds=None):
    """Ask the browser and this Python, and compare every word and digit of what takes at most so long here."""
    begin = time.process_time()
    for kind in kinds:
        fields = [("f", formula), *KINDS[kind]]
        try:
            with time_limit(seconds):
                mine = native(kind, fields)
        except ValueError as error:
            mine = {"error": str(error)}
        if seconds is not None and time.process_time() - begin > seconds:
            pytest.skip(f"{kind} takes more than {seconds} seconds")
        theirs = whole(lambda f, kind=kind: page.evaluate(ASK, [kind, [list(one) for one in f]]), fields)
        if "error" in mine:
            assert theirs["error"] == mine["error"], formula
        else:
            for row in (*mine.get("rows", []), *theirs.get("rows", [])):
                row.pop("log10")  # where a point is drawn: its last bit is the C library's
            assert theirs == mine, formula


def test_the_folder_names_no_outside_host(folder):
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".js", ".mjs", ".html", ".css", ".json", ".svg"):
            found = set(re.findall(r"https?://[\w.-]+", path.read_text(encoding="utf-8")))
            assert found <= {"http://www.w3.org"}, (path.name, found)  # names of markup languages, never asked


def test_a_folder_of_somebody_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(ValueError, match="is not empty and no page of the explorer"):
        static.build(tmp_path, None, 5, say=lambda words: None)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_that_is_not_what_it_must_be_is_refused(folder, monkeypatch, tmp_path):
    monkeypatch.setattr(static, "cache_folder", lambda: tmp_path)
    kept = tmp_path / "static" / static.FLINT.name
    kept.parent.mkdir()
    kept.write_bytes(b"something else")
    other = static.Pinned("file:///dev/null/nothing/" + static.FLINT.name, static.FLINT.sha256)
    with pytest.raises(ValueError, match=r"could not be fetched|is not the file that is pinned"):
        static.fetch(other)


def test_named_encodings_are_answered_before_python_is_there(page):
    expect = playwright.expect
    expect(page.locator("#entries article").first.locator(".badge")).to_have_text("converges", timeout=PATIENCE)
    expect(page.locator("#entries article").nth(1).locator(".badge")).to_have_text("diverges", timeout=PATIENCE)
    expect(page.locator("#loaded")).to_be_attached()


def test_a_typed_formula_gets_the_same_answers_as_elsewhere(page):
    page.wait_for_selector("#loading", state="hidden")
    for formula in FORMULAS:
        same(page, formula)
    window = [("f", "alibi"), ("heads", "8"), ("head", "3"), ("epsilon", "0.02"), ("bound", "3")]
    for formula in ("-t/7", "-mod(t, 2)*t"):
        asked = [("f", formula), ("heads", "8")]
        assert page.evaluate(ASK, ["coq", [list(one) for one in asked]]) == native("coq", asked)
    assert page.evaluate(ASK, ["window", [list(one) for one in window]]) == native("window", window)
    config = {"model_type": "bloom", "n_layer": 2, "n_head": 4, "hidden_size": 64, "seq_length": 2048}
    pasted = [("config", json.dumps(config)), ("epsilon", "0.01"), ("bound", "1")]
    assert page.evaluate(ASK, ["inspect", [list(one) for one in pasted]]) == native("inspect", pasted)
    design = [("f", "-k*t"), ("reach", "4096"), ("epsilon", "0.01")]
    assert page.evaluate(ASK, ["design", [list(one) for one in design]]) == native("design", design)


def test_what_is_typed_is_shown_and_a_link_shows_it_again(page, host):
    page.wait_for_selector("#loading", state="hidden")
    typed = page.locator("#entries article").first.get_by_label("Formula of the bias r(t), or a name")
    typed.fill("-2*log(t+1)")
    typed.press("Enter")
    playwright.expect(page.locator("#cards article").first).to_contain_text("607,927,101,854", timeout=PATIENCE)
    assert "f=-2*log%28t%2B1%29" in page.url


def test_a_slow_formula_is_cut_off_and_another_worker_begins(chromium, host, folder):
    start = json.loads((folder / "start.json").read_text()) | {"seconds": 0.001}
    context = chromium.new_context()
    context.set_default_timeout(PATIENCE)
    hasty = context.new_page()
    hasty.route("**/start.json", lambda route: route.fulfill(json=start))
    hasty.goto(host.address)
    hasty.wait_for_selector("#loading", state="visible")  # the page has its files
    slow = "where(floor(log2(t + 1)) < log2(t + 1), -t, {}*log(log(t + 3)))"  # a second of work, and not a thousandth
    cut = hasty.evaluate(ASK, ["verdict", [["f", slow.format(-2)]]])
    assert cut["error"].startswith("no answer within 0.001 seconds, so the work on this formula was cut off")
    assert hasty.evaluate(ASK, ["verdict", [["f", slow.format(-3)]]]) == cut  # by another worker
    hasty.wait_for_selector("#loading", state="hidden")
    context.close()


# ---------------------------------------------------------------------------------------------------- what can go wrong
TYPED = "#f=alibi&f=-1.5*log(1%2Bt)"
STUB = """self.addEventListener("message", ({ data }) => {
  if (data.load) postMessage({ ready: true });
  else if (JSON.stringify(data.fields).includes("1.5")) setTimeout(() => { throw new Error("out of memory"); });
  else postMessage({ id: data.id, reply: { error: "another worker answers" } });
});"""


def fulfil(answer, route):
    route.fulfill(**answer)


@pytest.fixture
def opened(chromium, host):
    """Opens the page in a browser of its own, in which some files are other ones: (pattern, status, content)."""
    contexts = []

    def begin(*other, script="", state=TYPED):
        contexts.append(chromium.new_context())
        contexts[-1].set_default_timeout(PATIENCE)
        if script:
            contexts[-1].add_init_script(script)
        for pattern, status, body in other:
            kind = "text/javascript" if pattern.endswith("js") else "application/octet-stream"
            answer = {"status": status, "body": body, "content_type": kind}
            contexts[-1].route(pattern, functools.partial(fulfil, answer))
        page = contexts[-1].new_page()
        page.goto(host.address + state)
        return page

    yield begin
    for context in contexts:
        context.close()


@pytest.mark.parametrize(
    ("other", "script", "why"),
    [
        ([("**/python_flint*", 404, "")], "", f"{static.FLINT.name} is not on this host: status 404"),
        ([("**/python_flint*", 200, "no wheel at all")], "", f"{static.FLINT.name} is damaged"),
        ([("**/worker.js", 404, "")], "", "its worker did not start"),
        ([], "delete globalThis.WebAssembly", "it has no WebAssembly"),
    ],
    ids=["no wheel", "another wheel", "no worker", "no WebAssembly"],
)
def test_without_python_named_encodings_are_answered_and_the_rest_says_why(opened, other, script, why):
    page, expect = opened(*other, script=script), playwright.expect
    broken = f"Python could not be loaded in this browser ({why}), so only named encodings as they stand are answered"
    expect(page.locator("#loading-said")).to_contain_text(broken, timeout=PATIENCE)
    expect(page.locator("#loaded")).to_be_hidden()
    named, typed = (page.locator("#entries article").nth(n) for n in (0, 1))
    expect(named.locator(".badge")).to_have_text("converges", timeout=PATIENCE)
    expect(typed.locator(".error")).to_contain_text(broken, timeout=PATIENCE)
    drawn = page.locator("#figure-receptive-field svg")
    expect(drawn).to_have_attribute("aria-label", re.compile("log.*: no verdict: nobody answered"))


def test_a_folder_that_is_not_whole_is_said(opened):
    page = opened(("**/answers.json", 200, '{"half": '))
    said = playwright.expect(page.locator("#entries .error"))
    said.to_contain_text("answers.json is not there, or not whole", timeout=PATIENCE)


def test_a_worker_that_dies_at_work_is_replaced(opened):
    page = opened(("**/worker.js", 200, STUB))
    first = page.locator("#entries article").nth(1)
    said = "the work on this formula ended this browser's Python (Uncaught Error: out of memory)"
    playwright.expect(first.locator(".error")).to_contain_text(said, timeout=PATIENCE)
    assert page.evaluate(ASK, ["verdict", [["f", "-7*t"]]])["error"] == "another worker answers"
    playwright.expect(page.locator("#loading")).to_be_hidden(timeout=PATIENCE)


def test_while_python_is_loaded_a_typed_formula_waits_for_it(opened):
    page = opened(("**/worker.js", 200, "// never ready"))
    typed = page.locator("#entries article").nth(1).locator(".verdict")
    playwright.expect(typed).to_have_text("waits until Python is loaded…", timeout=PATIENCE)


def test_a_page_that_cannot_start_says_what_it_needs(opened):
    page = opened(("**/chart.js", 404, ""))
    playwright.expect(page.locator("#starting")).to_be_visible(timeout=PATIENCE)
    playwright.expect(page.locator("#starting")).to_contain_text("it needs JavaScript, and an address that begins")


def oracles():
    """The formulas whose verdict is known by other means."""
    known = [
        one for name in ("verdicts", "more_verdicts") for one in json.loads((ORACLES / f"{name}.json").read_text())
    ]
    return sorted({("weight: " if one["spelling"] == "weight" else "") + one["formula"] for one in known})


@pytest.mark.long
@pytest.mark.parametrize("formula", oracles())
@pytest.mark.parametrize("kind", KINDS)
def test_every_oracle_that_is_quick_has_the_same_answer(page, kind, formula):
    page.wait_for_selector("#loading", state="hidden")
    same(page, formula, [kind], seconds=5)


# ------------------------------------------------------------------------------------------------ numbers without numpy
CASES = [
    "-1.5*log(1+t)", "sin(t)+cos(t/3)-abs(t-5)/7", "where(t <= 4, -t, -inf)", "sum(cos(t/10000**(2*j/8)), j, 1, 4) - 4",
    "weight: 1/(1+t**2)", "min(t, 9) - max(t/2, 3) + floor(t/4)", "-sqrt(t) - pi*t",
    "-mod(t, 7)",
    "-softplus(t) + sigmoid(t) - tanh(t)", "relu(t-3) - 2*t", "-log1p(t) - expm1(-t)", "cosh(t/9) - sinh(t/8) - t**2",
]  # fmt: skip


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_rules_of_the_page_are_those_of_the_language(tmp_path):
    shutil.copy(Path(static.__file__).parent / "page" / "floats.js", tmp_path / "floats.mjs")
    asked = [[json.dumps(tree(parse(text).node)), parse(text).weight, 1, 40] for text in CASES]
    program = f"import {{ RULES, weights }} from './floats.mjs'; console.log(JSON.stringify([Object.keys(RULES), \
{json.dumps(asked)}.map((a) => Array.from(weights(...a)))]))"
    (tmp_path / "run.mjs").write_text(program, encoding="utf-8")
    out = subprocess.run(["node", "run.mjs"], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120)
    names, found = json.loads(out.stdout)
    assert {*OPERATIONS, *CALLS} - {"where", "sum", "pi", "-inf"} <= set(names)
    for text, values in zip(CASES, found, strict=True):
        expected = weights(parse(text), 1, 40)
        assert isinstance(expected, array)
        assert values == pytest.approx(list(expected), rel=1e-12, abs=1e-300), text
