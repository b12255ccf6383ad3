"""The parts of the decoder: its encoding, dropout, attention and layers.

The encodings that are no bias are here too: sinusoidal positions, added to the embedding, and rotary ones, which turn q
and k. Their angles are computed in float64 from the position and rounded once, whatever the type of the model.

Shapes: B samples, N tokens, D width, H heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers.cache_utils import Cache, StaticSlidingWindowLayer

from farfield import zoo
from farfield.nn.attention.api import attention
from farfield.nn.attention.weights import attention_weights
from farfield.nn.bias import bias_of
from farfield.nn.decoder.config import FarfieldConfig

if TYPE_CHECKING:
    from jaxtyping import Float, Int

Window = int | Sequence[int] | None


def _angles(positions: Tensor, width: int, base: float) -> Tensor:
    """position / base**(2i/width) for i below width/2."""
    if width % 2:
        raise ValueError(f"the width is {width}; sines and cosines come in pairs, so it must be even")
    rate = base ** -(torch.arange(0, width, 2, dtype=torch.float64, device=positions.device) / width)
    return positions.to(torch.float64)[..., None] * rate


class Sinusoidal(nn.Module):
    """Sines and cosines of the position, to add to the token embedding (Vaswani et al. 2017)."""

    def __init__(self, width: int, base: float = 10_000.0) -> None:
        super().__init__()
        self.width, self.base = width, base

    def forward(self, positions: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape D"]:
        """Place 2i holds sin(position / base**(2i/D)), place 2i + 1 the cosine."""
        angle = _angles(positions, self.width, self.base)
        return torch.stack([angle.sin(), angle.cos()], -1).flatten(-2).float()


class Rope(nn.Module):
    """Turns each pair (i, i + D/2) of a query or key by its position times base**(-2i/D) (Su et al. 2021)."""

    def __init__(self, base: float = 10_000.0) -> None:
        super().__init__()
        self.base = base

    def forward(self, x: Float[Tensor, "B H N D"], positions: Int[Tensor, "*B N"]) -> Float[Tensor, "B H N D"]:
        """The queries or keys, turned; positions for all samples, or for each."""
        angle = _angles(positions, x.shape[-1], self.base)
        angle = angle.unsqueeze(-3)  # the same for every head
        cos, sin = angle.cos().float(), angle.sin().float()
        a, b = x.float().chunk(2, -1) if x.dtype != torch.float64 else x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1).to(x.dtype)


class Position(nn.Module):
    """The encoding of a model: a bias by distance, sinusoids added to the embedding, or a rotation of q and k."""

    def __init__(self, config: FarfieldConfig) -> None:
        super().__init__()
        heads, width = config.num_attention_heads, config.hidden_size // config.num_attention_heads
        self.sets = 1 if config.shared_bias else config.num_hidden_layers
        self.bias = bias_of(config.encoding, heads, width, config.encoding_parameters, layers=self.sets)
        name = zoo.find(config.encoding).name
        self.sinusoidal = Sinusoidal(config.hidden_size) if name == "sinusoidal" else None
        self.rope = Rope() if name == "rope" else None
        if self.bias is None and config.encoding_parameters:
            raise ValueError(f"The encoding {name!r} has no parameters, but encoding_parameters gives some.")

    def values(self) -> dict[str, str]:
        """How each parameter of the formula gets its value, in words: part of what a run is."""
        fixed, rules = getattr(self.bias, "fixed", {}), getattr(self.bias, "rules", {})
        return {name: str(value) for name, value in {**fixed, **rules}.items()}


@dataclass
class Placement:
    """Where the tokens of one call stand: everything about position that a layer needs."""

    encoding: Position
    positions: Tensor  # (N,) or (B, N)
    cache: Cache | None
    window: Window
    mask: Tensor | None  # (B, keys), true where there is a token
    past: int = 0  # tokens before these
    vectors: dict[tuple[int, int], Tensor] = field(default_factory=dict)
    weights: list[Tensor] | None = None  # collects the attention weights of each layer, if they are wanted

    def rotated(self, x_BHND: Tensor) -> Tensor:
        return x_BHND if self.encoding.rope is None else self.encoding.rope(x_BHND, self.positions)

    def bias(self, layer: int, keys: int, device: torch.device) -> Tensor | None:
        """The (heads, keys) bias of a layer, computed once where layers share it."""
        if self.encoding.bias is None:
            return None
        number = min(layer, self.encoding.sets - 1)
        if (number, keys) not in self.vectors:
            self.vectors[number, keys] = self.encoding.bias(keys, layer=number).to(device)
        return self.vectors[number, keys]


class Dropout:
    """The dropout of one forward pass; with a seed for each sample, the same whatever shares its batch.

    So a run's dropout is a function of the sample and of the place in the network: it needs no state to resume, one
    process draws for a sample exactly what two would, and a layer that is computed twice draws the same twice.
    """

    def __init__(self, share: float, seeds: Sequence[int] | None) -> None:
        self.share, self.seeds = share, seeds
        self.threshold = round(share * 65_536)  # of 16 random bits, which are four times cheaper than a float

    def __call__(self, x_BND: Tensor, place: int) -> Tensor:
        if self.threshold == 0:
            return x_BND
        if self.seeds is None:
            return nn.functional.dropout(x_BND, self.share)
        size = x_BND[0].numel()
        bits = torch.empty(len(x_BND), -(-size // 4), dtype=torch.int64, device=x_BND.device)
        draw = torch.Generator(device=x_BND.device)
        for row, seed in zip(bits, self.seeds, strict=True):
            row.random_(-(1 << 63), None, generator=draw.manual_seed(_mixed(seed + place)))
        stays = bits.view(torch.int16)[:, :size].view(x_BND.shape) >= self.threshold - 32_768
        return x_BND * stays.to(x_BND.dtype).mul_(65_536 / (65_536 - self.threshold))


def _mixed(number: int) -> int:
    """A number in which every bit depends on every bit of another (splitmix64): the CPU's generator reads only 32."""
    number = (number * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    return (number ^ (number >> 31)) >> 1


def keys_of(cache: Cache, k: Tensor, v: Tensor, layer: int, past: int, window: Window) -> tuple[Tensor, Tensor, Window]:
    """All keys and values that a layer attends to, the new ones last, and its window, from any cache of transformers.

    A static cache hands out all of its memory: what is not filled yet is cut away. A sliding cache keeps the tokens of
    its window, so its window holds for the new tokens too.
    """
    end = past + k.shape[2]
    k, v = cache.update(k, v, layer)
    store: Any = cache.layers[layer] if layer < len(getattr(cache, "layers", [])) else None
    if getattr(store, "is_sliding", False):
        if isinstance(store, StaticSlidingWindowLayer):
            raise ValueError(
                "a static cache with a sliding window keeps its keys out of order; use a static or a dynamic cache"
            )
        window = store.sliding_window if window is None else window
    return (k[:, :, :end], v[:, :, :end], window) if k.shape[2] > end else (k, v, window)


class SelfAttention(nn.Module):
    """Causal attention with the bias of the encoding; `project` gives what it attends with."""

    def __init__(self, config: FarfieldConfig, layer: int) -> None:
        super().__init__()
        self.layer, self.heads = layer, config.num_attention_heads
        self.inward = nn.Linear(config.hidden_size, 3 * config.hidden_size)
        self.outward = nn.Linear(config.hidden_size, config.hidden_size)

    def project(self, x_BND: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, each (batch, heads, n, width of a head)."""
        batch, n, width = x_BND.shape
        # taken apart before the heads are moved, so that backward puts the three together in one copy
        q, k, v = self.inward(x_BND).view(batch, n, 3, self.heads, width // self.heads).unbind(2)
        return q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)

    def forward(self, x_BND: Tensor, place: Placement) -> Tensor:
        q, k, v = self.project(x_BND)
        q, k = place.rotated(q), place.rotated(k)
        if (attend := getattr(place.cache, "attend", None)) is not None:  # a BoundedCache attends by itself
            if place.window is not None or place.weights is not None:
                raise ValueError("A bounded cache has its own windows and no weights: leave `window` and weights out.")
            y = attend(q, k, v, self.layer, place.mask)
        else:
            window, mask = place.window, place.mask
            if place.cache is not None:
                k, v, window = keys_of(place.cache, k, v, self.layer, place.past, window)
                mask = None if mask is None else mask[:, mask.shape[1] - k.shape[2] :]  # a sliding cache keeps the last
            bias = place.bias(self.layer, k.shape[2], q.device)
            y = attention(q, k, v, bias, window=window, mask=mask)
            if place.weights is not None:
                place.weights.append(attention_weights(q, k, bias, window=window, mask=mask))
        return self.outward(y.transpose(1, 2).reshape(x_BND.shape))


class DecoderLayer(nn.Module):
    """Attention and a ReLU feed-forward, each after a norm and added to what came in."""

    def __init__(self, config: FarfieldConfig, layer: int) -> None:
        super().__init__()
        self.gradient_checkpointing = False  # set by `model.gradient_checkpointing_enable()`
        self.attention_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.attention = SelfAttention(config, layer)
        self.feed_forward_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.up = nn.Linear(config.hidden_size, config.intermediate_size)
        self.down = nn.Linear(config.intermediate_size, config.hidden_size)

    def forward(self, x_BND: Tensor, place: Placement, dropout: Dropout) -> Tensor:
        if self.gradient_checkpointing and self.training and place.cache is None:  # a cache would be filled twice
            return checkpoint(self._forward, x_BND, place, dropout, use_reentrant=False)
        return self._forward(x_BND, place, dropout)

    def _forward(self, x_BND: Tensor, place: Placement, dropout: Dropout) -> Tensor:
        first = 2 + 2 * self.attention.layer  # 1 is the place after the embedding
        x_BND = x_BND + dropout(self.attention(self.attention_norm(x_BND), place), first)
        return x_BND + dropout(self.down(torch.relu(self.up(self.feed_forward_norm(x_BND)))), first + 1)
