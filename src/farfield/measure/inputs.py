"""What a layer of attention works with, whatever the architecture: windows, chunks, sinks and soft caps included.

Where nothing but a bias by distance and a window is needed, our attention does the work in O(n) memory. Soft caps,
chunks and a bias by key are computed a few rows at a time. A sink is a logit in the denominator that no key has: it
scales the output by sigmoid(lse - sink).

Shapes: B samples, H heads, N tokens, D width of a head, R queries of a block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

Window = int | Sequence[int] | None
BLOCK_BYTES = 64 << 20  # what the logits of a block may take


@dataclass(frozen=True)
class AttentionInputs:
    """What one layer attends with: q is (B, H, N, D); k, v may have fewer heads; bias is (H, N) or None.

    Attributes:
        window: That is in force, the narrower of the one that was asked for and the model's own.
        own: The model's own window: no key beyond it ever counts.
        chunk: The model's own chunks: a query sees the keys of its chunk of so many tokens.
        soft_cap: Logits before the bias are kept within plus and minus this by tanh.
        sink: A logit of each head in the denominator, (H,).
        key_bias: What each key adds to its logit wherever the query stands, (H, N).
        shift: The queries stand so many tokens after the keys with their number: see `beyond`.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    bias: Tensor | None
    scale: float
    window: Window = None
    own: int | None = None
    chunk: int | None = None
    soft_cap: float | None = None
    sink: Tensor | None = None
    key_bias: Tensor | None = None
    shift: int = 0

    def bias_or_zero(self) -> Tensor:
        """The bias of each head by distance in float64, 0 where the model has none, -inf beyond its own window."""
        n = self.k.shape[2]
        if self.bias is None:
            line = torch.zeros(self.q.shape[1], n, dtype=torch.float64, device=self.q.device)
        else:
            line = self.bias[:, :n].double()
        if self.own is not None and self.own < n:
            line = line.clone()
            line[:, self.own :] = float("-inf")
        return line

    def spread(self, x: Tensor) -> Tensor:
        """Keys or values with one head for each query head."""
        return x.repeat_interleave(self.q.shape[1] // x.shape[1], 1)

    def some_heads(self, heads: list[int]) -> AttentionInputs:
        """These heads only, each with keys of its own, without the window in force."""
        bias, sink, key_bias = (None if x is None else x[heads] for x in (self.bias, self.sink, self.key_bias))
        k, v = self.spread(self.k)[:, heads], self.spread(self.v)[:, heads]
        return replace(self, q=self.q[:, heads], k=k, v=v, bias=bias, window=None, sink=sink, key_bias=key_bias)

    def attend(self, window: Window = None, *, skip: bool = False) -> tuple[Tensor, Tensor]:
        """The attention output of every query within a window, and the log-sum-exp, in the type of the model.

        The sink is in the log-sum-exp: it takes a share as a key would.
        """
        from farfield.nn.attention.api import attention

        window = narrower(window, self.own, self.q.shape[1])
        if self.soft_cap is None and self.chunk is None and self.key_bias is None:
            y, lse = attention(
                self.q, self.k, self.v, self.bias, window=window, scale=self.scale, skip=skip, return_lse=True
            )
        else:
            y, lse = self._plain(window)
        if self.sink is None:
            return y, lse
        sink = self.sink.to(lse.dtype)[None, :, None]
        return y * torch.sigmoid(lse - sink)[..., None].to(y.dtype), torch.logaddexp(lse, sink)

    def _plain(self, window: Window) -> tuple[Tensor, Tensor]:
        kind = torch.promote_types(self.q.dtype, torch.float32)
        values = self.spread(self.v).to(kind)
        outputs, sums = [], []
        for sample in range(self.q.shape[0]):
            parts, lses = [], []
            for _, b, logits in self.logits(sample, 0, window, kind):
                lse = logits.logsumexp(-1)
                weights = (logits - torch.where(lse.isfinite(), lse, 0.0)[..., None]).exp()
                parts.append(weights @ values[sample, :, :b])
                lses.append(lse)
            outputs.append(torch.cat(parts, 1))
            sums.append(torch.cat(lses, 1))
        return torch.stack(outputs).to(self.q.dtype), torch.stack(sums)

    def logits(
        self, sample: int, first: int, window: Window, kind: torch.dtype = torch.float64
    ) -> Iterator[tuple[int, int, Tensor]]:
        """For each block of queries a..b-1 from `first` on: their logits, (H, R, b), nearest key last.

        Keys in the future of a query, and those that it does not see, have minus infinity.
        """
        q, k = self.q[sample].to(kind), self.spread(self.k)[sample].to(kind)
        heads, n = q.shape[0], k.shape[1]
        line = self.bias_or_zero()
        if window is not None:
            each = torch.as_tensor(window, device=q.device).expand(heads)
            line = line.masked_fill(torch.arange(n, device=q.device) >= each[:, None], float("-inf"))
        line = line.to(kind)
        size = max(1, BLOCK_BYTES // (8 * heads * n))
        position = torch.arange(n, device=q.device)
        for a in range(first, n, size):
            b = min(n, a + size)
            t = position[a:b, None] - position[:b]
            logits = q[:, a:b] @ k[:, :b].mT * self.scale
            if self.soft_cap is not None:
                logits = self.soft_cap * torch.tanh(logits / self.soft_cap)
            logits = logits + line[:, t.clamp(min=0)]
            if self.key_bias is not None:
                logits = logits + self.key_bias[:, None, :b].to(kind)
            hidden = t < 0
            if self.chunk is not None:
                hidden = hidden | ((position[a:b, None] + self.shift) // self.chunk != position[:b] // self.chunk)
            yield a, b, logits.masked_fill(hidden, float("-inf"))

    def beyond(self, window: int) -> AttentionInputs:
        """The queries from `window` on with the keys beyond their windows: attention of its own, without the sink.

        The keys beyond the window of query i are those up to i - window: the first query that has any stands at its
        own, with the bias moved by the window.
        """
        n = self.k.shape[2]
        bias, own = self.bias, self.own
        if own is not None and own <= window:  # the model sees none of them: all have minus infinity
            bias = torch.full((self.q.shape[1], n), float("-inf"), device=self.q.device)
            own = None
        return replace(
            self,
            q=self.q[:, :, window:],
            k=self.k[:, :, : n - window],
            v=self.v[:, :, : n - window],
            bias=None if bias is None else bias[:, window:n],
            key_bias=None if self.key_bias is None else self.key_bias[:, : n - window],
            window=None,
            own=None if own is None else own - window,
            sink=None,
            shift=self.shift + window,
        )

    def sink_share(self, lse: Tensor) -> Tensor:
        """The share of attention that the sink takes from rows with this log-sum-exp of their keys, (H, R)."""
        return torch.zeros_like(lse) if self.sink is None else torch.sigmoid(self.sink.to(lse.dtype)[:, None] - lse)


def narrower(window: Window, own: int | None, heads: int) -> Window:
    """The narrower of the window that was asked for and the model's own."""
    if own is None or window is None:
        return own if window is None else window
    each = [window] * heads if isinstance(window, int) else window
    return [min(w, own) for w in each]
