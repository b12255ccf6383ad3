"""`receptive` on every causal type of transformers: what it measures is what the model sees, or one sentence."""

from collections import Counter

import numpy as np
import pytest
import torch
from tiny_models import LENGTH, WINDOW, WORDS, NotTinyError, causal_types, tiny_model

from farfield.measure import Text, as_model, by_attention, truncation
from farfield.nn.decoder.masks import HiddenAttentionError

TEXT = Text(np.random.default_rng(0).integers(3, WORDS, 2 * LENGTH + 1), {"name": "random"})
FIRST = torch.from_numpy(TEXT.chunks(LENGTH, 1)[0][:-1])[None]


def measured(kind, model=None):
    model = tiny_model(kind) if model is None else model
    return by_attention(as_model(model, kind, training_length=LENGTH), TEXT, LENGTH, chunks=1, burn_in=0)


def by_distance(weights):
    """The mean attention by distance of a table (heads, N, N)."""
    return torch.stack([weights.diagonal(-t, 1, 2).sum(-1) for t in range(LENGTH)], -1).double().numpy() / LENGTH


@torch.no_grad()
def own_masses(model):
    """The same from the weights that the model's own code gives, layer by layer; None where it gives none."""
    try:
        weights = model(FIRST, use_cache=False, output_attentions=True).attentions
        return [by_distance(w[0]) for w in weights if w.shape[1:] == (4, LENGTH, LENGTH)]
    except Exception:
        return None


def test_every_type_is_measured_as_its_own_weights_say_or_ends_in_one_sentence(capsys):
    counts, wrong = Counter(), {}
    for kind in causal_types():
        try:
            model = tiny_model(kind)
            result = measured(kind, model)
        except NotTinyError:
            counts["not built"] += 1
        except HiddenAttentionError as error:
            counts["one sentence"] += 1
            wrong |= {kind: str(error)} if "\n" in str(error) else {}
        except Exception as error:
            wrong[kind] = f"{type(error).__name__}: {error}"
        else:
            own = own_masses(model)
            # where all of a row's weights sum to 1 though the model has a sink, its code leaves the sink out of them
            said = own is not None and len(own) == len(result.layers) > 0
            said = said and np.allclose([mass.sum(-1) for mass in own], result.mass.sum(-1), atol=1e-4)
            counts["as its own weights" if said else "as its own outputs"] += 1
            if said and (error := np.abs(np.stack(own) - result.mass).max()) > 1e-5:
                wrong[kind] = f"off by {error:.1e}"
    with capsys.disabled():
        print(f"\n{dict(counts)}")
    assert wrong == {}
    assert counts["as its own weights"] > 0.6 * len(causal_types())


def test_a_window_that_stands_in_the_mask_alone_is_seen():
    result = measured("phimoe")
    assert result.median().max() == WINDOW
    assert result.mass[:, :, WINDOW:].max() == 0.0
    assert result.mass[:, :, WINDOW - 1].min() > 0.0


def test_attention_that_differs_late_in_a_text_is_found_out():
    """The comparison with the model's own output goes as far as the measurement."""
    network = tiny_model("llama", attention=None)
    for layer in network.model.layers:
        own, config = layer.self_attn.o_proj.forward, network.config

        def late(x, own=own, config=config):
            ours = config._attn_implementation == "farfield-measured"
            return own(x) * torch.where(torch.arange(x.shape[1]) >= 30, 1.05 if ours else 1.0, 1.0)[:, None]

        layer.self_attn.o_proj.forward = late
    model = as_model(network, "late", training_length=LENGTH)
    assert len(by_attention(model, TEXT, 24, chunks=1).layers) == 2
    with pytest.raises(HiddenAttentionError, match="in a text of 40 tokens"):
        by_attention(model, TEXT, LENGTH, chunks=1)


@pytest.mark.parametrize("kind", ["mamba", "mamba2", "falcon_mamba", "xlstm"])
def test_a_model_without_attention_is_said_to_have_none(kind):
    with pytest.raises(HiddenAttentionError, match=f"^No layer of {kind} models has attention\\.$"):
        measured(kind)


def test_layers_without_attention_are_said_to_have_none():
    result = measured("bamba")
    assert (result.layers, result.no_attention) == ([1], [0])
    assert result.sentence.endswith(" Layers without attention: 1.")
    assert result.counts.shape[1] == result.mass.shape[0] == 1
    assert result.mass.sum(-1) == pytest.approx(1.0)
    told = result.json()
    assert told["layers_without_attention"] == [1]
    assert {row["layer"] for row in told["heads"]} == {2}
    assert min(row["median"] for row in told["heads"]) >= 1
    cut = truncation(as_model(tiny_model("bamba"), "bamba", LENGTH), TEXT, LENGTH, windows=[4], chunks=1)
    assert {row["layer"] for row in cut.json()["heads"]} == {2}


def test_a_layer_that_is_used_again_counts_each_time():
    if "hrm_text" not in causal_types():
        pytest.skip("this transformers has no model that uses its layers again")
    result = measured("hrm_text")
    assert result.queries > LENGTH
    assert result.mass.sum(-1) == pytest.approx(1.0)


def test_latent_attention_is_measured_and_attention_by_indices_ends_in_one_sentence():
    assert measured("deepseek_v3").layers == [0, 1]
    if "deepseek_v32" in causal_types():
        with pytest.raises(HiddenAttentionError, match="cannot be followed"):
            measured("deepseek_v32")
