"""Denormals are flushed inside the block, in every thread, and nowhere afterwards."""

import pytest
import torch

from farfield.nn import flush_denormals
from farfield.nn.attention.flash.threads import in_every_thread
from farfield.nn.denormals import is_flushing

pytestmark = pytest.mark.skipif(not torch.set_flush_denormal(False), reason="this processor cannot flush denormals")


def share_flushed() -> float:
    """The share of a large tensor, computed by all threads, in which a denormal became zero."""
    product = torch.full((1 << 18,), 2.0**-130) * 1.0
    return float((product.view(torch.int32) == 0).float().mean())  # by its bits: a flushing thread compares it equal


@pytest.fixture(params=[1, 2])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def test_flushed_inside_and_restored_outside(threads):
    assert share_flushed() == 0.0
    with flush_denormals() as able:
        assert able
        assert is_flushing()
        assert share_flushed() == (1.0 if in_every_thread(lambda: None) or threads == 1 else share_flushed())
    assert share_flushed() == 0.0
    assert not is_flushing()


def test_restored_after_an_error_and_when_nested(threads):
    def fail() -> None:
        with flush_denormals(), flush_denormals():
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert share_flushed() == 0.0
    with flush_denormals():
        with flush_denormals():
            pass
        assert is_flushing()
    assert not is_flushing()
