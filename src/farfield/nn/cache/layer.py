"""One layer of a bounded cache: the windows of its heads, attention to what they keep, and the running certificate.

Heads with like windows share a ring of keys. A single new token costs one call of the flash kernel for each ring; a
prompt goes through in chunks, so that nothing grows with its length. After each, the certificate is brought up to date,
and windows that measured logits ask for are widened.

Shapes: B samples, H heads, M new tokens, N keys, D width of a head.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn

import torch
from torch import Tensor
from transformers.cache_utils import CacheLayerMixin

from farfield.nn.attention.api import attention
from farfield.nn.cache.bounds import Seen, certify, norms
from farfield.nn.cache.certificate import CertificateError, CertificateWarning
from farfield.nn.cache.ring import Ring, doubled_line, mask_at

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    from farfield.nn.cache.cache import BoundedCache

ROWS = 1024  # of a prompt that are computed together: bounds the memory of a long prompt
FIRST_GAP = 2.0  # logit gap that is assumed before anything is measured
MARGIN = 2.0  # by which a window covers more than the largest gap so far; it is renewed when half of it is used up
AGES = 5  # of dropped keys, before the present one
JOIN = 256  # a head joins a wider one's buffer if that costs it at most so many tokens

_flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu


class Group:
    """Heads that share one buffer, because their windows are alike."""

    def __init__(self, heads: Sequence[int], window: int) -> None:
        self.heads = list(heads)
        first, count = self.heads[0], len(self.heads)
        together = self.heads == list(range(first, first + count))
        self.at: slice | list[int] = slice(first, first + count) if together else self.heads
        self.ring = Ring(window)
        self.line: Tensor | None = None  # the biases of the buffer's places
        self.head: tuple[int, Tensor] | None = None  # keys held, and the log of the sum of their weights
        self.sees = 0  # keys that every row of the last call with dropped keys saw, at least
        self.proven = 0  # the window of the sums that the certificate uses: at most that many
        self.span = window  # keys that are dropped in an age, at least: an older key lies so much farther away
        self.dropped = 0  # keys dropped in the present age

    def of(self, x: Tensor) -> Tensor:
        """The part of a tensor (B, H, ...) that belongs to these heads."""
        return x[:, self.at]


class BoundedLayer(CacheLayerMixin):
    """The cache of one attention layer, and its certificate."""

    is_sliding = False
    is_compileable = False
    is_croppable = False
    supports_early_init = False

    def __init__(self, cache: BoundedCache, number: int) -> None:
        super().__init__()
        self.cache, self.number = cache, number
        heads = cache.biases.heads
        self.count = 0  # tokens so far
        gap = FIRST_GAP if cache.logit_bound is None else 2 * float(cache.logit_bound)
        self.covered = torch.full((heads,), gap, dtype=torch.float64)
        self.gap = torch.full((heads,), -math.inf, dtype=torch.float64)  # the largest so far
        self.windows = [cache.window(number, h, cache.logit_bound) for h in range(heads)]
        self.groups = grouped(self.windows)
        self.log_head, self.log_tail = (torch.zeros(heads, 1, dtype=torch.float64) for _ in range(2))
        self.log_old = torch.zeros(AGES, heads, 1, dtype=torch.float64)
        self.share, self.change = (torch.zeros(heads, dtype=torch.float64) for _ in range(2))
        self.over = torch.zeros(heads, dtype=torch.long)
        # (6 + AGES, B, H), largest norms: of keys dropped in this age, values dropped, all keys, all values; of
        # keys that came lately, in two halves; of keys dropped in the age before this one, and so on, and before all
        self.largest: Tensor | None = None
        self.came = 0  # tokens that came in the present age

    # ---------------------------------------------------------------------------------------------- attention
    def attend(self, q: Tensor, k: Tensor, v: Tensor, scale: float) -> Float[Tensor, "B H M D"]:
        """Attention of new tokens to what is kept and to themselves; then they are kept too."""
        self._accept(q, k)
        k, v = k.detach(), v.detach()
        parts = []
        a = 0
        while a < q.shape[2]:
            b = a + min(q.shape[2] - a, self._rows_at_once())
            parts.append(self._rows(q[:, :, a:b], k[:, :, a:b], v[:, :, a:b], scale))
            a = b
        return parts[0] if len(parts) == 1 else torch.cat(parts, 2)

    @property
    def start(self) -> Tensor | None:
        """The column of each sample's first token, (B,); None where there is no padding."""
        return self.cache.start

    def _accept(self, q: Tensor, k: Tensor) -> None:
        heads = self.cache.biases.heads
        if q.shape[1] != heads or k.shape[1] != heads:
            raise ValueError(
                f"the cache was made for {heads} heads, but {q.shape[1]} heads of queries and {k.shape[1]} of keys came"
            )
        if self.largest is None:
            self.largest = torch.zeros(6 + AGES, q.shape[0], heads, dtype=torch.float64, device=q.device)
            self.is_initialized = True
        if self.largest.shape[1] != q.shape[0]:
            raise ValueError(
                f"the cache holds {self.largest.shape[1]} samples, but {q.shape[0]} came; make a new cache"
            )
        limit = self.cache.context
        if limit is not None and self.count + q.shape[2] > limit:
            raise ValueError(
                f"the cache was made for texts of at most {limit} tokens, but token {limit + 1} came; give a larger "
                "context"
            )

    def _rows_at_once(self) -> int:
        """How many tokens may be computed before windows are looked at again."""
        if self.cache.logit_bound is not None:
            return ROWS
        # up to where a head would drop its first key: by then its window must have been measured
        room = [g.ring.window - self.count for g in self.groups if self._whole(g) and g.ring.window > self.count]
        return min([ROWS, *room])

    def _whole(self, group: Group) -> bool:
        """Whether these heads have dropped nothing yet."""
        return group.ring.held == self.count

    def _rows(self, q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
        """The next few tokens: output, certificate, and what follows from it."""
        assert self.largest is not None
        batch, heads, new, _ = q.shape
        real = self._real(self.count, new)
        with torch.no_grad():
            key, value = (norms(x) if real is None else norms(x).masked_fill(~real, 0.0) for x in (k, v))
            recent = torch.maximum(self._running(4, key), self.largest[5][..., None])
            any_key, any_value = self._running(2, key), self._running(3, value)
            far_key, far_value = (torch.zeros_like(any_key) for _ in range(2))
            seen = Seen(far_key, self.largest[6:, ..., None], far_value, recent, any_key, any_value)
            dropped = torch.zeros(batch, heads, new, dtype=torch.bool, device=q.device)
        out = torch.empty_like(q)
        lse = q.new_empty(batch, heads, new, dtype=torch.promote_types(q.dtype, torch.float32))
        log_head = lse.new_empty(heads, new)  # of the keys that each row sees: what the gap is counted from
        single = new == 1 and q.device.type == "cpu"
        kept = 1
        for group in self.groups:
            run = self._step if single else self._many
            o, norm, head = run(group, group.of(q), group.of(k), group.of(v), scale, seen, dropped)
            out[:, group.at], lse[:, group.at], log_head[group.at] = o, norm.detach(), head
            kept = max(kept, group.ring.held + new - 1)
        self.count += new
        with torch.no_grad():
            self._certify(q, scale, lse, kept, seen, dropped, log_head, real)
            self._grow_older(new)
        return out

    def _running(self, which: int, size: Tensor) -> Float[Tensor, "B H M"]:
        """The largest norm up to each row, of one of the kinds in `largest`."""
        assert self.largest is not None
        size = torch.maximum(size if size.shape[2] == 1 else size.cummax(-1).values, self.largest[which][..., None])
        self.largest[which] = size[..., -1]
        return size

    def _grow_older(self, new: int) -> None:
        """Begin a new age where enough keys were dropped: whatever was dropped before has moved that much away."""
        assert self.largest is not None
        for group in self.groups:
            if group.dropped >= group.span:
                before = self.largest[6:, :, group.at].clone()
                self.largest[-1][:, group.at] = before[-2:].amax(0)
                self.largest[7:-1, :, group.at] = before[:-2]
                self.largest[6][:, group.at] = self.largest[0][:, group.at]
                self.largest[0][:, group.at] = 0.0
                group.dropped = 0
        self.came += new
        if self.came >= max(group.ring.held for group in self.groups):
            self.largest[5], self.came = self.largest[4], 0
            self.largest[4] = 0.0

    def _real(self, column: int, new: int) -> Bool[Tensor, "B 1 M"] | None:
        """Which of the tokens from a column on are no padding; None if all are."""
        if self.start is None or column >= self.cache.padding:
            return None
        return (torch.arange(column, column + new, device=self.start.device) >= self.start[:, None])[:, None]

    def _step(
        self, group: Group, q: Tensor, k: Tensor, v: Tensor, scale: float, seen: Seen, dropped: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """One token: one key in, perhaps one out, one call of the flash kernel."""
        ring = group.ring
        far_key, far_value = self._far(group)
        if ring.full:
            leaving = self.count - ring.held  # its column
            real = self._real(leaving, 1)
            for far, x in zip((far_key, far_value), ring.leaving(), strict=True):
                size = norms(x) if real is None else norms(x).masked_fill(~real[:, 0], 0.0)
                torch.maximum(far, size, out=far)
            self._put_far(group, far_key, far_value)
            group.dropped += 1
        place = ring.push(k, v)
        keys, values = ring.both()
        line = self._line(group, q)
        mask = mask_at(line, place, ring.held)
        first = self.count + 1 - ring.held
        if self.start is not None and first < self.cache.padding:
            t = (place - torch.arange(ring.held, device=q.device)) % ring.window
            hidden = (self.count - t) < self.start[:, None]
            mask = mask.masked_fill(hidden[:, None, None], float("-inf"))
        out, norm = _flash(
            q, keys[:, :, : ring.held], values[:, :, : ring.held], 0.0, False, attn_mask=mask, scale=scale
        )
        seen.far_key[:, group.at, 0], seen.far_value[:, group.at, 0] = far_key, far_value
        if first > 0:
            dropped[:, group.at] = True if self.start is None else (first > self.start)[:, None, None]
        group.sees = ring.held
        if group.head is None or group.head[0] != ring.held:
            near = line.shape[1] // 2
            group.head = ring.held, line[:, near - ring.held : near].logsumexp(-1, keepdim=True)
        return out, norm, group.head[1]

    def _many(
        self, group: Group, q: Tensor, k: Tensor, v: Tensor, scale: float, seen: Seen, dropped: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Several tokens: what is held and the new ones in order, through windowed attention."""
        ring, new = group.ring, q.shape[2]
        held = ring.held
        keys, values = (torch.cat(pair, 2) for pair in zip(ring.ordered(k, v), (k, v), strict=True))
        first = self.count - held  # the column of the first key here
        n = held + new
        window = min(ring.window, n)
        bias = self.cache.biases.vector(self.number, window).to(q.device)[group.at]
        real = self._real(first, n)
        out, norm = attention(
            q, keys, values, torch.nn.functional.pad(bias, (0, n - window)), window=window, scale=scale,
            mask=None if real is None else real[:, 0].expand(q.shape[0], n), return_lse=True,
        )  # fmt: skip
        row = torch.arange(new, device=q.device)
        last = row + held - ring.window if ring.window < n else row - n  # the last key that the row does not see
        for far, into, x in zip(self._far(group), (seen.far_key, seen.far_value), (keys, values), strict=True):
            size = norms(x) if real is None else norms(x).masked_fill(~real, 0.0)
            before = size.cummax(-1).values[:, :, last.clamp(min=0)]
            into[:, group.at] = torch.maximum(far[..., None], torch.where(last >= 0, before, 0.0))
        self._put_far(group, seen.far_key[:, group.at, -1], seen.far_value[:, group.at, -1])
        group.dropped += max(0, n - ring.window)
        visible = first + (last + 1).clamp(min=0)  # the column of the first key that the row sees
        start = 0 if self.start is None else self.start[:, None, None]
        dropped[:, group.at] = visible > start
        group.sees = ring.window if first == 0 else min(ring.window, held + 1)
        ring.replace(keys, values)
        head = bias.logcumsumexp(-1)[:, (row + held).clamp(max=window - 1)]
        return out, norm, head

    def _far(self, group: Group) -> tuple[Tensor, Tensor]:
        assert self.largest is not None
        return self.largest[0][:, group.at], self.largest[1][:, group.at]

    def _put_far(self, group: Group, key: Tensor, value: Tensor) -> None:
        assert self.largest is not None
        self.largest[0][:, group.at], self.largest[1][:, group.at] = key, value

    def _line(self, group: Group, like: Tensor) -> Tensor:
        """The biases of the buffer's places, made anew when the buffer has grown."""
        places = group.ring.both()[0].shape[2]
        if group.line is None or group.line.shape[1] != 2 * places:
            kind = torch.promote_types(like.dtype, torch.float32)
            group.line = doubled_line(self.cache.biases.vector(self.number, places)[group.at].to(like.device, kind))
        return group.line

    # ---------------------------------------------------------------------------------------------- certificate
    def _certify(
        self,
        q: Tensor,
        scale: float,
        lse: Tensor,
        kept: int,
        seen: Seen,
        dropped: Tensor,
        log_head: Tensor,
        real: Tensor | None,
    ) -> None:
        for group in self.groups:
            if not self._whole(group):
                self._prove(group)
        log_near, log_tail, log_old = (x.to(q.device) for x in (self.log_head, self.log_tail, self.log_old))
        found = certify(q, scale, lse, kept, seen, log_near, log_tail, log_old, dropped)
        gap = found.gap + log_head
        gap = gap.masked_fill(~gap.isfinite(), -math.inf)  # padding, or numbers for which no window is enough
        if real is not None:
            gap = gap.masked_fill(~real, -math.inf)
        self.gap = torch.maximum(self.gap, gap.amax((0, 2)).cpu())
        share, change = found.share.amax((0, 2)).cpu(), found.change.amax((0, 2)).cpu()
        self.share, self.change = torch.maximum(self.share, share), torch.maximum(self.change, change)
        over = share > self.cache.limit
        if bool(over.any()):
            self.over += (found.share > self.cache.limit).sum((0, 2)).cpu()
            self._exceeded(share, over)
        if self.cache.logit_bound is None:
            ahead = self.gap > self.covered - MARGIN / 2
            if bool(ahead.any()):
                self._widen(ahead | over)
        elif bool(over.any()):
            self._widen(over)

    def _prove(self, group: Group) -> None:
        """Load the sums of the largest window that every row sees in full, as it grows."""
        sees = group.sees
        assert sees >= group.proven
        if sees == group.proven or group.proven + max(64, group.proven // 4) > sees != group.ring.window:
            return
        group.proven = sees
        for h in group.heads:
            sums = [self.cache.sums(self.number, h, sees + age * group.span) for age in range(AGES)]
            self.log_head[h], self.log_tail[h] = sums[0]
            # a key of the age before this one may have been dropped just now; each age before lies a span farther away
            self.log_old[:, h, 0] = torch.tensor([s.tail for s in sums])

    def _exceeded(self, share: Tensor, over: Tensor) -> None:
        """Follow the policy: a sentence for the first time, or the end."""
        head = int(share.argmax())
        sentence = (
            f"a token before token {self.count + 1} may have lost a share of {float(share[head]):.2g} of the attention "
            f"of head {head + 1} in layer {self.number + 1}, more than epsilon = {self.cache.limit:g}"
        )
        if self.cache.policy == "stop":
            raise CertificateError(sentence)
        if self.cache.policy == "warn" and not self.cache.warned:
            self.cache.warned = True
            warnings.warn(f"{sentence}; see certificate()", CertificateWarning, stacklevel=2)

    def _widen(self, heads: Tensor) -> None:
        """Give these heads the window that their largest gap so far asks for, where that is allowed."""
        changed = []
        for group in self.groups:
            if self.cache.logit_bound is not None and self.cache.policy != "widen":
                continue
            for h in group.heads:
                if not bool(heads[h]) or not math.isfinite(float(self.gap[h])):
                    continue
                self.covered[h] = float(self.gap[h]) + MARGIN
                window = self.cache.window(self.number, h, Fraction(float(self.covered[h])) / 2)
                if window > self.windows[h]:
                    self.windows[h] = window
                    changed.append(group)
        if changed and all(self._whole(group) for group in self.groups) and self.count:
            self._regroup()
            return
        for group in changed:
            group.ring.widen(max(self.windows[h] for h in group.heads))

    def _regroup(self) -> None:
        """New groups after windows have changed and before anything was dropped."""
        keys: dict[int, tuple[Tensor, Tensor]] = {}
        for group in self.groups:
            both = group.ring.ordered(*group.ring.both())
            keys |= {h: (both[0][:, i : i + 1], both[1][:, i : i + 1]) for i, h in enumerate(group.heads)}
        self.groups = grouped(self.windows)
        for group in self.groups:
            group.ring.replace(*(torch.cat([keys[h][i] for h in group.heads], 1) for i in (0, 1)))

    # ---------------------------------------------------------------------------------------------- as transformers
    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Nothing to prepare: buffers are made when the first token comes."""

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> NoReturn:
        raise ValueError(
            "a bounded cache computes the attention itself; for BLOOM and MPT call farfield.bound(model, epsilon) first"
        )

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """The mask that a model may build covers the new tokens only: what lies before is the cache's own affair."""
        return query_length, self.count

    def get_seq_length(self) -> int:
        return self.count

    def get_max_length(self) -> int:
        return -1

    def reset(self) -> None:
        self.__init__(self.cache, self.number)  # type: ignore[misc]

    def crop(self, tokens_to_remove: int) -> None:
        if tokens_to_remove:
            raise ValueError("a bounded cache cannot take tokens back, so assisted decoding cannot use it")

    def select(self, samples: Tensor) -> None:
        """Keep these samples, in this order: beam search."""
        if self.largest is None:
            return
        samples = samples.to(self.largest.device)
        self.largest = self.largest[:, samples]
        for group in self.groups:
            group.ring.select(samples)

    def bytes(self) -> int:
        """Memory of keys, values and biases."""
        lines = sum(g.line.numel() * g.line.element_size() for g in self.groups if g.line is not None)
        return lines + sum(g.ring.bytes() for g in self.groups)


def grouped(windows: Sequence[int]) -> list[Group]:
    """Heads with like windows together: each group has the window of its widest head."""
    order = sorted(range(len(windows)), key=lambda h: -windows[h])
    groups: list[list[int]] = []
    for h in order:
        if groups and windows[groups[-1][0]] - windows[h] <= JOIN:
            groups[-1].append(h)
        else:
            groups.append([h])
    return [Group(sorted(heads), max(windows[h] for h in heads)) for heads in groups]
