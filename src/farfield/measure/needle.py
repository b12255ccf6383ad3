"""A needle in a text: does a model find the value of a key again, by distance, by depth and by the length of the text?

The text is synthetic: pairs of a key and its value, drawn anew for every text, with the wanted pair once and its key
again as the last token. The answer is the value that the model holds for the likeliest. Every distance is tried in
texts of several lengths, because the first pair of a text stands out even for a model without positions: a needle that
is always the first pair shows nothing about distance. All values stand in a text equally often, so that a reader who
counts them, and looks up no key, finds no more than the chance that stands beside each share.

Beside the shares stands what the theory cuts off: receptive field, leak and window of the model's formula. A model must
be able to do the task at all: within its training length. One that is trained for it here can; one that was trained on
other text may not, and then the sentence says that nothing follows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from farfield.measure.cutting import receptive_fields
from farfield.measure.models import Model, as_model
from farfield.measure.predictions import leak_beyond, series_of
from farfield.measure.statistics import share_interval
from farfield.measure.text import parse_lengths, possible_lengths, training_length_of

KEYS, VALUES = 5, 4  # one key is the wanted one; of the others each has a value of its own
ABLE = 0.9  # of the answers within the training length must be right, or nothing can be said
EPSILON = "0.01"
LENGTHS = ("1x", "2x", "4x")  # of the texts, in training lengths
AT_ONCE = 1 << 14  # tokens


@dataclass(frozen=True)
class NeedleCell:
    """How often a model finds the value at one distance in texts of one length.

    Attributes:
        length: Tokens of a text.
        distance: Tokens from the last one back to the value.
        depth: Where the pair stands among the pairs of the text: 0 is the first of them, 1 the last.
        right: How many answers were right, of `trials`.
        chance: The most that a reader finds who counts the values and looks nothing up.
        leak: The share of a row of this length that the formulas leave beyond the distance, the mean over the heads.
    """

    length: int
    distance: int
    depth: float
    right: int
    trials: int
    chance: float
    leak: float | None

    @property
    def share(self) -> float:
        return self.right / self.trials

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the share."""
        return share_interval(self.right, self.trials)

    @property
    def finds(self) -> bool | None:
        """Whether it finds more, or less, than half of what is above chance; None if that cannot be told."""
        level, (low, high) = (1 + self.chance) / 2, self.interval
        return True if low > level else False if high < level else None

    @property
    def text(self) -> str:
        """The share with its interval, in percent: 29 (19 to 41)."""
        return "{:.0f} ({:.0f} to {:.0f})".format(*(100 * x for x in (self.share, *self.interval)))

    def json(self) -> dict[str, Any]:
        return {**asdict(self), "accuracy": self.share, "interval": self.interval, "finds": self.finds}


@dataclass(frozen=True)
class Needle:
    """How often a model finds the value, by distance, depth and length.

    Attributes:
        cells: One for each length and each distance that it holds.
        trf: The largest TRF(0.01) of its heads; None where a series diverges or there is no formula.
        window: Tokens that all layers reach together through windows, where every layer has one.
        leak: Mean over the heads, from the training length to the longest text.
        verdict: On the series of its heads.
    """

    model: str
    encoding: str
    training_length: int
    cells: tuple[NeedleCell, ...]
    trf: int | None
    window: int | None
    leak: float | None
    verdict: str

    @property
    def cut(self) -> int | None:
        """The tokens from which on the theory cuts off: by windows, or all but 0.01 of each layer's weights."""
        return self.window or self.trf

    @property
    def within(self) -> list[NeedleCell]:
        """The cells within the training length and within what the theory leaves the model."""
        end = min(self.training_length, self.cut or self.training_length)
        return [cell for cell in self.cells if cell.length <= self.training_length and cell.distance < end]

    @property
    def able(self) -> bool:
        """Whether it can do the task there."""
        return bool(self.within) and min(cell.share for cell in self.within) >= ABLE

    @property
    def farthest(self) -> int | None:
        """The largest distance up to which it finds the value in texts of every length that was tried."""
        end = min((cell.distance for cell in self.cells if not cell.finds), default=math.inf)
        return max((cell.distance for cell in self.cells if cell.distance < end), default=None)

    @property
    def apart(self) -> tuple[NeedleCell, NeedleCell] | None:
        """At one distance the length that finds most and the one that finds least, where their intervals are apart."""
        pairs = [(a, b) for a in self.cells for b in self.cells if a.distance == b.distance]
        pairs = [(a, b) for a, b in pairs if a.interval[0] > b.interval[1]]
        return max(pairs, key=lambda pair: pair[0].share - pair[1].share, default=None)

    @property
    def sentence(self) -> str:
        """What was found, and what follows."""
        if self.apart is None:
            return self._finding
        shares = ", ".join(f"{cell.text} % in texts of {cell.length} tokens" for cell in self.apart)
        return f"{self._finding} Not the distance alone: {self.apart[0].distance} tokens back it finds {shares}."

    @property
    def _finding(self) -> str:
        if not self.able:
            within = f"its training length of {self.training_length} tokens"
            if self.cut is not None and self.cut < self.training_length:
                within = f"the {self.cut} tokens that its formula leaves it"
            what = "cannot do the task" if self.within else "was not asked for a value"
            return f"{self.model} {what} within {within}, so what it loses beyond says nothing about it."
        end = "at no distance" if self.farthest is None else f"up to {self.farthest} tokens back"
        longest = max(cell.length for cell in self.cells)
        said = f"{self.model} finds the value {end} in texts of every length up to {longest} tokens"
        if self.cut is None:
            return f"{said}; its formula cuts nothing off ({self.verdict})."
        beyond = {cell.finds for cell in self.cells if cell.distance >= self.cut}
        if not beyond:
            return f"{said}; the theory cuts off from {self.cut} tokens on, which was not tried."
        held = "it gets lost" if beyond == {False} else "whether it gets lost cannot be told"
        if True in beyond:
            held = "it is found all the same, so less was needed"
        how = "its windows cut off everything" if self.window else f"each layer's weights leave at most {EPSILON}"
        return f"{said}; {how} from {self.cut} tokens on: {held}."

    def json(self) -> dict[str, Any]:
        answers = {"able": self.able, "farthest": self.farthest, "sentence": self.sentence}
        return {**asdict(self), "cells": [cell.json() for cell in self.cells], **answers}


