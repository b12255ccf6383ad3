"""Tasks are shared among torch's threads, each task once; no result depends on their number."""

import multiprocessing
import os
import subprocess
import sys
import threading
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from farfield.nn import Bias, attention
from farfield.nn.attention.flash import threads as team
from farfield.nn.attention.flash.skip import BiasSums
from farfield.nn.attention.flash.threads import LEAST, ThreadTask, in_every_thread, share, share_threads
from farfield.nn.attention.flash.work_items import plan, shares, spans_of

pytestmark = pytest.mark.skipif(team._openmp() is None, reason="torch came without the GNU OpenMP runtime")


@pytest.fixture
def threads():
    """Sets the number of threads, and sets it back after the test."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.fixture
def shared(monkeypatch):
    """One entry for each time that work was shared out."""
    seen = []

    def noted(act):
        seen.append(act)
        return in_every_thread(act)

    monkeypatch.setattr(team, "in_every_thread", noted)
    return seen


def test_two_tasks_of_one_size_run_at_the_same_time(threads):
    threads(2)
    meeting = threading.Barrier(2, timeout=60)  # broken unless two threads come
    share([ThreadTask(LEAST, meeting.wait), ThreadTask(LEAST, meeting.wait)])


def test_every_task_runs_once_and_the_largest_are_taken_first(threads):
    threads(3)
    done = []
    share([ThreadTask(LEAST + i % 7, lambda i=i: done.append(i)) for i in range(50)])
    assert sorted(done) == list(range(50))
    assert done[0] % 7 == 6


def test_a_task_beyond_a_fair_share_comes_first_and_is_run_by_the_caller_with_all_threads(threads):
    threads(2)
    caller, where = threading.get_ident(), []
    small = [ThreadTask(LEAST, lambda: where.append("small")) for _ in range(2)]

    def large() -> None:
        assert threading.get_ident() == caller
        where.append(in_every_thread(lambda: None))  # inside shared work this would be one thread

    share([*small, ThreadTask(5 * LEAST, large)])
    assert where == [2, "small", "small"]


def test_what_does_not_divide_evenly_is_begun_by_all_threads_together(threads):
    threads(2)
    teams = []
    share([ThreadTask(LEAST, lambda: teams.append(in_every_thread(lambda: None))) for _ in range(3)])
    assert teams == [2, 1, 1]  # one after the other would be [2, 2, 2], and one thread with two of three [1, 1, 1]


def test_little_work_is_not_shared(threads, shared):
    threads(2)
    done = []
    share([ThreadTask(LEAST / 8, lambda: done.append(1)) for _ in range(4)])
    assert done == [1, 1, 1, 1]
    assert not shared


def test_inside_a_task_torch_computes_in_one_thread(threads):
    threads(2)
    team_of = []
    share([ThreadTask(LEAST, lambda: team_of.append(in_every_thread(lambda: None))) for _ in range(4)])
    assert team_of == [1, 1, 1, 1]


@pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt])
def test_an_error_in_any_task_is_raised_to_the_caller_and_ends_the_work(error, threads):
    threads(2)
    done = []

    def fail() -> None:
        raise error("task")

    with pytest.raises(error, match="task"):
        share([ThreadTask(LEAST + 1, fail), *(ThreadTask(LEAST, lambda: done.append(1)) for _ in range(200))])
    assert len(done) < 200
    share([ThreadTask(LEAST, lambda: done.append(2)), ThreadTask(LEAST, lambda: done.append(2))])
    assert done.count(2) == 2


def test_threads_keep_their_own_modes(threads):
    threads(2)
    modes = []

    def note() -> None:
        modes.append((torch.is_inference_mode_enabled(), torch.is_grad_enabled()))

    for inference in (False, True):
        with torch.inference_mode(inference):
            share(
                [ThreadTask(LEAST, lambda: modes.append((torch.is_inference_mode_enabled(), torch.is_grad_enabled())))]
                * 4
            )
        assert modes == [(inference, False)] * 4
        modes.clear()
        in_every_thread(lambda: modes.append((torch.is_inference_mode_enabled(), torch.is_grad_enabled())))
        assert modes == [(False, True)] * 2
        modes.clear()


def test_one_who_watches_the_operations_of_this_thread_sees_all(threads, draw, shared):
    class Kernels(TorchDispatchMode):
        count = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.count += "flash_attention" in func.name()
            return func(*args, **(kwargs or {}))

    q, k, v = draw(1, 8, 700, 16)
    counts = []
    for n in (1, 2):
        threads(n)
        with Kernels() as watch:
            attention(q, k, v, Bias("alibi", 8)(700))
        counts.append(watch.count)
    assert counts[0] == counts[1] > 8
    assert not shared


CALLS = {
    "each head its own reach": {"encoding": "alibi"},
    "all heads alike": {"encoding": "type1"},
    "every key": {"encoding": "alibi", "skip": False},
    "windows": {"encoding": "type1", "window": [300, 300, 900, 900, 900, 1200, 64, 1]},
    "grouped queries": {"encoding": "alibi", "key_heads": 4},
    "samples and padding": {"encoding": "alibi", "batch": 3, "padding": (400, 0, 90)},
}


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("case", CALLS)
def test_no_bit_depends_on_the_number_of_threads(case, learned, threads, draw, shared):
    n, options = 1200, dict(CALLS[case])
    q, k, v = draw(options.pop("batch", 1), 8, n, 16, key_heads=options.pop("key_heads", 8))
    bias = Bias(options.pop("encoding"), 8)(n).detach().requires_grad_(learned)
    leaves = [x.requires_grad_() for x in (q, k, v)] + ([bias] if learned else [])
    mask = None
    if padding := options.pop("padding", None):
        mask = torch.arange(n) >= torch.tensor(padding)[:, None]
    found = []
    for count in (1, 2, 3):
        threads(count)
        out = attention(q, k, v, bias, mask=mask, **options)
        found.append((out, *torch.autograd.grad(out.square().sum(), leaves)))
        assert (count > 1) == bool(shared)
    for other in found[1:]:
        for ours, alone in zip(other, found[0], strict=True):
            assert torch.equal(ours, alone)


def test_sharing_can_be_turned_off_and_no_bit_depends_on_it(threads, draw, shared):
    threads(2)
    q, k, v = draw(1, 8, 1200, 16)
    bias = Bias("alibi", 8)(1200).detach()
    want = attention(q, k, v, bias)
    assert len(shared) == 1
    before = share_threads(False)
    try:
        assert before
        assert torch.equal(attention(q, k, v, bias), want)
        assert len(shared) == 1
    finally:
        assert share_threads(before) is False
    attention(q, k, v, bias)
    assert len(shared) == 2


def test_sharing_can_be_turned_off_from_outside():
    code = "from farfield.nn import share_threads; print(share_threads(True))"
    for setting, said in (("0", "False"), ("1", "True")):
        environment = {**os.environ, "FARFIELD_SHARE_THREADS": setting}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == said


def test_it_works_where_nothing_may_be_recorded(threads, draw, shared):
    q, k, v = draw(1, 8, 1200, 16)
    bias = Bias("alibi", 8)(1200).detach()
    want = attention(q, k, v, bias)
    threads(2)
    with torch.inference_mode():
        assert torch.equal(attention(q, k, v, bias), want)
    assert shared


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_process_forked_after_shared_work_computes_the_same(threads, draw, shared):
    q, k, v = draw(1, 8, 1200, 16)
    bias = Bias("alibi", 8)(1200).detach()
    threads(2)
    want = attention(q, k, v, bias)
    assert shared

    def child(answer) -> None:
        torch.set_num_threads(1)  # as torch's data loader does in its workers
        answer.put(torch.equal(attention(q, k, v, bias), want))

    context = multiprocessing.get_context("fork")
    answer = context.Queue()
    process = context.Process(target=child, args=(answer,))
    process.start()
    assert answer.get(timeout=120)
    process.join(timeout=120)
    assert process.exitcode == 0


@settings(max_examples=60, deadline=None)
@given(
    windows=st.lists(st.sampled_from([40, 700, 5000]), min_size=6, max_size=6),
    key_heads=st.sampled_from([1, 2, 3, 6]),
    padding=st.none() | st.lists(st.sampled_from([0, 0, 900]), min_size=3, max_size=3),
    skip=st.booleans(),
    count=st.integers(1, 12),
)
def test_shares_hold_every_row_once_and_no_two_add_to_the_same_gradient(windows, key_heads, padding, skip, count):
    n, heads = 5000, len(windows)
    mask = None if padding is None else torch.arange(n) >= torch.tensor(padding)[:, None]
    sums = BiasSums(Bias("alibi", heads)(n), torch.float32, learned=False) if skip else None
    spans = spans_of(mask, 3, n)
    items = plan(spans, n, n, windows, key_heads, sums)
    rows, owner = torch.zeros(3, heads, n, dtype=torch.int), {}
    for number, part in enumerate(shares(items, count)):
        assert all(a < b for (a, _), (b, _) in pairwise(part))
        for i, item in part:
            item.at_queries(rows).add_(1)
            assert [*item.chunks()] == [*items[i].chunks()]
            if item.skips:
                assert item.heads == items[i].heads
            for head in range(item.key_heads.start, item.key_heads.stop):
                assert owner.setdefault(head, number) == number
    want = torch.ones_like(rows) if mask is None else mask[:, None].expand_as(rows).int()
    assert torch.equal(rows, want)
