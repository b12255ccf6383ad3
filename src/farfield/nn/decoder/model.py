"""The paper's decoder with any encoding, as a model of transformers: alone, with its loss, and as a classifier.

Pre-norm layers, ReLU feed-forward, embeddings scaled by the square root of the width and shared between input and
output, a final norm ("Exploring Transformer Extrapolation", AAAI 2024, as its authors trained it with fairseq). The
encoding is a field of the configuration: a name from the zoo or a formula. Attention takes O(n) memory, and with
labels the loss goes over the vocabulary in chunks, so that no tensor of n x n or n x words ever exists.

Shapes: B samples, N tokens, D width, H heads, V words.
"""

from __future__ import annotations

import math
from typing import Any, NoReturn

import torch
from torch import Tensor, nn
from transformers import AutoModel, AutoModelForCausalLM, AutoModelForSequenceClassification
from transformers import initialization as init
from transformers.cache_utils import Cache, DynamicCache
from transformers.generation import GenerationMixin
from transformers.loss.loss_utils import ForSequenceClassificationLoss
from transformers.modeling_outputs import (
    BaseModelOutputWithPast,
    CausalLMOutputWithPast,
    SequenceClassifierOutputWithPast,
)
from transformers.modeling_utils import PreTrainedModel

from farfield.nn.bias import Bias, T5Bias, start
from farfield.nn.decoder import interface as interface  # makes attn_implementation='farfield' known
from farfield.nn.decoder.blocks import DecoderLayer, Dropout, Placement, Window
from farfield.nn.decoder.blocks import Position as Position
from farfield.nn.decoder.config import FarfieldConfig
from farfield.nn.decoder.loss import token_losses, vocabulary_loss
from farfield.nn.decoder.model_inputs import check_targets, packed_positions, packed_texts, token_mask