def texts(
    rng: np.random.Generator, words: int, trials: int, distance: int, length: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Texts of `length` tokens whose last key was seen once, its value `distance` tokens back: ids, answers, values.

    Pairs of other keys fill the rest, each key with a value of its own; the wanted pair has the value of one of them.
    All values stand in the text equally often, but for a remainder. The distance is that of the value from the last
    token, and odd: keys and values take turns.
    """
    first, pairs = (length - 1) % 2, (length - 1) // 2
    place = pairs - (distance + 1) // 2
    out = np.zeros((trials, length), dtype=np.int64)
    choices = np.zeros((trials, VALUES), dtype=np.int64)
    answers = np.zeros(trials, dtype=np.int64)
    for row in range(trials):
        symbols = np.arange(1, KEYS + VALUES + 1)  # a model that was trained for the task knows no others
        if words > KEYS + VALUES + 1:
            symbols = rng.choice(np.arange(1, min(words, 4096)), KEYS + VALUES, replace=False)
        (wanted, *others), values = rng.permutation(symbols[:KEYS]), rng.permutation(symbols[KEYS:])
        order = rng.permutation(np.arange(pairs) % VALUES)
        out[row, first:-1:2], out[row, first + 1 :: 2] = np.array(others)[order], values[order]
        out[row, 0] = out[row, 0] or others[0]
        out[row, first + 2 * place] = out[row, -1] = wanted
        answers[row], choices[row] = values[order[place]], values
    return torch.from_numpy(out), torch.from_numpy(answers), torch.from_numpy(choices)


def needle(
    model: Model,
    *,
    distances: Sequence[int] | None = None,
    lengths: str | Sequence[int | str] | None = None,
    trials: int = 64,
    seed: int = 0,
    window: int | None = None,
) -> Needle:
    """Measure how often a model finds a value again, by its distance in texts of several lengths.

    Args:
        model: What `load_model` or `as_model` gives.
        distances: Odd numbers of tokens; from an eighth of the training length to twice that, and the first pair of
            each text, unless given.
        lengths: Tokens of the texts, or multiples of the training length as "2x"; "1x,2x,4x" unless given. The training
            length is always among them.
        trials: Texts for each distance and length.
        seed: Of the texts.
        window: Cut every head of every layer at so many tokens.
    """
    base = training_length_of(model)
    if model.words < KEYS + VALUES + 1:
        raise ValueError(f"{model.name} knows {model.words} words; the task needs {KEYS + VALUES + 1}.")
    if trials < 1:
        raise ValueError(f"{trials} trials were asked for; it must be at least 1.")
    tried = sorted({base, *parse_lengths(LENGTHS if lengths is None else lengths, base)})
    tried, _ = possible_lengths(model, tried)
    if min(tried) < 2 * VALUES:
        raise ValueError(f"A text of {min(tried)} tokens is too short: it needs {2 * VALUES} for {VALUES} values.")
    asked = set(distances or ())
    if distances is None:
        asked = {max(1, base // 8 * 2**p) // 2 * 2 + 1 for p in range(5)} | {(n - 1) // 2 * 2 - 1 for n in tried}
    elif not asked or min(asked) < 1 or any(t % 2 == 0 for t in asked):
        raise ValueError("distances are odd numbers of tokens from 1 on: keys and values take turns in the text.")
    elif max(asked) > max(tried) - 2:
        raise ValueError(f"No text of {max(tried)} tokens holds {max(asked)} tokens before the last: give --lengths.")
    rng, cells = np.random.default_rng(seed), []
    for length in tried:
        for t in sorted(t for t in asked if t <= length - 2):
            pairs = (length - 1) // 2
            right = _right_answers(model, texts(rng, model.words, trials, t, length), window)
            depth = 1 - (t - 1) / 2 / (pairs - 1)
            chance, leak = math.ceil(pairs / VALUES) / pairs, leak_beyond(model, t, length)
            cells.append(NeedleCell(length, t, depth, right, trials, chance, leak))
    reach = _own_window(model) if window is None else 1 + model.layers * (window - 1)
    fields = [f for row in receptive_fields(model, EPSILON) for f in row]
    trf = None if None in fields else max((f for f in fields if f is not None), default=None)
    series = series_of(model, max(tried))
    return Needle(model.name, model.encoding, base, tuple(cells), trf, reach, leak=series.leak, verdict=series.verdict)


def _right_answers(model: Model, drawn: tuple[Tensor, Tensor, Tensor], window: int | None) -> int:
    """For how many texts the model holds the right value for the likeliest."""
    ids, answers, choices = drawn
    right, some = 0, max(1, AT_ONCE // ids.shape[1])
    for a in range(0, len(ids), some):
        with torch.inference_mode():
            states = model.states(ids[a : a + some].to(model.device), window)[:, -1]
            logits = model.logits(states).cpu()
        values = choices[a : a + some]
        best = values.gather(1, logits.gather(1, values).argmax(-1, keepdim=True))[:, 0]
        right += int((best == answers[a : a + some]).sum())
    return right


def _own_window(model: Model) -> int | None:
    """The tokens that a model of windows reaches, where every layer has one."""
    from farfield.models.networks.windowed import own_windows

    windows = own_windows(model.network.config) if model.network.config.model_type != "farfield" else None
    if windows is None or None in windows:
        return None
    return 1 + sum(w - 1 for w in windows if w is not None)


def trained_for_it(
    encoding: str,
    *,
    length: int = 32,
    steps: int = 600,
    width: int = 32,
    heads: int = 4,
    seed: int = 0,
    device: str | torch.device = "cpu",
) -> Model:
    """A small model of two layers, trained on the spot to look values up, within texts of `length` tokens.

    Args:
        encoding: A name from the zoo, or a formula.
        length: Tokens of a training text.
        steps: Of Adam, 32 texts each.
        width: Of the model.
        heads: Of a layer.
        seed: Of weights and texts.
        device: Where to train.
    """
    from farfield.nn.decoder.config import FarfieldConfig
    from farfield.nn.decoder.model import FarfieldForCausalLM

    torch.manual_seed(seed)
    config = FarfieldConfig(
        vocab_size=KEYS + VALUES + 1, hidden_size=width, num_hidden_layers=2, num_attention_heads=heads,
        intermediate_size=2 * width, max_position_embeddings=length, encoding=encoding, dropout=0.0,
    )  # fmt: skip
    network = FarfieldForCausalLM(config).train().to(device)
    rng = np.random.default_rng(seed)
    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3, betas=(0.9, 0.98), weight_decay=0.01)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = 3e-3 * min(1, (step + 1) / 50) * 0.5 * (1 + math.cos(math.pi * step / steps))
        ids, targets = (part.to(device) for part in _lookups(rng, 32, length))
        logits = network(ids).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
    return as_model(network, f"{encoding}, trained for it", length)


def _lookups(rng: np.random.Generator, count: int, length: int) -> tuple[Tensor, Tensor]:
    """Texts of pairs; the targets are the values of keys that have been seen before."""
    ids = np.zeros((count, length), dtype=np.int64)
    targets = np.full((count, length), -100, dtype=np.int64)
    for row in range(count):
        keys, values = np.arange(1, KEYS + 1), np.arange(KEYS + 1, KEYS + VALUES + 1)
        value_of = rng.choice(values, KEYS)
        start = int(rng.integers(0, 2))
        order = rng.integers(0, KEYS, length // 2 + 1)
        rare = int(rng.integers(0, KEYS))  # one key is rare, so that its value must be kept for long
        order = np.where((order == rare) & (rng.uniform(size=len(order)) < 0.7), (rare + 1) % KEYS, order)
        line = np.empty(2 * len(order) + 1, dtype=np.int64)
        line[0] = keys[order[0]]
        line[start : start + 2 * len(order) : 2] = keys[order]
        free = line[start + 1 :: 2]
        free[:] = value_of[order][: len(free)]
        ids[row] = line[:length]
        seen: set[int] = set()
        for at, number in zip(range(start, length, 2), order, strict=False):
            if int(number) in seen:
                targets[row, at] = value_of[number]
            seen.add(int(number))
    return torch.from_numpy(ids), torch.from_numpy(targets)
