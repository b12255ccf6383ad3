"""Every causal type of the installed transformers with our attention: equal to eager, or refused in one sentence.

`python tests/nn/decoder/test_types.py` writes docs/attention-types.md anew.
"""

from __future__ import annotations

import functools
import sys
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
import transformers
from transformers import AutoModelForCausalLM

sys.path.insert(0, str(Path(__file__).parents[2]))
from tiny_models import LENGTH, WINDOW, WORDS, NotTinyError, causal_types, tiny_config, tiny_model

from farfield.nn.decoder import interface

PAGE = Path(__file__).parents[3] / "docs" / "attention-types.md"
CLOSE = 1e-5  # of the largest logit
IDS = torch.randint(3, WORDS, (2, LENGTH), generator=torch.Generator().manual_seed(0))
PADDED = (torch.arange(LENGTH) >= torch.tensor([0, 5])[:, None]).long()
NOT_HANDED_OVER = "transformers computes it in code of the model's own"


class Outcome(NamedTuple):
    """What became of one type: "equal", "refused", "own attention", "not built", or something that must not be."""

    result: str
    reason: str = ""
    window: int | None = None  # that a mask asked for
    wider: float = 0.0  # the error if the window were one token wider


@torch.no_grad()
def at_once(model: Any) -> torch.Tensor:
    return model(IDS, use_cache=False).logits


@torch.no_grad()
def padded(model: Any) -> torch.Tensor:
    return model(IDS, attention_mask=PADDED, use_cache=False).logits[PADDED.bool()]


@torch.no_grad()
def cached(model: Any) -> torch.Tensor:
    """A prompt, several tokens at once, then one by one, with the model's own cache."""
    out, parts = model(IDS[:, :20], use_cache=True), []
    for part in IDS[:, 20:].split([LENGTH - 23, 1, 1, 1], 1):
        out = model(part, past_key_values=out.past_key_values, use_cache=True)
        parts.append(out.logits)
    return torch.cat(parts, 1)


def off(got: torch.Tensor, want: torch.Tensor) -> float:
    return float((got - want).abs().max() / want.abs().max())


def in_one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


@functools.cache
def outcome(kind: str) -> Outcome:
    """Eager attention against ours in the same model: at once, with padding, and with a cache."""
    try:
        model = tiny_model(kind)
    except NotTinyError as error:
        return Outcome("not built", str(error)[:200])
    wanted = {}
    for run in (at_once, padded, cached):
        try:
            wanted[run] = run(model)
        except Exception as error:  # the model itself cannot
            if run is at_once:
                return Outcome("not built", in_one_line(error))
    model.set_attn_implementation(interface.NAME)
    own = model.config._attn_implementation != interface.NAME
    if own:  # so it stays as it was; what if it is made with ours from the start?
        try:
            weights = model.state_dict()
            model = AutoModelForCausalLM.from_config(tiny_config(kind), attn_implementation=interface.NAME).eval()
            model.load_state_dict(weights)
        except KeyError as error:  # of a table of the model's own
            known = str(error) == repr(interface.NAME)
            return Outcome("own attention", NOT_HANDED_OVER) if known else Outcome("CRASHED", in_one_line(error))
    windows, original = set(), interface.asked

    def watched(*given: Any) -> Any:
        windows.add(original(*given).window)
        return original(*given)

    def wider(*given: Any) -> Any:
        window = original(*given).window
        return original(*given)._replace(window=None if window is None else window + 1)

    try:
        interface.asked = watched
        errors = {run: off(run(model), want) for run, want in wanted.items()}
        interface.asked = wider
        change = off(at_once(model), wanted[at_once])
    except ValueError as error:
        good = "\n" not in str(error) and "attn_implementation" in str(error)
        return Outcome("refused", str(error)) if good else Outcome("CRASHED", in_one_line(error))
    except Exception as error:
        return Outcome("CRASHED", in_one_line(error))
    finally:
        interface.asked = original
    for run, error in errors.items():
        if not error <= CLOSE:
            return Outcome("DIFFERENT", f"{run.__name__}: by {error:.1e} of the largest logit")
    if own or not windows:
        return Outcome("own attention", NOT_HANDED_OVER if own else "it has no attention")
    window = min((w for w in windows if w), default=None)
    return Outcome("equal", "" if window is None else f"windows of {window} tokens kept", window, change)


def page() -> str:
    """The table, as the documentation has it."""
    results = {kind: outcome(kind) for kind in sorted(causal_types())}
    counts = Counter(one.result for one in results.values())
    rows = [f"| {kind} | {one.result} | {one.reason.replace('|', '/')} |" for kind, one in results.items()]
    said = ", ".join(f"{number} {result}" for result, number in counts.most_common())
    return f"""# Which models take `attn_implementation="farfield"`

All {len(results)} causal types of transformers {transformers.__version__}, as tiny models with random weights:
{said}.

- *Equal*: the logits are those of `attn_implementation="eager"` within {CLOSE:.0e} of the largest, for {LENGTH} tokens
  at once, with padding, and with a cache. Windows and chunks are {WINDOW} tokens: the text runs past them.
- *Refused*: the first call ends in this sentence.
- *Own attention*: transformers does not hand the attention over, or there is none.
- *Not built*: no tiny model can be made here.

`python tests/nn/decoder/test_types.py` writes this page; a test repeats it with the installed transformers.

| type | result | reason |
| --- | --- | --- |
""" + "".join(f"{row}\n" for row in rows)


def test_every_type_is_equal_or_refused_in_one_sentence(capsys):
    results = {kind: outcome(kind) for kind in causal_types()}
    counts = Counter(one.result for one in results.values())
    with capsys.disabled():
        print(f"\ntransformers {transformers.__version__}: {dict(counts)}")
    allowed = ("equal", "refused", "own attention", "not built")
    assert {kind: one for kind, one in results.items() if one.result not in allowed} == {}
    assert counts["equal"] > 0.6 * len(results)  # not everything is refused
    assert counts["not built"] < 0.1 * len(results)


def test_a_window_that_is_one_token_too_wide_would_be_noticed():
    wider = {kind: outcome(kind).wider for kind in causal_types() if outcome(kind).window == WINDOW}
    assert len(wider) > 15
    assert {kind: change for kind, change in wider.items() if change < 100 * CLOSE} == {}


@pytest.mark.parametrize(
    ("kind", "result", "said"),
    [
        ("llama4_text", "refused", "longer than the model's chunks of 8 tokens"),
        ("phimoe", "equal", "windows of 8 tokens"),  # which stand in the mask alone
        ("inkling_text", "refused", "given position_bias"),
        ("doge", "refused", "computes with its mask"),
        ("deepseek_v4", "refused", "computes with its mask"),
        ("deepseek_v3", "equal", ""),  # its values are narrower than its keys
    ],
)
def test_what_was_silently_different(kind, result, said):
    if kind not in causal_types():
        pytest.skip(f"transformers {transformers.__version__} has no {kind}")
    assert outcome(kind).result == result
    assert said in outcome(kind).reason


def test_the_page_says_so():
    text = PAGE.read_text()
    if f"transformers {transformers.__version__}," not in text:
        pytest.skip("the page was written with another version of transformers")
    assert text == page()


if __name__ == "__main__":
    torch.set_num_threads(1)
    PAGE.write_text(page())