class FarfieldDecoder(PreTrainedModel):
    """The decoder without a loss: states for each token."""

    config_class = FarfieldConfig
    base_model_prefix = "decoder"
    main_input_name = "input_ids"
    supports_gradient_checkpointing = True
    _no_split_modules = ("DecoderLayer",)
    _keep_in_fp32_modules_strict = ["position.bias"]  # noqa: RUF012  transformers wants a list
    _supports_sdpa = True

    def __init__(self, config: FarfieldConfig) -> None:
        super().__init__(config)
        self.embedding = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList([DecoderLayer(config, number) for number in range(config.num_hidden_layers)])
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self._add_parts(config)
        with torch.random.fork_rng(devices=[]):  # the other weights start alike whatever the encoding draws
            self.position = Position(config)
        self.drawn = all(p.device.type != "meta" for p in self.position.parameters())
        self.post_init()
        self.drawn = False

    def _add_parts(self, config: FarfieldConfig) -> None:
        """What a model with a head has besides."""

    def get_input_embeddings(self) -> nn.Module:
        return self.embedding

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.embedding = value

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
            if module.bias is not None:
                init.zeros_(module.bias)
        elif self.drawn:  # the encoding was drawn when it was made; again only where a checkpoint has no such weight
            return
        elif isinstance(bias := self.position.bias, Bias) and module is bias.learned:
            for name, rule in bias.rules.items():
                drawn = torch.empty_like(module[name])
                start(drawn, rule)
                init.copy_(module[name], drawn)  # which leaves alone what a checkpoint gave
            bias.keep_in_range()
        elif isinstance(module, T5Bias):
            init.zeros_(module.table)

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
        weights: list[Tensor] | None = None,
    ) -> Tensor:
        """The states after the final norm, (batch, n, width).

        `every` collects the states that enter each layer, `weights` the attention weights of each layer. Texts that are
        packed into one row, with position_ids that begin again at 0, do not see each other.
        """
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("Give either input_ids or inputs_embeds, not both or neither.")
        x = self.embedding(input_ids) if inputs_embeds is None else inputs_embeds
        past = 0 if cache is None else int(cache.get_seq_length())
        mask = token_mask(attention_mask, x.shape[1], past + x.shape[1])
        packed = packed_texts(position_ids, mask, past)
        if packed is not None:
            if cache is not None or sample_seeds is not None or every is not None or weights is not None:
                raise ValueError("packed texts come without a cache, sample_seeds, hidden states or attention weights")
            apart = self.hidden_states(inputs_embeds=packed.apart(x), attention_mask=packed.mask, window=window)
            return packed.together(apart, x)
        x = x * math.sqrt(self.config.hidden_size)
        if position_ids is None:
            position_ids = torch.arange(past, past + x.shape[1], device=x.device)
        if self.position.sinusoidal is not None:
            x = x + self.position.sinusoidal(position_ids).to(x)
        place = Placement(self.position, position_ids, cache, window, mask, past, weights=weights)
        seeds = None if sample_seeds is None else sample_seeds.tolist()
        dropout = Dropout(self.config.dropout if self.training else 0.0, seeds)
        x = dropout(x, 1)
        if self.training and any(layer.gradient_checkpointing for layer in self.layers):
            # what layers share must not be computed inside of one
            for number in range(self.position.sets):
                place.bias(number, past + x.shape[1], x.device)
        for layer in self.layers:
            if every is not None:
                every.append(x)
            x = layer(x, place, dropout)
        return self.norm(x)

    def _run(
        self, training: bool, use_cache: bool | None, past_key_values: Cache | None, output_attentions: bool | None,
        output_hidden_states: bool | None, **inputs: Any,
    ) -> tuple[Tensor, dict[str, Any]]:  # fmt: skip
        """The states, and what every output of transformers holds besides."""
        if use_cache is None:
            packs = packed_texts(inputs["position_ids"], None, 0) is not None
            use_cache = self.config.use_cache and not training and not self.training and not packs
        if use_cache and past_key_values is None:
            past_key_values = DynamicCache()
        every: list[Tensor] | None = [] if output_hidden_states else None
        weights: list[Tensor] | None = [] if output_attentions else None
        x = self.hidden_states(cache=past_key_values, every=every, weights=weights, **inputs)
        return x, {
            "past_key_values": past_key_values if use_cache else None,
            "hidden_states": None if every is None else (*every, x),
            "attentions": None if weights is None else tuple(weights),
        }

    def _answer(self, output: Any, return_dict: bool | None) -> Any:
        wants_tuple = return_dict is False or (return_dict is None and not self.config.return_dict)
        return output.to_tuple() if wants_tuple else output

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        past_key_values: Cache | None = None,
        inputs_embeds: Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        cache_position: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        window: Window = None,
        **packing: Any,
    ) -> BaseModelOutputWithPast | tuple[Any, ...]:
        """The states of each token; arguments as for `FarfieldForCausalLM`."""
        x, others = self._run(
            False, use_cache, past_key_values, output_attentions, output_hidden_states, input_ids=input_ids,
            inputs_embeds=inputs_embeds, attention_mask=attention_mask, window=window,
            position_ids=packed_positions(position_ids, packing),
        )  # fmt: skip
        return self._answer(BaseModelOutputWithPast(last_hidden_state=x, **others), return_dict)


