"""The paper's decoder with any encoding, as a transformers model.

Pre-norm layers, ReLU feed-forward, embeddings scaled by the square root of the width and shared between input and
output, a final norm ("Exploring Transformer Extrapolation", AAAI 2024, as its authors trained it with fairseq). The
encoding is a field of the configuration: a name from the zoo or a formula. Attention takes O(n) memory, and with
labels the loss goes over the vocabulary in chunks, so that no tensor of n x n or n x words ever exists.

Shapes: B samples, N tokens, D width, H heads, V words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import AutoModelForCausalLM
from transformers import initialization as init
from transformers.cache_utils import Cache, DynamicCache
from transformers.generation import GenerationMixin
from transformers.modeling_outputs import CausalLMOutputWithPast
from transformers.modeling_utils import PreTrainedModel

from farfield import zoo
from farfield.nn.attention.api import attention
from farfield.nn.bias import bias_of
from farfield.nn.decoder.config import FarfieldConfig
from farfield.nn.decoder.loss import token_losses, vocabulary_loss
from farfield.nn.decoder.positions import Rope, Sinusoidal

Window = int | Sequence[int] | None


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
    vectors: dict[tuple[int, int], Tensor] = field(default_factory=dict)

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
        kept = bits.view(torch.int16)[:, :size].view(x_BND.shape) >= self.threshold - 32_768
        return x_BND * kept.to(x_BND.dtype).mul_(65_536 / (65_536 - self.threshold))


def _mixed(number: int) -> int:
    """A number in which every bit depends on every bit of another (splitmix64): the CPU's generator reads only 32."""
    number = (number * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    return (number ^ (number >> 31)) >> 1


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
            if place.window is not None:
                raise ValueError("A bounded cache has its own windows: leave `window` out.")
            y = attend(q, k, v, self.layer, place.mask)
        else:
            if place.cache is not None:
                k, v = place.cache.update(k, v, self.layer)
            bias = place.bias(self.layer, k.shape[2], q.device)
            y = attention(q, k, v, bias, window=place.window, mask=place.mask)
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
        if self.gradient_checkpointing and self.training:
            return checkpoint(self._forward, x_BND, place, dropout, use_reentrant=False)
        return self._forward(x_BND, place, dropout)

    def _forward(self, x_BND: Tensor, place: Placement, dropout: Dropout) -> Tensor:
        first = 2 + 2 * self.attention.layer  # 1 is the place after the embedding
        x_BND = x_BND + dropout(self.attention(self.attention_norm(x_BND), place), first)
        return x_BND + dropout(self.down(torch.relu(self.up(self.feed_forward_norm(x_BND)))), first + 1)


class FarfieldForCausalLM(PreTrainedModel, GenerationMixin):
    """The decoder and its loss. With labels it gives the loss and no logits, which is what saves the memory."""

    config_class = FarfieldConfig
    base_model_prefix = "decoder"
    main_input_name = "input_ids"
    accepts_loss_kwargs = False
    supports_gradient_checkpointing = True
    _no_split_modules = ("DecoderLayer",)
    _supports_sdpa = True

    def __init__(self, config: FarfieldConfig) -> None:
        super().__init__(config)
        self.embedding = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList([DecoderLayer(config, number) for number in range(config.num_hidden_layers)])
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        with torch.random.fork_rng(devices=[]):  # the other weights start alike whatever the encoding draws
            self.position = Position(config)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.embedding

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.embedding = value

    def get_output_embeddings(self) -> None:
        """None: the input embedding is the output embedding, and there is no second module to tie."""
        return

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """fairseq's first weights: embeddings N(0, 1/width), linear maps Xavier, the three inward ones as one each."""
        if isinstance(module, nn.Embedding):
            init.normal_(module.weight, mean=0.0, std=self.config.hidden_size**-0.5)
        elif isinstance(module, nn.LayerNorm):
            init.ones_(module.weight)
            init.zeros_(module.bias)
        elif isinstance(module, nn.Linear):
            # Xavier for an inward map of q, k or v alone, with fairseq's gain of 1/sqrt(2), is Xavier for (D, 3D)
            init.xavier_uniform_(module.weight)
            init.zeros_(module.bias)

    def hidden_states(
        self,
        input_ids: Tensor | None = None,
        *,
        inputs_embeds: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        cache: Cache | None = None,
        window: Window = None,
        sample_seeds: Tensor | None = None,
        every: list[Tensor] | None = None,
    ) -> Tensor:
        """The states after the final norm, (batch, n, width); `every` collects those that enter each layer."""
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("Give either input_ids or inputs_embeds, not both or neither.")
        x = self.embedding(input_ids) if inputs_embeds is None else inputs_embeds
        x = x * math.sqrt(self.config.hidden_size)
        past = 0 if cache is None else cache.get_seq_length()
        if position_ids is None:
            position_ids = torch.arange(past, past + x.shape[1], device=x.device)
        mask = _token_mask(attention_mask, past + x.shape[1])
        if self.position.sinusoidal is not None:
            x = x + self.position.sinusoidal(position_ids).to(x)
        place = Placement(self.position, position_ids, cache, window, mask)
        seeds = None if sample_seeds is None else sample_seeds.tolist()
        dropout = Dropout(self.config.dropout if self.training else 0.0, seeds)
        x = dropout(x, 1)
        if self.is_gradient_checkpointing and self.training:  # what layers share must not be computed inside of one
            for number in range(self.position.sets):
                place.bias(number, past + x.shape[1], x.device)
        for layer in self.layers:
            if every is not None:
                every.append(x)
            x = layer(x, place, dropout)
        return self.norm(x)

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        past_key_values: Cache | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        shift_labels: Tensor | None = None,
        use_cache: bool | None = None,
        logits_to_keep: int | Tensor = 0,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        cache_position: Tensor | None = None,
        window: Window = None,
        sample_seeds: Tensor | None = None,
    ) -> CausalLMOutputWithPast | tuple[Any, ...]:
        """As for every causal model of transformers, and:

        labels: (batch, n), compared with the prediction one place before; -100 does not count.
        shift_labels: the same, moved already: what should follow each token.
        cache_position: not needed; older versions of transformers hand it to every model.
        window: attend to the last so many tokens only (an integer, or one for each head).
        sample_seeds: (batch,), decides the dropout of each sample.
        """
        targets = shift_labels
        if labels is not None and targets is None:
            targets = nn.functional.pad(labels[:, 1:], (0, 1), value=-100)
        if use_cache is None:
            use_cache = self.config.use_cache and targets is None and not self.training
        if use_cache and past_key_values is None:
            past_key_values = DynamicCache()
        every: list[Tensor] | None = [] if output_hidden_states else None
        x = self.hidden_states(
            input_ids,
            inputs_embeds=inputs_embeds,
            attention_mask=attention_mask,
            position_ids=position_ids,
            cache=past_key_values if use_cache else None,
            window=window,
            sample_seeds=sample_seeds,
            every=every,
        )
        loss = logits = None
        if targets is not None:
            loss = vocabulary_loss(x.flatten(0, 1), self.embedding.weight, targets.flatten())
        else:
            kept = slice(-logits_to_keep, None) if isinstance(logits_to_keep, int) else logits_to_keep
            logits = nn.functional.linear(x[:, kept], self.embedding.weight)
        output = CausalLMOutputWithPast(
            loss=loss,
            logits=logits,
            past_key_values=past_key_values if use_cache else None,
            hidden_states=None if every is None else (*every, x),
        )
        wants_tuple = return_dict is False or (return_dict is None and not self.config.return_dict)
        return output.to_tuple() if wants_tuple else output

    @torch.no_grad()
    def token_losses(self, input_ids: Tensor, *, attention_mask: Tensor | None = None, window: Window = None) -> Tensor:
        """The loss of each token but the first, given those before it: (batch, n - 1), float32, in O(n) memory."""
        x = self.hidden_states(input_ids, attention_mask=attention_mask, window=window)
        losses = token_losses(x[:, :-1].flatten(0, 1), self.embedding.weight, input_ids[:, 1:].flatten())
        return losses.view(input_ids.shape[0], -1)


def _token_mask(attention_mask: Tensor | None, keys: int) -> Tensor | None:
    """Padding as a (batch, keys) table of booleans, or None where there is none."""
    if attention_mask is None:
        return None
    if attention_mask.ndim != 2 or attention_mask.shape[1] != keys:
        raise ValueError(
            f"attention_mask has shape {tuple(attention_mask.shape)}; it must be (batch, {keys}), 1 for each token "
            "and 0 for padding (static caches, which need a mask of four dimensions, are not supported)."
        )
    mask = attention_mask.bool()
    return None if bool(mask.all()) else mask


AutoModelForCausalLM.register(FarfieldConfig, FarfieldForCausalLM, exist_ok=True)
