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
from farfield.nn.attention.contract import exact_type, upper_norm
from farfield.nn.cache.certificate import AGES, CertificateError, CertificateWarning, HeadBounds, LargestNorms
from farfield.nn.cache.history import NormHistory
from farfield.nn.cache.ring import Ring, rings_of

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
        self.rings = rings_of(self.windows)
        self.bounds = HeadBounds(heads, cache.limit)
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
        room = [ring.window - self.count for ring in self.rings if self._has_all(ring) and ring.window > self.count]
        return min([ROWS, *room])

    def _has_all(self, ring: Ring) -> bool:
        """Whether these heads have dropped nothing yet."""
        return ring.held == self.count

    def _rows(self, tokens: NewTokens) -> Tensor:
        """The next few tokens: output, certificate, and what follows from it."""
        q, k, v, scale, history, sink, softcap = tokens
        batch, heads, new, _ = q.shape
        real = self._real(self.count, new)
        with torch.no_grad():
            norms = history.rows(_norms(k, real), _norms(v, real))
        out = torch.empty_like(q)
        lse = q.new_empty(batch, heads, new, dtype=exact_type(q.dtype))
        log_head = lse.new_empty(heads, new)  # of the keys that each row sees: what the gap is counted from
        plain = sink is None and softcap is None  # which the kernel of one token knows nothing of
        run = self._step if new == 1 and q.device.type == "cpu" and plain else self._many
        for ring in self.rings:
            at = ring.at
            part = tokens._replace(q=q[:, at], k=k[:, at], v=v[:, at], sink=None if sink is None else sink[at])
            o, norm, head = run(ring, part, norms)
            out[:, at], lse[:, at], log_head[at] = o, norm.detach(), head.to(lse.dtype)
        visible = max(1, *(ring.held + new - 1 for ring in self.rings))
        self.count += new
        with torch.no_grad():
            for ring in self.rings:
                if not self._has_all(ring):
                    self._prove(ring)
            rows = self.bounds.rows(q, scale, lse, visible, norms, softcap)
            self._follow(self.bounds.take(rows, log_head, real))
            for ring in self.rings:
                if ring.dropped >= ring.span:  # what was dropped before has moved that much away
                    history.begin_age(ring.at)
                    ring.dropped = 0
            history.grow_older(new, max(ring.held for ring in self.rings))
        return out

    def _real(self, column: int, new: int) -> Bool[Tensor, "B 1 M"] | None:
        """Which of the tokens from a column on are no padding; None if all are."""
        start = self.cache.start
        if start is None or column >= self.cache.padding:
            return None
        return (torch.arange(column, column + new, device=start.device) >= start[:, None])[:, None]

    def _step(self, ring: Ring, new: NewTokens, norms: LargestNorms) -> tuple[Tensor, Tensor, Tensor]:
        """One token: one key in, perhaps one out, one call of the flash kernel."""
        at, history, start = ring.at, new.history, self.cache.start
        if ring.full:
            real = self._real(self.count - ring.held, 1)  # of the column that leaves
            history.drop(at, *(_norms(x[:, :, None], real)[..., 0] for x in ring.leaving()))
            ring.dropped += 1
        place = ring.push(new.k, new.v)
        keys, values = ring.both()
        if ring.line is None or ring.line.shape[1] != 2 * keys.shape[2]:  # the buffer has grown
            bias = self.cache.biases.vector(self.number, keys.shape[2])[at].to(new.q.device, exact_type(new.q.dtype))
            ring.line = bias.flip(-1).repeat(1, 2)
        mask, first = ring.mask(place), self.count + 1 - ring.held
        if start is not None and first < self.cache.padding:
            t = (place - torch.arange(ring.held, device=mask.device)) % ring.window
            hidden = (self.count - t) < start[:, None]
            mask = mask.masked_fill(hidden[:, None, None], float("-inf"))
        keys, values = keys[:, :, : ring.held], values[:, :, : ring.held]
        out, lse = _flash(new.q, keys, values, 0.0, False, attn_mask=mask, scale=new.scale)
        norms.far_key[:, at, 0], norms.far_value[:, at, 0] = history.dropped_key[:, at], history.dropped_value[:, at]
        if first > 0:
            norms.dropped[:, at] = True if start is None else (first > start)[:, None, None]
        ring.sees = ring.held
        return out, lse, ring.log_weights()

    def _many(self, ring: Ring, new: NewTokens, norms: LargestNorms) -> tuple[Tensor, Tensor, Tensor]:
        """Several tokens: what is held and the new ones in order, through windowed attention."""
        at, history, held = ring.at, new.history, ring.held
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
            (history.dropped_key, norms.far_key, keys),
            (history.dropped_value, norms.far_value, values),
        ):
            before = _norms(x, real).cummax(-1).values[:, :, last.clamp(min=0)]
            into[:, at] = torch.maximum(far[:, at, None], torch.where(last >= 0, before, 0.0))
        history.drop(at, norms.far_key[:, at, -1], norms.far_value[:, at, -1])
        ring.dropped += max(0, n - ring.window)
        visible = first + (last + 1).clamp(min=0)  # the column of the first key that the row sees
        norms.dropped[:, at] = visible > (0 if self.cache.start is None else self.cache.start[:, None, None])
        ring.sees = ring.window if first == 0 else min(ring.window, held + 1)
        ring.replace(keys, values)
        return out, lse, bias.logcumsumexp(-1)[:, (row + held).clamp(max=window - 1)]

    # ---------------------------------------------------------------------------------------------- certificate
    def _prove(self, ring: Ring) -> None:
        """Load the sums of the largest window that every row sees in full, as it grows."""
        sees = ring.sees
        assert sees >= ring.proven
        if sees == ring.proven or ring.proven + max(64, ring.proven // 4) > sees != ring.window:
            return
        ring.proven = sees
        for h in ring.heads:
            # a key of the age before this one may have been dropped just now; each age before lies a span farther away
            self.bounds.rest_on(h, [self.cache.sums(self.number, h, sees + age * ring.span) for age in range(AGES)])

    def _follow(self, share: Float[Tensor, " H"]) -> None:
        """What follows from the largest share of each head in the last rows: the policy, and wider windows."""
        over = share > self.cache.limit
        exceeded = bool(over.any())
        if exceeded:
            self._exceeded(share)
        if self.cache.logit_bound is None:
            ahead = self.bounds.worst.gap > self.covered - MARGIN / 2
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
        for ring in self.rings:
            for h in ring.heads:
                gap = float(self.bounds.worst.gap[h])
                if not bool(heads[h]) or not math.isfinite(gap):
                    continue
                self.covered[h] = gap + MARGIN
                window = self.cache.window(self.number, h, Fraction(float(self.covered[h])) / 2)
                if window > self.windows[h]:
                    self.windows[h] = window
                    changed.append(ring)
        if changed and all(self._has_all(ring) for ring in self.rings) and self.count:
            self._regroup()
            return
        for ring in changed:
            ring.widen(max(self.windows[h] for h in ring.heads))

    def _regroup(self) -> None:
        """New rings after windows have changed and before anything was dropped."""
        keys: dict[int, tuple[Tensor, Tensor]] = {}
        for ring in self.rings:
            both = ring.ordered(*ring.both())
            keys |= {h: (both[0][:, i : i + 1], both[1][:, i : i + 1]) for i, h in enumerate(ring.heads)}
        self.rings = rings_of(self.windows)
        for ring in self.rings:
            ring.replace(*(torch.cat([keys[h][i] for h in ring.heads], 1) for i in (0, 1)))

    # ---------------------------------------------------------------------------------------------- as transformers
    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Nothing to prepare: buffers are made when the first token comes."""

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        if self.cache.asked_later:
            return key_states, value_states
        raise ValueError("a bounded cache computes the attention itself: call farfield.bound(model, epsilon) first")

    def get_mask_sizes(self, query_length: int | Tensor) -> tuple[int, int]:
        """The mask that a model may build covers the new tokens only: what lies before is the cache's own affair."""
        # before 5.4 transformers gives the positions of the queries
        return query_length if isinstance(query_length, int) else len(query_length), self.count

    def get_seq_length(self) -> int:
        return self.count

    def get_max_length(self) -> int:
        return -1

    get_max_cache_shape = get_max_length  # the name that transformers has before 5.13

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
        for ring in self.rings:
            ring.select(samples.to(self.history.device))

    def bytes(self) -> int:
        """Memory of keys, values and biases."""
        return sum(ring.bytes() for ring in self.rings)


def _norms(x: Float[Tensor, "B H M D"], real: Bool[Tensor, "B 1 M"] | None) -> Float[Tensor, "B H M"]:
    """The norm of each token, rounded up; 0 for padding."""
    size = upper_norm(x)
    return size if real is None else size.masked_fill(~real, 0.0)