class FarfieldForCausalLM(FarfieldDecoder, GenerationMixin):
    """The decoder and its loss. With labels it keeps no logits, which is what saves the memory."""

    accepts_loss_kwargs = True

    @property
    def base_model(self) -> FarfieldDecoder:
        """The decoder without the loss: the same modules as a model of its own, whatever `forward` was put on this."""
        decoder = FarfieldDecoder.__new__(FarfieldDecoder)
        decoder.__dict__.update({name: value for name, value in self.__dict__.items() if name != "forward"})
        return decoder

    def get_output_embeddings(self) -> nn.Linear:
        """The input embedding as the linear map that gives the logits."""
        words, width = self.embedding.weight.shape
        head = nn.Linear(width, words, bias=False, device="meta")
        head.weight = self.embedding.weight
        return head

    def set_output_embeddings(self, value: nn.Module) -> None:
        self.embedding.weight = value.weight

    def forward(  # type: ignore[override]
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
        window: Window = None,
        sample_seeds: Tensor | None = None,
        num_items_in_batch: int | Tensor | None = None,
        output_attentions: bool | None = None,
        cache_position: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        **packing: Any,
    ) -> CausalLMOutputWithPast | tuple[Any, ...]:
        """As for every causal model of transformers, and:

        labels: (batch, n), compared with the prediction one place before; -100 does not count.
        shift_labels: the same, moved already: what should follow each token.
        past_key_values: what came before, also with labels and in training.
        position_ids: may begin again at 0 within a row: packed texts do not see each other.
        packing: cu_seq_lens_q, where the packed texts of one row begin and the last ends, if not by position_ids; what
            collators hand over besides (cu_seq_lens_k, max_length_q, max_length_k, seq_idx) says the same again.
        num_items_in_batch: how many labels the whole batch has, of which this is a part: divides the sum of the losses.
        output_attentions: also the weights, for short texts.
        window: attend to the last so many tokens only (an integer, or one for each head).
        sample_seeds: (batch,), decides the dropout of each sample.
        cache_position, token_type_ids: are taken, because others hand them over, and say nothing new.
        """
        targets = shift_labels
        if labels is not None and targets is None:
            targets = nn.functional.pad(labels[:, 1:], (0, 1), value=-100)
        x, others = self._run(
            targets is not None, use_cache, past_key_values, output_attentions, output_hidden_states,
            input_ids=input_ids, inputs_embeds=inputs_embeds, attention_mask=attention_mask, window=window,
            position_ids=packed_positions(position_ids, packing), sample_seeds=sample_seeds,
        )  # fmt: skip
        if targets is None:
            rows = slice(-logits_to_keep, None) if isinstance(logits_to_keep, int) else logits_to_keep
            logits = nn.functional.linear(x[:, rows], self.embedding.weight)
            return self._answer(CausalLMOutputWithPast(logits=logits, **others), return_dict)
        check_targets(targets, self.config.vocab_size)
        loss = vocabulary_loss(x.flatten(0, 1), self.embedding.weight, targets.flatten())
        if num_items_in_batch is not None:
            loss = loss * ((targets != -100).sum() / num_items_in_batch)
        return self._answer(CausalLMOutputWithPast(loss=loss, **others), return_dict)

    @torch.no_grad()
    def token_losses(self, input_ids: Tensor, *, attention_mask: Tensor | None = None, window: Window = None) -> Tensor:
        """The loss of each token but the first, given those before it: (batch, n - 1), float32, in O(n) memory."""
        x = self.hidden_states(input_ids, attention_mask=attention_mask, window=window)
        losses = token_losses(x[:, :-1].flatten(0, 1), self.embedding.weight, input_ids[:, 1:].flatten())
        return losses.view(input_ids.shape[0], -1)

    def generate_batch(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise ValueError(
            "continuous batching keeps keys in pages, and this model's attention reads a text in one piece; "
            "use generate() with padding on the left"
        )

    init_continuous_batching = generate_batch


class FarfieldForSequenceClassification(FarfieldDecoder):
    """The decoder with a linear map of the last token's state: one label, or a number, for each text."""

    def _add_parts(self, config: FarfieldConfig) -> None:
        self.score = nn.Linear(config.hidden_size, config.num_labels, bias=False)

    def forward(  # type: ignore[override]
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        past_key_values: Cache | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        cache_position: Tensor | None = None,
        token_type_ids: Tensor | None = None,
    ) -> SequenceClassifierOutputWithPast | tuple[Any, ...]:
        """As for every classifier of transformers; padding is known by the mask, or by `pad_token_id` at the end."""
        x, others = self._run(
            labels is not None, use_cache, past_key_values, output_attentions, output_hidden_states,
            input_ids=input_ids, inputs_embeds=inputs_embeds, attention_mask=attention_mask, position_ids=position_ids,
            window=None,
        )  # fmt: skip
        real = None if attention_mask is None else attention_mask[:, -x.shape[1] :].bool()
        if real is None and input_ids is not None and self.config.pad_token_id is not None:
            real = input_ids != self.config.pad_token_id
        if real is None:
            real = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
        last = (real * torch.arange(x.shape[1], device=x.device)).argmax(-1)
        logits = self.score(x[torch.arange(len(x), device=x.device), last])
        loss = None
        if labels is not None:
            loss = ForSequenceClassificationLoss(labels=labels, pooled_logits=logits, config=self.config)
        return self._answer(SequenceClassifierOutputWithPast(loss=loss, logits=logits, **others), return_dict)


AutoModel.register(FarfieldConfig, FarfieldDecoder, exist_ok=True)
AutoModelForCausalLM.register(FarfieldConfig, FarfieldForCausalLM, exist_ok=True)
AutoModelForSequenceClassification.register(FarfieldConfig, FarfieldForSequenceClassification, exist_ok=True)
