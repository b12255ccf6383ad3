"""The named encodings: one formula each, with its source.

To add one, write its formula here; it then appears in every command, in the models and in the documentation. `text`
is the form that was trained, `paper` the form as printed in "Exploring Transformer Extrapolation" (AAAI 2024), which
carries no scale per head; `NAME-paper` names the printed one.
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
        "inverse-log",
        "-log(3 + k*t) - log(log(3 + k*t))",
        (SLOPE,),
        "-log(t + 2) - log(log(t + 2))",
        _PAPER,
        "the paper's 1/(n ln n); printed with n, which must be at least 2: n = t + 2",
    ),
    Encoding(
        "kerple-log",
        "-p*log(1 + a*t)",
        (Parameter("p", "p > 0", Learned((0, 2), 0.01)), Parameter("a", "a > 0", Learned((0, 1), 0.01))),
        "-p*log(1 + a*t)",
        "Chi et al. 2022 (KERPLE)",
    ),
    Encoding(
        "kerple-power",
        "-a*t**p",
        (Parameter("a", "a > 0", Learned((0, 1), 0.01)), Parameter("p", "p > 0", Learned((0, 2), 0.01, 2.0))),
        "-a*t**p",
        "Chi et al. 2022 (KERPLE)",
    ),
    Encoding(
        "sandwich",
        "(sum(cos(t/r**(2*j/d)), j, 1, d/2) - d/2)/s",
        (_BASE, _TERMS, Parameter("s", "s > 0", PerHead(lambda heads, _: _eighths(heads), "8h/H"))),
        "k*(sum(cos(t/r**(2*j/d)), j, 1, d/2) - d/2)",
        "Chi et al. 2023 (Sandwich)",
        "the paper claims that it converges; it diverges (docs/errata.md, E3)",
        (SLOPE, _BASE, _TERMS),
    ),
    Encoding(
        "window",
        "where(t < w, 0, -inf)",
        (Parameter("w", "w >= 1", Fixed(None, "given", "512")),),
        "where(t <= w, 0, -inf)",
        "Beltagy et al. 2020",
        "w tokens, the token itself among them; the paper's mask keeps w + 1 (docs/errata.md, E11)",
    ),
    Encoding("none", "0", (), None, "Haviv et al. 2022 (NoPE)", "no encoding at all"),
    Encoding(
        "t5",
        "where(t < 113, near, far)",
        (
            Parameter("near", "", Learned((0, 0))),
            Parameter("far", "", Learned((0, 0))),
        ),
        None,
        "Raffel et al. 2020",
        "`near` stands for the 31 learned values of the nearer buckets, `far` for the last one: a constant tail",
    ),
    Encoding(
        "sinusoidal",
        None,
        source="Vaswani et al. 2017",
        note="added to the token embedding: there is no bias r(t), so the theorem does not apply",
    ),
    Encoding(
        "rope",
        None,
        source="Su et al. 2021",
        note="rotates queries and keys: the logit depends on content and distance together, there is no bias r(t), "
        "so the theorem does not apply",
    ),
]

# T5's bucket of a distance: exact below 16, then logarithmic up to the maximum 128; the last of the 32 begins at 113.
T5_BUCKET = "where(t < 16, t, min(31, 16 + floor(16*log(max(t, 16)/16)/log(8))))"
T5_BUCKETS = 32
