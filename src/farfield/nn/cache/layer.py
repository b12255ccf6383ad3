"""One layer of a bounded cache: the windows of its heads, attention to what they keep, and the running certificate.

Heads with like windows share a ring of keys. A single new token costs one call of the flash kernel for each ring; a
prompt goes through in chunks, so that nothing grows with its length. After each, the certificate is brought up to date,
and windows that measured logits ask for are widened.

Shapes: B samples, H heads, M new tokens, N keys, D width of a head.
"""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from transformers.cache_utils import CacheLayerMixin

from farfield.nn.attention.api import attention
from farfield.nn.cache.bounds import LargestNorms
from farfield.nn.cache.certificate import CertificateError, CertificateWarning
from farfield.nn.cache.heads import HeadGroup, grouped
from farfield.nn.cache.history import AGES, NormHistory
from farfield.nn.cache.ring import doubled_line, mask_at
from farfield.nn.cache.running_certificate import RunningCertificate
from farfield.nn.norms import upper_norm

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    from farfield.nn.cache.cache import BoundedCache

ROWS = 1024  # of a prompt that are computed together: bounds the memory of a long prompt
FIRST_GAP = 2.0  # logit gap that is assumed before anything is measured
MARGIN = 2.0  # by which a window covers more than the largest gap so far; it is renewed when half of it is used up

_flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu


