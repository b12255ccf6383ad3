"""Encodings of models that people run whose bias is known only within bounds, or that add a sink: classes of biases.

Gates, learned corrections and data choose the bias, so a formula says what they choose from: between(lo, hi), the row
i, sink(s). `farfield check NAME` judges the whole class. They cannot be trained by name, because a class is no bias.
"""

from __future__ import annotations

from farfield.zoo import SLOPE, Encoding, Fixed, Parameter


def _given(domain: str, example: str) -> Parameter:
    """A parameter that a person must give: its name opens the domain."""
    name = domain.split()[0]
    return Parameter(name, domain if domain != name else "", Fixed(None, "given", example))


_BOUND = _given("m > 0", "1")
# each of these is the formula of two entries
_BOUNDED = ("between(-m, m)", (_BOUND,))
_DECAY = ("-t*between(low, high)", (_given("low >= 0", "1/16"), _given("high > 0", "1")))
_WINDOW_AND_SINK = ("where(t < w, 0, -inf) + sink(s)", (_given("w >= 1", "128"), _given("s", "1")))
_ALL = (
    Encoding(
        "fox", "t*log(between(low, high))", (_given("low > 0", "1/2"), _given("high > 0", "15/16")),
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
        "alibi-interpolated", "-k*t*l/max(l, i + 1)", (SLOPE, _given("l > 0", "512")),
        source="Al-Khateeb et al. 2023, arXiv:2310.13017",
        note="beyond the training length l distances are shrunk to fit: the bias of a row never falls below -k*l",
    ),
    Encoding(
        "alibi-sqrt", "-k*sqrt(t)", (SLOPE,), source="Step-1 (StepFun 2024); use_alibi_sqrt in vLLM",
        note="ALiBi of the square root of the distance",
    ),
    Encoding(
        "dape", "-k*t + between(-m, m)", (SLOPE, _BOUND), source="Zheng et al. 2024 (DAPE), arXiv:2405.14722",
        note="ALiBi with a correction by the content, which is at most m",
    ),
    Encoding(
        "cope", *_BOUNDED, source="Golovneva et al. 2024 (CoPE), arXiv:2405.18719",
        note="positions counted by gates and cut at the largest: the term added to a logit is bounded",
    ),
    Encoding(
        "mlp", "-s*t + between(-m, m)", (_given("s > 0", "1/16"), _BOUND),
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
        (_given("w >= 1", "64"), _given("d >= 1", "2")), source="Beltagy et al. 2020 (Longformer), arXiv:2004.05150",
        note="w keys, each d tokens from the next",
    ),
    Encoding(
        "bipe", "-k*floor(t/between(1, m))", (SLOPE, _given("m >= 1", "32")),
        source="He et al. 2024 (BiPE), arXiv:2401.16421",
        note="ALiBi between segments of 1 to m tokens: a distance of t passes at least floor(t/m) of them",
    ),
    Encoding(
        "retnet", "t*log(g)", (_given("g > 0", "31/32"),), source="Sun et al. 2023 (RetNet), arXiv:2307.08621",
        note="weights g**t, g = 1 - 2**(-5 - h) in head h, without a softmax",
    ),
    Encoding(
        "rwkv", *_DECAY,
        source="Peng et al. 2023, 2024 (RWKV), arXiv:2305.13048, arXiv:2404.05892",
        note="each channel decays by a rate between low and high at every step, without a softmax",
    ),
    Encoding(
        "xpos", "between(-m*exp(-g*t), m*exp(-g*t))", (_BOUND, _given("g > 0", "1/64")),
        source="Sun et al. 2022 (xPos), arXiv:2212.10554",
        note="RoPE whose logits shrink with the distance: far keys become equal, not unseen",
    ),
    Encoding(
        "log-temperature", "between(-1, 1)*log(i + 1)",
        source="Nakanishi 2025 (scalable softmax), arXiv:2501.19399; Llama 4",
        note="logits multiplied by the logarithm of the row: a far key may hold its share in rows of any length",
    ),
)  # fmt: skip
CLASSES: dict[str, Encoding] = {e.name: e for e in _ALL}
