"""The processes that share a run: one, or as many as torchrun or accelerate started."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from farfield.training.settings import Settings

T = TypeVar("T")


class Processes:
    """How many processes there are, which one this is, and how they agree."""

    def __init__(self) -> None:
        self.count, self.rank, self.state = 1, 0, None
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            import torch
            from accelerate import PartialState

            self.state = PartialState(cpu=not torch.cuda.is_available())
            self.count, self.rank = self.state.num_processes, self.state.process_index

    @property
    def is_main(self) -> bool:
        return self.rank == 0

    def on_main_process(self, work: Callable[[], T]) -> T:
        """Let the main process do something, and give all of them its result, or its error."""
        if self.count == 1:
            return work()
        import torch.distributed

        outcome: list[Any] = [None, None]
        if self.is_main:
            try:
                outcome[0] = work()
            except Exception as error:
                outcome[1] = error if isinstance(error, ValueError) else RuntimeError(str(error))
        torch.distributed.broadcast_object_list(outcome, src=0)
        if outcome[1] is not None:
            raise outcome[1]
        return outcome[0]

    def main_process_first(self) -> AbstractContextManager[None]:
        """The main process does the work that fills a cache; the others then find it filled."""
        return nullcontext() if self.state is None else self.state.main_process_first()

    def share(self, settings: Settings) -> tuple[int, int]:
        """How many samples a process holds at once, and how many times in one update."""
        if settings.batch % self.count:
            raise ValueError(f"A batch of {settings.batch} samples cannot be shared by {self.count} processes.")
        mine = settings.batch // self.count
        most = min(mine, settings.micro_batch or mine)
        micro_batch = next(size for size in range(most, 0, -1) if mine % size == 0)
        return micro_batch, mine // micro_batch
