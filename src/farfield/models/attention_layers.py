"""The attention layers of a model as its configuration gives them, and what follows from them exactly.

A window of w tokens lets a token see itself and the w - 1 before it, so L layers of windows reach L*(w - 1) + 1 tokens:
a token takes from w - 1 tokens before it in each layer, and no path is longer. Chunks of c tokens do not add up: no
path through chunked layers alone leaves the chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from farfield.zoo import Value

LENGTHS = (4096, 32_768, 131_072)  # for which the size of the cache is shown
_SCALINGS = {"yarn": "YaRN", "linear": "linear scaling", "dynamic": "dynamic NTK scaling", "longrope": "LongRoPE",
             "su": "LongRoPE", "llama3": "Llama 3's scaling"}  # fmt: skip


@dataclass(frozen=True)
class Layer:
    """One layer of attention.

    Attributes:
        number: from 1.
        position: "rope", "alibi", "learned", "t5", "none", "sinusoidal", or a formula of the bias.
        heads: that query.
        key_heads: that are kept in the cache.
        width: of a head.
        window: tokens that a token sees at most, itself among them; None where it sees all before it.
        chunks: the window is the chunk of so many tokens in which the token stands.
        sink: a learned logit in the denominator that takes attention away from every key.
        soft_cap: logits are kept within plus and minus this.
        log_temperature: logits are multiplied by a factor that grows with the logarithm of the row.
        slopes: of ALiBi, one for each head, as the model uses them.
        rows: of a formula, the parameters of each head that are known from the configuration.
        compressed: numbers that the cache keeps for one token, where that is not 2 x key_heads x width.
    """

    number: int
    position: str
    heads: int
    key_heads: int
    width: int
    window: int | None = None
    chunks: bool = False
    sink: bool = False
    soft_cap: float | None = None
    log_temperature: bool = False
    slopes: tuple[Value, ...] = ()
    rows: tuple[tuple[tuple[str, Value], ...], ...] = ()
    compressed: int = 0

    def cache_numbers(self, tokens: int, windows: bool = True) -> int:
        """How many numbers the cache of this layer holds after so many tokens."""
        each = self.compressed or 2 * self.key_heads * self.width
        return each * (tokens if self.window is None or not windows else min(tokens, self.window))


@dataclass(frozen=True)
class Scaling:
    """A way of stretching rotary positions beyond the training length."""

    kind: str  # "yarn", "linear", "dynamic", "llama3", "longrope", ...
    factor: float | None
    original: int | None  # the length of training before the stretching

    def sentence(self, claimed: int | None) -> str:
        """What it claims to do."""
        name = _SCALINGS.get(self.kind, self.kind)
        by = f" {self.factor:g} times" if self.factor else ""
        start = f" the training length of {self.original:,} tokens" if self.original else " the training length"
        end = f" to {claimed:,}" if claimed else ""
        return (
            f"{name} stretches{start}{by}{end}; it turns slower and adds no bias, so what the theorem says of these "
            "layers stays the same"
        )


@dataclass(frozen=True)
class DescribedModel:
    """What a configuration says: its layers, the length it was trained for, and how that was stretched."""

    kind: str  # model_type
    layers: tuple[Layer, ...]
    training_length: int | None
    claimed_length: int | None
    scaling: Scaling | None
    bytes_per_number: int | None  # None where the configuration does not say how numbers are stored
    assumed: dict[str, object] = field(default_factory=dict)  # fields that were missing, and what stood in for them
    unread: dict[str, object] = field(default_factory=dict)  # fields about attention that nothing here reads

    def cache_bytes(self, tokens: int, windows: bool = True) -> int:
        """Bytes of keys and values of one text of so many tokens."""
        return (self.bytes_per_number or 2) * sum(layer.cache_numbers(tokens, windows) for layer in self.layers)

    @property
    def local(self) -> tuple[Layer, ...]:
        """The layers with a window or chunk."""
        return tuple(layer for layer in self.layers if layer.window is not None)


def exact_reach(layers: Sequence[Layer]) -> int:
    """Tokens that a token can take from through these local layers alone, itself among them.

    Chunks beside windows could be left by a path through a window: then each chunk counts as a window, a bound only.
    """
    chunks = [layer.window or 1 for layer in layers if layer.chunks]
    if len(chunks) == len(layers):
        return max(chunks, default=1)
    return 1 + sum((layer.window or 1) - 1 for layer in layers)
