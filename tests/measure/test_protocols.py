"""Every protocol equals the definition, one token at a time, and scores the same tokens."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from farfield.measure import protocols
from farfield.measure.perplexity import by_position, evaluate, measure
from farfield.measure.protocols import non_overlapping, sliding, token_losses
from farfield.measure.results import Trial

from .conftest import our_model, theirs


def one_token_at_a_time(network, ids, context_of, window=None):
    """The loss of token p given the tokens from `context_of(p)` on, each in a pass of its own."""
    result = []
    for p in range(1, len(ids)):
        read = torch.from_numpy(ids[context_of(p) : p])[None]
        more = {} if window is None else {"window": window}
        with torch.no_grad():
            logits = network(input_ids=read, use_cache=False, **more).logits[0, -1].double()
        result.append(-logits.log_softmax(-1)[ids[p]].item())
    return np.array(result)


@pytest.mark.parametrize("kind", ["alibi", "sinusoidal", "rope", "kerple-log", "gpt2", "llama", "bloom"])
def test_non_overlapping_equals_one_token_at_a_time(kind, text):
    model = theirs(kind) if kind in ("gpt2", "llama", "bloom") else our_model(kind)
    ids = text(70).ids[0]
    ours = token_losses(model, ids, non_overlapping(70, 16))[0]
    brute = one_token_at_a_time(model.network, ids, lambda p: (p - 1) // 16 * 16)
    np.testing.assert_allclose(ours, brute, atol=1e-5)


@pytest.mark.parametrize("stride", [1, 5, 16])
@pytest.mark.parametrize("kind", ["type1", "gpt2"])
def test_sliding_equals_one_token_at_a_time(kind, stride, text):
    model = theirs(kind) if kind == "gpt2" else our_model(kind)
    ids = text(50).ids[0]
    ours = token_losses(model, ids, sliding(50, 16, stride))[0]
    # token p is the first, ..., last of the `stride` tokens that one window scores; the window ends with the last
    brute = one_token_at_a_time(model.network, ids, lambda p: max(0, -(-(p - 16) // stride) * stride))
    np.testing.assert_allclose(ours, brute, atol=1e-5)


def test_stride_1_gives_every_token_the_last_n_tokens(text):
    model, ids = our_model(), text(40).ids[0]
    ours = token_losses(model, ids, sliding(40, 16, 1))[0]
    np.testing.assert_allclose(ours, one_token_at_a_time(model.network, ids, lambda p: max(0, p - 16)), atol=1e-5)


@pytest.mark.parametrize("window", [3, [2, 3, 5, 9]])
def test_windowed_equals_one_token_at_a_time(window, text):
    model, ids = our_model("inverse"), text(60).ids[0]
    ours = token_losses(model, ids, non_overlapping(60, 24), window)[0]
    brute = one_token_at_a_time(model.network, ids, lambda p: (p - 1) // 24 * 24, window)
    np.testing.assert_allclose(ours, brute, atol=1e-5)


@pytest.mark.parametrize("kind", ["gpt2", "llama", "bloom"])
def test_a_window_in_a_model_of_transformers_is_one(kind, text):
    """With one layer, a window of w tokens gives what reading only the last w tokens gives, up to positions."""
    model = theirs(kind)
    ids = torch.from_numpy(text(31).ids[0][:-1])[None]
    with torch.no_grad():
        full, cut = model.states(ids), model.states(ids, 31)
        narrow, changed = model.states(ids, 2), ids.clone()
        changed[0, 5] = (ids[0, 5] + 1) % 61
        other = model.states(changed, 2)
    torch.testing.assert_close(full, cut, atol=1e-5, rtol=1e-4)
    # two layers with a window of 2 see 3 tokens: a change of token 5 reaches positions 5, 6 and 7 only
    moved = (narrow - other).abs().amax(-1)[0] > 1e-7
    assert moved.nonzero().flatten().tolist() == [5, 6, 7]


@given(st.integers(1, 200), st.integers(1, 60), st.integers(1, 60))
def test_every_protocol_scores_every_token_once(tokens, length, stride):
    stride = min(stride, length)
    for chunks in (non_overlapping(tokens, length), sliding(tokens, length, stride)):
        places = [place for chunk in chunks for place in range(chunk.first, chunk.stop)]
        assert places == list(range(tokens))
        assert all(0 <= p.start <= p.first < p.stop and p.stop - p.start <= length for p in chunks)
        assert all(a.start <= b.start for a, b in pairwise(chunks))


def test_a_stride_of_the_length_is_no_overlap():
    assert sliding(100, 16, 16) == non_overlapping(100, 16)


@pytest.mark.parametrize("stride", [0, 17])
def test_an_impossible_stride_is_refused(stride):
    with pytest.raises(ValueError, match="stride"):
        sliding(100, 16, stride)


def test_every_length_scores_the_same_tokens(text):
    result = evaluate(our_model(), text(300), "1x,1.5x,18x")
    assert {row.tokens for row in result.rows} == {300}
    assert [row.length for row in result.of("sliding")] == [16, 24, 288]


def test_a_batch_that_does_not_fit_is_halved_with_the_same_result(text, monkeypatch):
    model, ids = our_model(), text(320).ids[0]
    expected = token_losses(model, ids, non_overlapping(320, 16))
    sizes = []
    losses = model.losses

    def narrow(batch, targets, window=None):
        sizes.append(len(batch))
        if len(batch) > 3:
            raise torch.OutOfMemoryError("no room")
        return losses(batch, targets, window)

    monkeypatch.setattr(model, "losses", narrow)
    result = token_losses(model, ids, non_overlapping(320, 16), batch=16)
    assert sizes[:4] == [16, 8, 4, 2]
    np.testing.assert_allclose(result, expected, rtol=1e-6)

    def never(batch, targets, window=None):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes")

    monkeypatch.setattr(model, "losses", never)
    with pytest.raises(ValueError, match="does not fit in memory"):
        token_losses(model, ids, non_overlapping(320, 16))


def test_memory_is_predicted_before_it_starts(text, monkeypatch):
    from farfield.measure import memory

    model = our_model()
    one, two = (memory.predicted(model, b, 64) for b in (1, 2))
    assert one < two
    monkeypatch.setattr(memory, "available", lambda device: int(one / 0.9) + 10)
    assert memory.fits(model, 8, 64) == 1
    monkeypatch.setattr(memory, "available", lambda device: 1000)
    with pytest.raises(ValueError, match="needs about"):
        token_losses(model, text(128).ids[0], non_overlapping(128, 64))


def test_a_model_with_n_by_n_scores_is_expected_to_need_them():
    from farfield.measure.memory import predicted

    assert predicted(theirs("bloom"), 1, 4096) > 3 * 4 * 4096**2 * 4
    assert predicted(our_model(), 1, 4096) < 4096**2


def test_the_loss_by_tokens_seen_is_the_mean_at_each_position(text):
    model, ids = our_model(), text(160).ids[0]
    losses = token_losses(model, ids, non_overlapping(160, 16))
    table = by_position(losses, 16)
    assert [(row["from"], row["to"]) for row in table] == [(1, 1), (2, 2), (3, 4), (5, 8), (9, 16)]
    assert sum(row["tokens"] for row in table) == 160
    assert table[0]["loss"] == pytest.approx(losses.reshape(10, 16)[:, 0].mean())
    assert table[3]["loss"] == pytest.approx(losses.reshape(10, 16)[:, 4:8].mean())


def test_the_loss_of_gpt2_at_its_training_length_is_that_of_transformers(text):
    model, ids = theirs("gpt2"), text(32).ids[0]
    row = measure(model, ids, Trial(32, "non-overlapping"))
    batch = torch.from_numpy(ids[:32])[None]
    with torch.no_grad():
        whole = model.network(batch, labels=batch, shift_labels=torch.from_numpy(ids[1:])[None]).loss.item()
        usual = model.network(batch, labels=batch).loss.item()  # all but the last token
    assert row.loss == pytest.approx(whole, abs=1e-5)
    assert token_losses(model, ids[:32], non_overlapping(31, 32)).mean() == pytest.approx(usual, abs=1e-5)


def test_reading_at_once_is_a_choice_of_speed_only(text, monkeypatch):
    model, ids = our_model(), text(200).ids[0]
    one = token_losses(model, ids, non_overlapping(200, 16))
    monkeypatch.setattr(protocols, "AT_ONCE", 1)
    np.testing.assert_allclose(token_losses(model, ids, non_overlapping(200, 16)), one, rtol=1e-6)


@pytest.mark.parametrize("encoding", ["alibi", "sinusoidal", "rope", "kerple-log"])
def test_the_lengths_of_a_sweep_share_work_and_change_nothing(encoding, text, monkeypatch):
    model, some = our_model(encoding), text(300)
    read = []
    states = model.states
    monkeypatch.setattr(model, "states", lambda ids, window=None: read.append(ids.numel()) or states(ids, window))
    result = evaluate(model, some, "1x,1.5x,2x,4x,18x")
    shared = sum(read)
    read.clear()
    for row in result.rows:
        condition = Trial(row.length, row.protocol, stride=row.extra.get("stride"))
        assert row.loss == pytest.approx(measure(model, some.ids, condition).loss, abs=1e-6)
    assert shared < 0.75 * sum(read)
