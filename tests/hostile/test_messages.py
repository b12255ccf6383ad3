"""Names and values that mean something to a terminal, to Markdown or to the command line itself do no harm."""

import re

import pytest

from farfield.training.reporting import card, command
from farfield.training.settings import preset_settings

pytestmark = pytest.mark.hostile("control characters, markup, names like options")
ESCAPES = ["\x1b[2J", "\x1b]0;owned\x07", "a\rb", "a\x08b", "\x9b31m", "a\u202eb", "\x00"]
VERBS = [["check"], ["compare", "alibi"], ["window"], ["design", "--reach", "64"], ["inspect"]]
MARKUP = ["[/x]", "[red]a", "[/]", "[link=http://x]y[/link]", "[bold", "{task}", "%s%n"]


@pytest.mark.parametrize("text", ESCAPES, ids=range(len(ESCAPES)))
@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
def test_a_message_has_no_control_characters(forks, verb, text):
    said = forks.refusal(*verb, f"x{text}y")
    assert all(c.isprintable() for c in said), said


@pytest.mark.parametrize("text", MARKUP)
@pytest.mark.parametrize(
    "verb", [["inspect"], ["explore", "--port", "0", "--no-browser", "--study"], ["check"]], ids=lambda v: v[0]
)
def test_markup_in_a_name_is_shown_as_it_is(forks, verb, text, tmp_path):
    said = forks.refusal(*verb, text if verb[0] == "check" else str(tmp_path / text))
    assert "Traceback" not in said


@pytest.mark.parametrize("text", ["[/x]", "[red]", "a b", "-t", "--json", "é"])
def test_a_figure_may_have_any_name(forks, text, tmp_path):
    """Its name is printed at the end, where markup would be an error."""
    pytest.importorskip("matplotlib")
    (tmp_path / text).parent.mkdir(exist_ok=True)
    ended = forks("compare", "alibi", "type1", "--figure", f"{tmp_path}/{text}.pdf")
    assert ended["status"] == 0, ended["err"]
    assert (tmp_path / f"{text}.pdf").exists()
    assert text in ended["out"].replace("\n", "")


@pytest.mark.parametrize("number", ["2.7", "1e3", "0x10", "٣", "1_000", "8 ", "+-8", "true", "8;ls"])
def test_a_number_that_is_not_whole_is_refused(forks, number):
    for call in (["check", "alibi"], ["compare", "alibi", "type1"], ["window", "alibi"]):
        assert "--heads" in forks.refusal(*call, "--heads", number)
    assert "--from" in forks.refusal("check", "alibi", "--from", number)
    assert "--length" in forks.refusal("inspect", "nowhere", "--length", number)


@pytest.mark.parametrize("name", ["width", "heads", "epsilon", "set", "json", "help", "context"])
def test_a_parameter_may_be_called_like_an_option(forks, name):
    ended = forks("check", f"-{name}*t", "--set", f"{name}=1/8")
    assert ended["status"] == 0, ended["err"]
    assert "converges" in ended["out"]
    for call in (["window", f"-{name}*t"], ["compare", f"-{name}*t", "alibi"]):
        assert forks(*call, "--set", f"{name}=1/8")["status"] == 0


NAMES = ["x\n```\n# Owned", "`````", "a`b", "</code><script>", "x\n---\nlicense: mit", "````\n```"]


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_the_name_of_a_corpus_stays_inside_the_fence_of_a_card(run_folder, name):
    from farfield.training.pretrained import load_network

    settings = preset_settings("tiny", encoding="alibi", corpus=name)
    text = card(settings, load_network(str(run_folder))[0], [], False)
    made = command(settings)
    inside = text[text.index("## How it was made") : text.index("## Its encoding")]
    fence = re.match(r"## How it was made\n\n(`{3,})\n", inside)[1]
    assert inside == f"## How it was made\n\n{fence}\n{made}\n{fence}\n\n"
    assert all(re.match(r"`*", line)[0] < fence for line in made.split("\n"))
    assert "\n# Owned" not in text.replace(inside, "")
    assert "<script>" not in re.sub(r"`[^`]*`", "", text.replace(inside, ""))
