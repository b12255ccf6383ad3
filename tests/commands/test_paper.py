"""What goes into a paper, and what a terminal says first: rankings, tables, figures by their ending, citations."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
import yaml

from farfield import __version__
from farfield.cli import VERBS, _missing, app, main

ROOT = Path(__file__).parents[2]


def printed(capsys, *arguments, status=0):
    """What a command prints in this process."""
    try:
        main(list(arguments))
        left = 0
    except SystemExit as end:
        left = end.code or 0
    out = capsys.readouterr()
    assert left == status, out.err
    return out.out if status == 0 else out.err


def test_several_are_ranked_in_the_first_line(capsys):
    out = printed(capsys, "compare", "-2*log(t + 1)", "-t", "-log(t + 1)", "-3*log(t + 1)", "--epsilon", "0.1")
    lines = " ".join(out.split())
    assert lines.startswith(
        "as epsilon -> 0, from the nearest to the farthest: -t < -3*log(t + 1) < -2*log(t + 1) "
        "without a receptive field, because the sum diverges: -log(t + 1)"
    )
    assert "integral" not in out
    assert max(map(len, out.splitlines())) <= 80
    assert "r_a(t)" in printed(capsys, "compare", "-2*log(t + 1)", "-t", "-3*t", "--epsilon", "0.1", "--proof")


def test_equal_ones_share_their_place(capsys):
    out = printed(capsys, "compare", "-t", "1 - t", "-2*t", "--epsilon", "0.1")
    assert "farthest: -2*t < -t = 1 - t" in " ".join(out.split())


def test_fields_as_csv_and_latex(capsys):
    asked = ("compare", "-2*log(t + 1)", "-log(t + 1)", "--epsilon", "1e-3", "--epsilon", "0.01")
    rows = list(csv.reader(io.StringIO(printed(capsys, *asked, "--csv"))))
    assert rows == [
        ["encoding", "formula", "verdict", "1e-3", "0.01"],
        ["'-2*log(t + 1)", "'-2*log(t + 1)", "converges", "608", "61"],  # no formula to a spreadsheet
        ["'-log(t + 1)", "'-log(t + 1)", "diverges", "", ""],
    ]
    table = printed(capsys, *asked, "--latex")
    assert r"$\epsilon = 10^{-3}$ & $\epsilon = 0.01$ \\" in table
    assert r"$-2 \, \ln\left(t + 1\right)$ & $608$ & $61$ \\" in table
    proof = printed(capsys, "check", "-2*log(t + 1)", "--latex")
    assert "607{,}927{,}101{,}854" in proof
    assert r"\begin{enumerate}" in proof


def test_the_citation_is_in_a_file(capsys):
    assert "CITATION.cff" in printed(capsys, "cite", status=2)
    cff = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cff["version"] == __version__
    assert cff["references"][0]["doi"] == "10.1609/aaai.v38i17.29855"


def test_help_has_an_example_and_no_empty_options(capsys):
    for verb, (_, example) in VERBS.items():
        said = printed(capsys, verb, "--help")
        assert f"farfield {example.split()[0]}" in said
        assert "--empty" not in said
    assert app.name == ("farfield",)


def test_a_missing_extra_says_what_to_install():
    for package, extra in (("pydantic", "train"), ("torch.nn", "train"), ("uvicorn", "explore"), ("jinja2", "study")):
        error = ModuleNotFoundError(f"No module named {package!r}", name=package)
        assert _missing(error).endswith(f'pip install "farfield[{extra}]"')
    assert _missing(ModuleNotFoundError("No module named 'zz'", name="zz")) == "No module named 'zz'"


@pytest.mark.parametrize("verb", ["evaluate", "receptive", "speed", "generate"])
@pytest.mark.parametrize("name", ["runs/nothing", "./nothing", "/no/such/folder", "~/nothing"])
def test_a_path_that_does_not_exist_fails_at_once(capsys, monkeypatch, verb, name):
    import transformers

    monkeypatch.setattr(
        transformers.AutoModelForCausalLM, "from_pretrained", lambda *_, **__: pytest.fail("the hub was asked")
    )
    more = ["--prompt", "x"] if verb == "generate" else []
    assert "here is no folder" in printed(capsys, verb, name, *more, status=2)
