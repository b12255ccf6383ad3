"""The named encodings: one formula each, with its source.

To add one, write its formula here; it then appears in every command, in the models and in the documentation. `text`
is the form that was trained, `paper` the form as printed in "Exploring Transformer Extrapolation" (AAAI 2024), which
carries no scale per head; `NAME-paper` names the printed one.

`BOUNDED` are encodings of models that people run whose bias is known only within bounds, or that add a sink. Gates,
learned corrections and data choose the bias, so two formulas say between what they choose. `farfield check NAME` judges
all members at once. They cannot be trained by name, because a bounded family is no single bias.
"""

from __future__ import annotations

from fractions import Fraction

from farfield.zoo.encoding import SLOPE, Encoding, Fixed, Parameter, PerHead, Value
from farfield.zoo.learned import Learned


def _eighths(heads: int) -> list[Value]:
    """Sandwich's divisor of each head, 8h/H."""
    return [Fraction(8 * h, heads) for h in range(1, heads + 1)]


_BASE = Parameter("r", "r > 0", Fixed(lambda _: Fraction(10_000), "10000"))
_TERMS = Parameter("d", "d >= 2", Fixed(lambda width: Fraction(2 * width), "2 x head width"))
_PAPER = "Qin, Zhong, Deng 2024"

NAMED = [
    Encoding("alibi", "-k*t", (SLOPE,), "-k*t", "Press, Smith, Lewis 2022"),
    Encoding("type1", "-log(1 + (k*t)**2)", (SLOPE,), "-2*log(t + 1)", _PAPER),
    Encoding("type2", "-log(3 + k*t)**2", (SLOPE,), "-log(t + 1)**2", _PAPER),
    Encoding("inverse", "-log(1 + k*t)", (SLOPE,), "-log(t + 1)", _PAPER, "the paper's 1/n"),
    Encoding(
        "inverse-log", "-log(3 + k*t) - log(log(3 + k*t))", (SLOPE,), "-log(t + 2) - log(log(t + 2))", _PAPER,
        "the paper's 1/(n ln n); printed with n, which must be at least 2: n = t + 2",
    ),
    Encoding(
        "kerple-log", "-p*log(1 + a*t)",
        (Parameter("p", "p > 0", Learned((0, 2), 0.01)), Parameter("a", "a > 0", Learned((0, 1), 0.01))),
        "-p*log(1 + a*t)", "Chi et al. 2022 (KERPLE)",
    ),
    Encoding(
        "kerple-power", "-a*t**p",
        (Parameter("a", "a > 0", Learned((0, 1), 0.01)), Parameter("p", "p > 0", Learned((0, 2), 0.01, 2.0))),
        "-a*t**p", "Chi et al. 2022 (KERPLE)",
    ),
    Encoding(
        "sandwich", "(sum(cos(t/r**(2*j/d)), j, 1, d/2) - d/2)/s",
        (_BASE, _TERMS, Parameter("s", "s > 0", PerHead(lambda heads, _: _eighths(heads), "8h/H"))),
        "k*(sum(cos(t/r**(2*j/d)), j, 1, d/2) - d/2)", "Chi et al. 2023 (Sandwich)",
        "the paper claims that it converges; it diverges (docs/errata.md, E3)", (SLOPE, _BASE, _TERMS),
    ),
    Encoding(
        "window", "where(t < w, 0, -inf)", (Parameter("w", "w >= 1", Fixed(None, "given", "512")),),
        "where(t <= w, 0, -inf)", "Beltagy et al. 2020",
        "w tokens, the token itself among them; the paper's mask keeps w + 1 (docs/errata.md, E11)",
    ),
    Encoding("none", "0", (), None, "Haviv et al. 2022 (NoPE)", "no encoding at all"),
    Encoding(
        "t5", "where(t < 113, near, far)",
        (Parameter("near", "", Learned((0, 0))), Parameter("far", "", Learned((0, 0)))), None, "Raffel et al. 2020",
        "`near` stands for the 31 learned values of the nearer buckets, `far` for the last one: a constant tail",
    ),
    Encoding(
        "sinusoidal", None, source="Vaswani et al. 2017",
        note="added to the token embedding: there is no bias r(t), so the theorem does not apply",
    ),
    Encoding(
        "rope", None, source="Su et al. 2021",
        note="rotates queries and keys: the logit depends on content and distance together, there is no bias r(t), "
        "so the theorem does not apply",
    ),
]  # fmt: skip

# T5's bucket of a distance: exact below 16, then logarithmic up to the maximum 128; the last of the 32 begins at 113.
T5_BUCKET = "where(t < 16, t, min(31, 16 + floor(16*log(max(t, 16)/16)/log(8))))"
T5_BUCKETS = 32


# ---------------------------------------------------------------------------------------------------- bounded families
def _open(domain: str, example: str) -> Parameter:
    """A parameter whose value a user must give: its name opens the domain."""
    name = domain.split()[0]
    return Parameter(name, domain if domain != name else "", Fixed(None, "given", example))


