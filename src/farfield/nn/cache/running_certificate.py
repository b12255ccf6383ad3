"""The certificate of one layer as it stands: the worst of all tokens so far, for each head.

Shapes: B samples, H heads, M rows, A ages.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from farfield.nn.cache.bounds import LargestNorms, RowBounds, certify
from farfield.nn.cache.history import AGES

if TYPE_CHECKING:
    from farfield.theory.fields.windows import LogSums


class RunningCertificate:
    """What is certain about the heads of one layer, with the sums of their weights that it rests on."""

    def __init__(self, heads: int, limit: float) -> None:
        self.limit = limit  # epsilon
        self.share, self.change, self.rounding, self.gap = (torch.zeros(heads, dtype=torch.float64) for _ in range(4))
        self.gap.fill_(-math.inf)  # the largest logit gap of any token
        self.over = torch.zeros(heads, dtype=torch.long)  # tokens whose share exceeded epsilon
        self.log_head, self.log_tail = (torch.zeros(heads, 1, dtype=torch.float64) for _ in range(2))
        self.log_old = torch.zeros(AGES, heads, 1, dtype=torch.float64)

    def rest_on(self, head: int, sums: Sequence[LogSums]) -> None:
        """Use these sums for a head from now on: before and beyond its window, then beyond that of each older age."""
        self.log_head[head], self.log_tail[head] = sums[0]
        self.log_old[:, head, 0] = torch.tensor([s.tail for s in sums])

    def bounds(
        self, q: Tensor, scale: float, lse: Tensor, kept: int, norms: LargestNorms, softcap: float | None = None
    ) -> RowBounds:
        """What is certain about each of some new rows."""
        near, tail, old = (x.to(q.device) for x in (self.log_head, self.log_tail, self.log_old))
        return certify(q, scale, lse, kept, norms, near, tail, old, softcap)

    def take(self, rows: RowBounds, log_head: Tensor, real: Tensor | None) -> Tensor:
        """Count some rows in; the largest share of each head among them.

        Args:
            rows: What is certain about them.
            log_head: The log of the sum of the weights that each row sees, which its gap is counted from.
            real: Which rows are no padding, (B, 1, M); None if all are.
        """
        gap = rows.gap + log_head
        gap = gap.masked_fill(~gap.isfinite(), -math.inf)  # padding, or numbers for which no window is enough
        if real is not None:
            gap = gap.masked_fill(~real, -math.inf)
        self.gap = torch.maximum(self.gap, gap.amax((0, 2)).cpu())
        share, change = rows.share.amax((0, 2)).cpu(), rows.change.amax((0, 2)).cpu()
        self.share, self.change = torch.maximum(self.share, share), torch.maximum(self.change, change)
        self.rounding = torch.maximum(self.rounding, rows.rounding.amax((0, 2)).cpu())
        if bool((share > self.limit).any()):
            self.over += (rows.share > self.limit).sum((0, 2)).cpu()
        return share
