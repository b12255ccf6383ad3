"""What cannot be meant is refused in one sentence that says what was given and what is needed."""

import pytest
import torch

from farfield.nn import Bias, attention
from farfield.nn.attention.validation import implementation_for

Q = torch.zeros(2, 4, 6, 8)
BIAS = torch.zeros(4, 6)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"q": Q[0]}, r"q has the shape \(4, 6, 8\); it must be \(batch, heads, tokens, width\)"),
        ({"q": Q.long()}, "q has the type torch.int64; it must be float64, float32"),
        ({"k": Q[:, :, :, :4]}, r"the shapes \(2, 4, 6, 8\), \(2, 4, 6, 4\) and .* agree in batch and width"),
        ({"v": Q[:, :, :3]}, "k and v in everything"),
        ({"k": Q.double(), "v": Q.double()}, "q, k and v are torch.float32 .* they must be alike"),
        ({"k": Q[:, :3], "v": Q[:, :3]}, "4 query heads cannot share 3 key heads"),
        ({"k": Q[:, :, :2], "v": Q[:, :, :2]}, "there are 6 queries but only 2 keys"),
        ({"q": Q[:, :, :0]}, "no dimension may be 0"),
        ({"bias": BIAS[:3]}, r"the bias has the shape \(3, 6\); it must be \(4, n\)"),
        ({"bias": BIAS[0]}, r"the bias has the shape \(6,\)"),
        ({"bias": BIAS[:, :5]}, "the bias covers 5 distances, but there are 6 keys; give at least 6"),
        ({"bias": BIAS.long()}, "the bias is torch.int64 .* must be floating point"),
        ({"bias": torch.full((4, 6), float("nan"))}, "the bias of head 0 at distance 0 is nan"),
        ({"bias": BIAS.clone().index_fill_(1, torch.tensor(3), float("inf"))}, "head 0 at distance 3 is inf"),
        ({"window": 0}, "a window of 0 tokens was given; it must be a whole number of at least 1"),
        ({"window": -3}, "a window of -3 tokens"),
        ({"window": 2.5}, "a window of 2.5 tokens"),
        ({"window": [1, 2]}, "window has 2 numbers for 4 heads"),
        ({"window": [1, 2, 0, 4]}, "a window of 0 tokens"),
        ({"mask": torch.ones(2, 5, dtype=torch.bool)}, r"padding mask is torch.bool of shape \(2, 5\)"),
        ({"mask": torch.ones(2, 6)}, r"must be bool of shape \(2, 6\)"),
        ({"mask": torch.tensor([[1, 1, 1, 1, 1, 1], [1, 0, 1, 1, 1, 0]]).bool()}, "mask of sample 1 has gaps"),
        ({"dtype": torch.int32}, "dtype is torch.int32"),
        ({"implementation": "fast"}, "implementation is 'fast'; it must be one of 'reference', 'flash', .* or None"),
    ],
)
def test_the_sentence_says_what_was_given(change, sentence):
    call = {"q": Q, "k": Q, "v": Q, "bias": BIAS} | change
    with pytest.raises(ValueError, match=sentence) as error:
        attention(**call)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("implementation", ["flash", "flex", "reference"])
def test_padding_between_real_tokens_is_refused_by_every_implementation(implementation):
    mask = torch.tensor([[1, 1, 1, 1, 1, 1], [0, 1, 0, 1, 1, 0]]).bool()
    with pytest.raises(ValueError, match="mask of sample 1 has gaps"):
        attention(Q, Q, Q, BIAS, mask=mask, implementation=implementation)


def test_the_device_chooses_between_torchs_own_kernels_and_experiments_are_named():
    assert implementation_for(None, torch.device("cpu")) == "flash"
    assert {implementation_for(None, torch.device(kind)) for kind in ("cuda", "mps", "xpu")} == {"flex"}
    assert implementation_for("triton", torch.device("cuda")) == "triton"


def test_nan_beyond_the_keys_is_nobodys_business():
    bias = torch.zeros(4, 9)
    bias[:, 6:] = float("nan")
    assert bool(attention(Q, Q, Q, bias).isfinite().all())


def test_the_same_mistakes_in_shape_are_caught_by_the_annotations(checked):
    import jaxtyping

    with pytest.raises(jaxtyping.TypeCheckError):
        checked(attention.attention)(Q, Q[:, :, :5], Q, BIAS)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("rope", 4), "the encoding 'rope' is not a bias"),
        (("t5", 4), "use T5Bias"),
        (("window", 4), "needs a value for its parameter 'w'"),
        (("-c*t", 4), "needs a value for its parameter 'c'"),
        (("alibi", 4, 64, {"z": 1}), "the formula has no parameter 'z': its parameters are k$"),
        (("alibi", 4, 64, {"k": [1, 2]}), "k has 2 values for 4 heads: give one, or one for each head"),
        (("alibi", 0), "0 heads"),
    ],
)
def test_a_bias_that_cannot_be_made_says_why(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        Bias(*arguments)


def test_distances_must_be_sensible():
    with pytest.raises(ValueError, match="0 distances from 0 on"):
        Bias("alibi", 4)(0)