_BOUND = _open("m > 0", "1")
# each of these is the formula of two entries
_BOUNDED = ("upper: m; lower: -m", (_BOUND,))
_DECAY = ("upper: -low*t; lower: -high*t", (_open("low >= 0", "1/16"), _open("high > 0", "1")))
_WINDOW_AND_SINK = ("where(t < w, 0, -inf); sink: s", (_open("w >= 1", "128"), _open("s", "1")))
_BOUNDED_ENCODINGS = (
    Encoding(
        "fox", "upper: t*log(high); lower: t*log(low)", (_open("low > 0", "1/2"), _open("high > 0", "15/16")),
        source="Lin et al. 2025 (Forgetting Transformer), arXiv:2503.02130",
        note="the bias is the sum of log f over the distance, each gate f between low and high",
    ),
    Encoding(
        "cable", *_DECAY,
        source="Veisi et al. 2025 (CABLE), arXiv:2503.08067",
        note="the bias is minus a sum of contributions of the content over the distance, each between low and high",
    ),
    Encoding(
        "fire", *_BOUNDED, source="Li et al. 2023 (FIRE), arXiv:2310.04418",
        note="a learned function of log(1 + c*t)/log(1 + c*max(L, i)), which lies between 0 and 1: so it is bounded",
    ),
    Encoding(
        "alibi-interpolated", "upper: 0; lower: -k*t*l/max(l, t + 1)", (SLOPE, _open("l > 0", "512")),
        source="Al-Khateeb et al. 2023, arXiv:2310.13017",
        note="beyond the training length l distances are shrunk to fit: the bias of a row never falls below -k*l",
    ),
    Encoding(
        "alibi-sqrt", "-k*sqrt(t)", (SLOPE,), source="Step-1 (StepFun 2024); use_alibi_sqrt in vLLM",
        note="ALiBi of the square root of the distance",
    ),
    Encoding(
        "dape", "upper: -k*t + m; lower: -k*t - m", (SLOPE, _BOUND),
        source="Zheng et al. 2024 (DAPE), arXiv:2405.14722",
        note="ALiBi with a correction by the content, which is at most m",
    ),
    Encoding(
        "cope", *_BOUNDED, source="Golovneva et al. 2024 (CoPE), arXiv:2405.18719",
        note="positions counted by gates and cut at the largest: the term added to a logit is bounded",
    ),
    Encoding(
        "mlp", "upper: -s*t + m; lower: -s*t - m", (_open("s > 0", "1/16"), _BOUND),
        source="Liu et al. 2022 (continuous position bias), arXiv:2111.09883",
        note="a ReLU network of the distance is a line from some distance on: its slope -s at infinity decides",
    ),
    Encoding(
        "streaming-llm", *_WINDOW_AND_SINK,
        source="Xiao et al. 2023 (StreamingLLM), arXiv:2309.17453",
        note="a window, and the first tokens, which are always kept: they act as a sink",
    ),
    Encoding(
        "window-sink", *_WINDOW_AND_SINK,
        source="OpenAI 2025 (gpt-oss), arXiv:2508.10925",
        note="a window, and a learned logit s of each head in the denominator",
    ),
    Encoding(
        "dilated-window", "where(t < w*d, where(t - d*floor(t/d) < 1, 0, -inf), -inf)",
        (_open("w >= 1", "64"), _open("d >= 1", "2")), source="Beltagy et al. 2020 (Longformer), arXiv:2004.05150",
        note="w keys, each d tokens from the next",
    ),
    Encoding(
        "bipe", "upper: -k*floor(t/m); lower: -k*t", (SLOPE, _open("m >= 1", "32")),
        source="He et al. 2024 (BiPE), arXiv:2401.16421",
        note="ALiBi between segments of 1 to m tokens: a distance of t passes at least floor(t/m) of them",
    ),
    Encoding(
        "retnet", "t*log(g)", (_open("g > 0", "31/32"),), source="Sun et al. 2023 (RetNet), arXiv:2307.08621",
        note="weights g**t, g = 1 - 2**(-5 - h) in head h, without a softmax",
    ),
    Encoding(
        "rwkv", *_DECAY,
        source="Peng et al. 2023, 2024 (RWKV), arXiv:2305.13048, arXiv:2404.05892",
        note="each channel decays by a rate between low and high at every step, without a softmax",
    ),
    Encoding(
        "xpos", "upper: m*exp(-g*t); lower: -m*exp(-g*t)", (_BOUND, _open("g > 0", "1/64")),
        source="Sun et al. 2022 (xPos), arXiv:2212.10554",
        note="RoPE whose logits shrink with the distance: far keys become equal, not unseen",
    ),
    Encoding(
        "log-temperature", None,
        source="Nakanishi 2025 (scalable softmax), arXiv:2501.19399; Llama 4",
        note="logits multiplied by the logarithm of the row: there is no bias r(t), so the theorem does not apply",
        theorem=("neither", "the logits of row i spread over an interval whose width grows as log(i + 1): one key, as "
                 "far away as the row allows, may hold a share that tends to 1, so there is no window, and attention "
                 "need not disperse"),
    ),
)  # fmt: skip
BOUNDED: dict[str, Encoding] = {e.name: e for e in _BOUNDED_ENCODINGS}
