"""A key/value cache whose size a certificate fixes: memory and time per token stay constant however long the text.

Each head keeps a window of the last keys and drops the rest. What the dropped keys could still contribute is bounded at
every token (certified.py), from nothing but numbers that the cache has; the largest share of attention that any token
can have lost is always at hand as a table. The certificate is for each attention layer by itself, given the queries,
keys and values that reach it: it says nothing about the network as a whole. What the whole loses can be measured
(streaming.py), not certified.

    cache = farfield.BoundedCache(model, epsilon=1e-3)
    model.generate(ids, past_key_values=cache)
    print(cache.certificate())

Shapes: B samples, H heads, M new tokens, N keys, D width of a head.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

from farfield.nn.attention import attention
from farfield.nn.certified import Seen, certify, norms
from farfield.nn.ring import Ring, doubled_line, mask_at
from farfield.nn.sources import Biases, biases_of
from farfield.theory.closed import UndecidedError
from farfield.theory.receptive import exact_epsilon, whole
from farfield.theory.truncation import exact_bound, log_sums, smallest_window

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

Policy = Literal["widen", "warn", "stop"]
POLICIES = ("widen", "warn", "stop")
SCOPE = "certified for each attention layer by itself, not for the network as a whole"

ROWS = 1024  # of a prompt that are computed together: bounds the memory of a long prompt
LEAST = 256  # tokens that a head keeps at least if its window is measured: a shorter stretch measures too little
FIRST_GAP = 2.0  # logit gap that is assumed before anything is measured
MARGIN = 2.0  # by which a window covers more than the largest gap so far; it is renewed when half of it is used up
LARGEST_BOUND = 350  # of the logits, for which a window is looked for
JOIN = 256  # a head joins a wider one's buffer if that costs it at most so many tokens
LONG = 1 << 16  # tokens from which a window is worth a warning: nothing is saved before

_flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu


class CertificateWarning(UserWarning):
    """A token may have lost more attention than the epsilon that was chosen."""


class CertificateError(RuntimeError):
    """The policy "stop": a token may have lost more attention than the epsilon that was chosen."""


@dataclass(frozen=True)
class CertificateRow:
    """What is certain about one head: no token lost more than `share` of its attention, nor was moved by `change`."""

    layer: int
    head: int
    window: int
    share: float
    change: float
    over: int  # tokens whose certified share exceeded epsilon


@dataclass(frozen=True)
class CertificateTable:
    """The certificate of a cache: a row for each layer and head, both counted from 1."""

    epsilon: float
    tokens: int
    rows: list[CertificateRow]

    @property
    def worst(self) -> CertificateRow:
        """The head with the largest certified share."""
        return max(self.rows, key=lambda row: row.share)

    @property
    def holds(self) -> bool:
        """Whether every token of every head is certified to have lost at most epsilon."""
        return all(row.over == 0 for row in self.rows)

    def json(self) -> dict[str, Any]:
        """The table for a program."""
        rows = [asdict(row) for row in self.rows]
        return {"epsilon": self.epsilon, "tokens": self.tokens, "holds": self.holds, "scope": SCOPE, "heads": rows}

    def __str__(self) -> str:
        lines = [f"{'layer':>5} {'head':>5} {'window':>8} {'share <=':>10} {'change <=':>10} {'over':>6}"]
        lines += [
            f"{r.layer:5} {r.head:5} {r.window:8} {r.share:10.2e} {r.change:10.2e} {r.over:6}" for r in self.rows
        ]
        said = "holds" if self.holds else "was exceeded"
        return "\n".join([*lines, f"epsilon {self.epsilon:g} {said} over {self.tokens} tokens; {SCOPE}"])


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
        self.share, self.change = (torch.zeros(heads, dtype=torch.float64) for _ in range(2))
        self.over = torch.zeros(heads, dtype=torch.long)
        self.largest: Tensor | None = None  # (4, B, H): norms of far keys, far values, all keys, all values

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
            self.largest = torch.zeros(4, q.shape[0], heads, dtype=torch.float64, device=q.device)
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
        return min([ROWS, *(int(min(g.ring.window - self.count, ROWS)) for g in self.groups if self._whole(g)
                            and g.ring.window > self.count)])  # fmt: skip

    def _whole(self, group: Group) -> bool:
        """Whether these heads have dropped nothing yet."""
        return group.ring.held == self.count

    def _rows(self, q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
        """The next few tokens: output, certificate, and what follows from it."""
        assert self.largest is not None
        batch, heads, new, _ = q.shape
        real = self._real(self.count, new)
        with torch.no_grad():
            any_key, any_value = (self._running(i, x, real) for i, x in ((2, k), (3, v)))
            seen = Seen(*(q.new_empty(batch, heads, new, dtype=torch.float64) for _ in range(2)), any_key, any_value)
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
        return out

    def _running(self, which: int, x: Tensor, real: Tensor | None) -> Float[Tensor, "B H M"]:
        """The largest norm of any key or value up to each row."""
        assert self.largest is not None
        size = norms(x) if real is None else norms(x).masked_fill(~real, 0.0)
        size = torch.maximum(size if size.shape[2] == 1 else size.cummax(-1).values, self.largest[which][..., None])
        self.largest[which] = size[..., -1]
        return size

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
        place = ring.push(k, v)
        keys, values = ring.both()
        line = self._line(group, q)
        mask = mask_at(line, place, ring.held)
        first = self.count + 1 - ring.held
        if self.start is not None and first < self.cache.padding:
            t = (place - torch.arange(ring.held, device=q.device)) % ring.window
            hidden = (self.count - t) < self.start[:, None]
            mask = mask.masked_fill(hidden[:, None, None], float("-inf"))
        out, norm = _flash(q, keys[:, :, : ring.held], values[:, :, : ring.held], 0.0, False, attn_mask=mask, scale=scale)
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
        found = certify(q, scale, lse, kept, seen, self.log_head, self.log_tail, dropped)
        gap = found.gap + log_head
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
            sums = log_sums(self.cache.biases.weights(self.number, h, self.cache.context), sees)
            self.log_head[h], self.log_tail[h] = sums

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


class BoundedCache(Cache):
    """A cache for `generate` in which each head keeps a window, and what that can cost is certified at every token.

    model: a farfield model, or a BLOOM or MPT of transformers after `farfield.bound`.
    epsilon: the share of attention that a token may lose in any one head.
    logit_bound: choose the windows before inference, for |q.k|/sqrt(d) up to this bound (Theorem A). Without it they are
        measured: a head keeps 256 tokens or more, drops its first key only when its window covers every token so far
        with a margin, and grows as larger logits are met.
    policy: what to do when a token's certified share exceeds epsilon all the same: "widen" the window from then on,
        "warn" once, or "stop" with a CertificateError before the token is used.
    context: the longest text, if there is one. Encodings whose series diverges need it.
    """

    def __init__(
        self,
        model: Any,
        epsilon: float | str | Fraction = 1e-3,
        *,
        logit_bound: float | str | Fraction | None = None,
        policy: Policy = "widen",
        context: int | None = None,
    ) -> None:
        self.epsilon = exact_epsilon(epsilon)
        self.limit = float(self.epsilon)
        if policy not in POLICIES:
            raise ValueError(f"the policy is {policy!r}; it must be one of {', '.join(POLICIES)}")
        self.policy, self.warned = policy, False
        self.logit_bound = None if logit_bound is None else exact_bound(logit_bound)
        self.context = None if context is None else whole(context, "context")
        self.biases: Biases = biases_of(model)
        self.biases.weights(0, 0, self.context)  # says at once if there is no sum
        self.given_mask: Tensor | None = None  # of a model that hides it from its attention (bounded.py)
        self.start: Tensor | None = None  # (B,): the column of each sample's first token, if there is padding
        self.padding = 0  # the largest of them
        self._known: dict[tuple[int, int, Fraction], int] = {}
        super().__init__(layers=[BoundedLayer(self, number) for number in range(self.biases.layers)])

    def attend(
        self,
        q: Float[Tensor, "B H M D"],
        k: Float[Tensor, "B H M D"],
        v: Float[Tensor, "B H M D"],
        layer: int,
        mask: Bool[Tensor, "B N"] | None = None,
        scale: float | None = None,
    ) -> Float[Tensor, "B H M D"]:
        """Attention of new tokens in one layer; the mask is true for the tokens of each sample, padding stands before."""
        if layer == 0:  # the mask is the same for all layers
            self._note(mask, self.get_seq_length(), q.shape[2])
        scale = q.shape[3] ** -0.5 if scale is None else scale
        return self.layers[layer].attend(q, k, v, scale)

    def _note(self, mask: Tensor | None, before: int, new: int) -> None:
        """Remember where each sample begins, until every sample has begun."""
        if mask is None:
            self.start, self.padding = None, 0
        elif self.start is None or new > 1 or self.padding >= before:
            self.start = first_tokens(mask, before + new)
            self.padding = int(self.start.max())

    def window(self, layer: int, head: int, logit_bound: Fraction | None) -> int:
        """The window of a head for a bound on its logits; with None, the one to start measuring with."""
        bound = Fraction(FIRST_GAP) / 2 if logit_bound is None else logit_bound
        if self.logit_bound is None or logit_bound is not self.logit_bound:
            bound = max(Fraction(math.ceil(8 * bound), 8), Fraction(0))  # few different values, so that they are kept
        key = (self.biases.set_of(layer), head, bound)
        if key not in self._known:
            self._known[key] = self._window(layer, head, bound)
        least = 1 if self.logit_bound is not None else LEAST
        return max(self._known[key], least)

    def _window(self, layer: int, head: int, bound: Fraction) -> int:
        window = 1 << 62  # more than anyone will write
        if bound <= LARGEST_BOUND:  # beyond, exp(2M) itself is more than a double holds
            with contextlib.suppress(UndecidedError):
                window = min(window, smallest_window(self.biases.weights(layer, head, self.context), self.epsilon, bound))
        if window >= (LONG if self.context is None else min(LONG, self.context)):
            told = f"{window} tokens" if window < 1 << 62 else "more tokens than anyone will write"
            warnings.warn(
                f"head {head + 1} of layer {layer + 1} needs a window of {told} for epsilon = {self.limit:g}: "
                "in shorter texts it keeps every key",
                CertificateWarning,
                stacklevel=3,
            )
        return window

    def reset(self) -> None:
        """Forget the text, the certificate and the measured windows."""
        self.start, self.padding, self.warned, self.given_mask = None, 0, False, None
        super().reset()

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Keep these samples, in this order: beam search."""
        for layer in self.layers:
            layer.select(beam_idx)
        if self.start is not None:
            self.start = self.start[beam_idx.to(self.start.device)]

    def batch_select_indices(self, indices: Tensor) -> None:
        self.reorder_cache(indices)

    def batch_repeat_interleave(self, repeats: int) -> None:
        largest = self.layers[0].largest
        if largest is not None:
            self.reorder_cache(torch.arange(largest.shape[1], device=largest.device).repeat_interleave(repeats))

    def certificate(self) -> CertificateTable:
        """For each layer and head the largest share of attention that any token so far can have lost, with proof."""
        rows = [
            CertificateRow(
                layer.number + 1,
                h + 1,
                next(g.ring.window for g in layer.groups if h in g.heads),
                float(layer.share[h]),
                float(layer.change[h]),
                int(layer.over[h]),
            )
            for layer in self.layers
            for h in range(self.biases.heads)
        ]
        return CertificateTable(self.limit, self.get_seq_length(), rows)

    def bytes(self) -> int:
        """Memory of keys, values and biases."""
        return sum(layer.bytes() for layer in self.layers)


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


def first_tokens(mask: Bool[Tensor, "B N"], columns: int) -> Tensor:
    """The column of each sample's first token; one sentence unless all padding stands before."""
    if mask.shape[1] != columns:
        raise ValueError(f"the attention mask has {mask.shape[1]} columns, but {columns} tokens were given so far")
    start = (~mask).sum(-1)
    if not bool((mask == (torch.arange(columns, device=mask.device) >= start[:, None])).all()):
        raise ValueError(
            "a bounded cache takes padding only before the tokens of a sample: set tokenizer.padding_side = 'left'"
        )
    return start