class NewTokens(NamedTuple):
    """What comes in at once for a few heads, and the norms of all that came before."""

    q: Float[Tensor, "B H M D"]
    k: Float[Tensor, "B H M D"]
    v: Float[Tensor, "B H M D"]
    scale: float
    history: NormHistory
    sink: Float[Tensor, " H"] | None
    softcap: float | None


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
        self.covered = torch.full((heads,), gap, dtype=torch.float64)  # the gap that each head's window covers
        self.windows = [cache.window(number, h, cache.logit_bound) for h in range(heads)]
        self.groups = grouped(self.windows)
        self.certificate = RunningCertificate(heads, cache.limit)
        self.history: NormHistory | None = None  # known when the first token comes

    # ---------------------------------------------------------------------------------------------- attention
    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, scale: float, sink: Tensor | None = None, softcap: float | None = None
    ) -> Float[Tensor, "B H M D"]:
        """Attention of new tokens to what is kept and to themselves; then they are kept too."""
        history = self._accept(q, k)
        k, v = k.detach(), v.detach()
        parts = []
        a = 0
        while a < q.shape[2]:
            b = a + min(q.shape[2] - a, self._rows_at_once())
            parts.append(self._rows(NewTokens(q[:, :, a:b], k[:, :, a:b], v[:, :, a:b], scale, history, sink, softcap)))
            a = b
        return parts[0] if len(parts) == 1 else torch.cat(parts, 2)

    @property
    def start(self) -> Tensor | None:
        """The column of each sample's first token, (B,); None where there is no padding."""
        return self.cache.start

    def _accept(self, q: Tensor, k: Tensor) -> NormHistory:
        heads = self.cache.biases.heads
        if q.shape[1] != heads or k.shape[1] != heads:
            raise ValueError(
                f"the cache was made for {heads} heads, but {q.shape[1]} heads of queries and {k.shape[1]} of keys came"
            )
        if self.history is None:
            self.history = NormHistory(q.shape[0], heads, q.device)
            self.is_initialized = True
        if self.history.samples != q.shape[0]:
            raise ValueError(f"the cache holds {self.history.samples} samples, but {q.shape[0]} came; make a new cache")
        limit = self.cache.context
        if limit is not None and self.count + q.shape[2] > limit:
            raise ValueError(
                f"the cache was made for texts of at most {limit} tokens, but token {limit + 1} came; give a larger "
                "context"
            )
        return self.history

    def _rows_at_once(self) -> int:
        """How many tokens may be computed before windows are looked at again."""
        if self.cache.logit_bound is not None:
            return ROWS
        # up to where a head would drop its first key: by then its window must have been measured
        room = [g.ring.window - self.count for g in self.groups if self._whole(g) and g.ring.window > self.count]
        return min([ROWS, *room])

    def _whole(self, group: HeadGroup) -> bool:
        """Whether these heads have dropped nothing yet."""
        return group.ring.held == self.count

    def _rows(self, tokens: NewTokens) -> Tensor:
        """The next few tokens: output, certificate, and what follows from it."""
        q, k, v, scale, history, sink, softcap = tokens
        batch, heads, new, _ = q.shape
        real = self._real(self.count, new)
        with torch.no_grad():
            recent, any_key, any_value = history.rows(_norms(k, real), _norms(v, real))
            far_key, far_value = (torch.zeros_like(any_key) for _ in range(2))
            old_key = history.dropped_key.before[..., None]
            dropped = torch.zeros_like(any_key, dtype=torch.bool)
            norms = LargestNorms(far_key, old_key, far_value, recent, any_key, any_value, dropped)
        out = torch.empty_like(q)
        lse = q.new_empty(batch, heads, new, dtype=torch.promote_types(q.dtype, torch.float32))
        log_head = lse.new_empty(heads, new)  # of the keys that each row sees: what the gap is counted from
        plain = sink is None and softcap is None  # which the kernel of one token knows nothing of
        run = self._step if new == 1 and q.device.type == "cpu" and plain else self._many
        kept = 1
        for group in self.groups:
            own = None if sink is None else sink[group.at]
            part = tokens._replace(q=group.of(q), k=group.of(k), v=group.of(v), sink=own)
            o, norm, head = run(group, part, norms)
            out[:, group.at], lse[:, group.at], log_head[group.at] = o, norm.detach(), head.to(lse.dtype)
            kept = max(kept, group.ring.held + new - 1)
        self.count += new
        with torch.no_grad():
            for group in self.groups:
                if not self._whole(group):
                    self._prove(group)
            bounds = self.certificate.bounds(q, scale, lse, kept, norms, softcap)
            self._follow(self.certificate.take(bounds, log_head, real))
            for group in self.groups:
                if group.dropped >= group.span:  # whatever was dropped before has moved that much away
                    history.dropped_key.begin_age(group.at)
                    group.dropped = 0
            history.grow_older(new, max(group.ring.held for group in self.groups))
        return out

    def _real(self, column: int, new: int) -> Bool[Tensor, "B 1 M"] | None:
        """Which of the tokens from a column on are no padding; None if all are."""
        if self.start is None or column >= self.cache.padding:
            return None
        return (torch.arange(column, column + new, device=self.start.device) >= self.start[:, None])[:, None]

    def _step(self, group: HeadGroup, new: NewTokens, norms: LargestNorms) -> tuple[Tensor, Tensor, Tensor]:
        """One token: one key in, perhaps one out, one call of the flash kernel."""
        ring, at, history = group.ring, group.at, new.history
        far_key, far_value = history.dropped_key.present[:, at], history.dropped_value[:, at]
        if ring.full:
            real = self._real(self.count - ring.held, 1)  # of the column that leaves
            key, value = (_norms(x[:, :, None], real)[..., 0] for x in ring.leaving())
            far_key, far_value = history.drop(at, key, value)
            group.dropped += 1
        place = ring.push(new.k, new.v)
        keys, values = ring.both()
        line = self._line(group, new.q)
        mask = mask_at(line, place, ring.held)
        first = self.count + 1 - ring.held
        if self.start is not None and first < self.cache.padding:
            t = (place - torch.arange(ring.held, device=line.device)) % ring.window
            hidden = (self.count - t) < self.start[:, None]
            mask = mask.masked_fill(hidden[:, None, None], float("-inf"))
        keys, values = keys[:, :, : ring.held], values[:, :, : ring.held]
        out, lse = _flash(new.q, keys, values, 0.0, False, attn_mask=mask, scale=new.scale)
        norms.far_key[:, at, 0], norms.far_value[:, at, 0] = far_key, far_value
        if first > 0:
            norms.dropped[:, at] = True if self.start is None else (first > self.start)[:, None, None]
        group.sees = ring.held
        if group.log_held is None or group.log_held[0] != ring.held:
            near = line.shape[1] // 2
            group.log_held = ring.held, line[:, near - ring.held : near].logsumexp(-1, keepdim=True)
        return out, lse, group.log_held[1]

    def _many(self, group: HeadGroup, new: NewTokens, norms: LargestNorms) -> tuple[Tensor, Tensor, Tensor]:
        """Several tokens: what is held and the new ones in order, through windowed attention."""
        ring, at, history, held = group.ring, group.at, new.history, group.ring.held
        keys, values = (torch.cat(pair, 2) for pair in zip(ring.ordered(new.k, new.v), (new.k, new.v), strict=True))
        first = self.count - held  # the column of the first key here
        n = keys.shape[2]
        window = min(ring.window, n)
        bias = self.cache.biases.vector(self.number, window).to(keys.device)[at]
        real = self._real(first, n)
        out, lse = attention(
            new.q, keys, values, torch.nn.functional.pad(bias, (0, n - window)), window=window, scale=new.scale,
            mask=None if real is None else real[:, 0].expand(len(keys), n), sink=new.sink, softcap=new.softcap,
            return_lse=True,
        )  # fmt: skip
        row = torch.arange(n - held, device=keys.device)
        last = row + held - ring.window if ring.window < n else row - n  # the last key that the row does not see
        for far, into, x in (
            (history.dropped_key.present, norms.far_key, keys),
            (history.dropped_value, norms.far_value, values),
        ):
            before = _norms(x, real).cummax(-1).values[:, :, last.clamp(min=0)]
            into[:, at] = torch.maximum(far[:, at, None], torch.where(last >= 0, before, 0.0))
        history.drop(at, norms.far_key[:, at, -1], norms.far_value[:, at, -1])
        group.dropped += max(0, n - ring.window)
        visible = first + (last + 1).clamp(min=0)  # the column of the first key that the row sees
        start = 0 if self.start is None else self.start[:, None, None]
        norms.dropped[:, at] = visible > start
        group.sees = ring.window if first == 0 else min(ring.window, held + 1)
        ring.replace(keys, values)
        return out, lse, bias.logcumsumexp(-1)[:, (row + held).clamp(max=window - 1)]

    def _line(self, group: HeadGroup, like: Tensor) -> Tensor:
        """The biases of the buffer's places, made anew when the buffer has grown."""
        places = group.ring.both()[0].shape[2]
        if group.line is None or group.line.shape[1] != 2 * places:
            kind = torch.promote_types(like.dtype, torch.float32)
            group.line = doubled_line(self.cache.biases.vector(self.number, places)[group.at].to(like.device, kind))
        return group.line

    # ---------------------------------------------------------------------------------------------- certificate
    def _prove(self, group: HeadGroup) -> None:
        """Load the sums of the largest window that every row sees in full, as it grows."""
        sees = group.sees
        assert sees >= group.proven
        if sees == group.proven or group.proven + max(64, group.proven // 4) > sees != group.ring.window:
            return
        group.proven = sees
        for h in group.heads:
            # a key of the age before this one may have been dropped just now; each age before lies a span farther away
            sums = [self.cache.sums(self.number, h, sees + age * group.span) for age in range(AGES)]
            self.certificate.rest_on(h, sums)

    def _follow(self, share: Float[Tensor, " H"]) -> None:
        """What follows from the largest share of each head in the last rows: the policy, and wider windows."""
        over = share > self.cache.limit
        exceeded = bool(over.any())
        if exceeded:
            self._exceeded(share)
        if self.cache.logit_bound is None:
            ahead = self.certificate.gap > self.covered - MARGIN / 2
            if bool(ahead.any()):
                self._widen(ahead | over)
        elif exceeded and self.cache.policy == "widen":
            self._widen(over)

    def _exceeded(self, share: Tensor) -> None:
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
        """Give these heads the window that their largest gap so far asks for."""
        changed = []
        for group in self.groups:
            for h in group.heads:
                gap = float(self.certificate.gap[h])
                if not bool(heads[h]) or not math.isfinite(gap):
                    continue
                self.covered[h] = gap + MARGIN
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

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        if self.cache.asked_later:
            return key_states, value_states
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
        if self.history is None:
            return
        self.history.select(samples)
        for group in self.groups:
            group.ring.select(samples.to(self.history.device))

    def bytes(self) -> int:
        """Memory of keys, values and biases."""
        lines = sum(g.line.numel() * g.line.element_size() for g in self.groups if g.line is not None)
        return lines + sum(g.ring.bytes() for g in self.groups)


def _norms(x: Float[Tensor, "B H M D"], real: Bool[Tensor, "B 1 M"] | None) -> Float[Tensor, "B H M"]:
    """The norm of each token, rounded up; 0 for padding."""
    size = upper_norm(x)
    return size if real is None else size.masked_fill(~real, 0.0)
