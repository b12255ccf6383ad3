"""A needle in a text: does a model find a pair of key and value again that stands t tokens back?

The text is synthetic: pairs of a key and its value, drawn anew for every text, with the wanted pair once, t tokens
before the end, and its key again as the last token. The answer is the value that the model holds for the likeliest.
Beside the accuracy stands what the theory cuts off: receptive field, leak and window of the model's formula.

A model must be able to do the task at all: within its training length. One that is trained for it here can; one trained
on other text may not, and then nothing follows, which is said.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from farfield.measure.cutting import receptive_fields
from farfield.measure.models import Model, as_model
from farfield.measure.predictions import head_of, joint_verdict, leak_beyond, mean_leak

KEYS = VALUES = 4
ABLE = 0.9  # of the answers within the training length must be right, or nothing can be said
EPSILON = "0.01"


@dataclass(frozen=True)
class Needle:
    """How often a model finds the value at each distance.

    Attributes:
        accuracy: The share of right answers at each distance.
        chance: The share that guessing gives.
        field: The largest TRF(0.01) of its heads; None where a series diverges or there is no formula.
        window: Tokens that all layers reach together through windows, where every layer has one.
        leak: Mean over the heads, from the training length to the longest text.
        verdict: On the series of its heads.
        leaks: The share of the longest text that the formulas leave beyond each distance, the mean over the heads.
    """

    model: str
    encoding: str
    training_length: int
    trials: int
    distances: tuple[int, ...]
    accuracy: tuple[float, ...]
    chance: float
    field: int | None
    window: int | None
    leak: float | None
    verdict: str
    leaks: tuple[float | None, ...] = ()

    @property
    def able(self) -> bool:
        """Whether it can do the task within its training length, and within what the theory leaves it."""
        end = min(self.training_length, self.cut or self.training_length)
        within = [a for t, a in zip(self.distances, self.accuracy, strict=True) if t < end]
        return bool(within) and min(within) >= ABLE

    @property
    def cut(self) -> int | None:
        """The tokens from which on the theory cuts off: by windows, or all but 0.01 of each layer's weights."""
        return self.window or self.field

    @property
    def farthest(self) -> int | None:
        """The largest distance up to which it finds at least half of what it could, above chance."""
        level = (1 + self.chance) / 2
        last = None
        for t, a in zip(self.distances, self.accuracy, strict=True):
            if a < level:
                break
            last = t
        return last

    @property
    def sentence(self) -> str:
        """What was found, and what follows."""
        if not self.able:
            within = f"its training length of {self.training_length} tokens"
            if self.cut is not None and self.cut < self.training_length:
                within = f"the {self.cut} tokens that its formula leaves it"
            return f"{self.model} cannot do the task within {within}, so what it loses beyond says nothing about it."
        end = "at no distance that was tried" if self.farthest is None else f"up to {self.farthest} tokens back"
        cut = self.cut
        said = f"{self.model} finds the value {end}"
        if cut is None:
            return f"{said}; its formula cuts nothing off ({self.verdict})."
        lost = [a for t, a in zip(self.distances, self.accuracy, strict=True) if t >= cut]
        if not lost:
            return f"{said}; the theory cuts off from {cut} tokens on, which was not tried."
        held = "it gets lost" if max(lost) < (1 + self.chance) / 2 else "it is found all the same, so less was needed"
        how = "its windows cut off everything" if self.window else f"each layer's weights leave at most {EPSILON}"
        return f"{said}; {how} from {cut} tokens on: {held}."

    def json(self) -> dict[str, Any]:
        leaks = self.leaks or (None,) * len(self.distances)
        rows = [
            {"distance": t, "accuracy": a, "leak": x}
            for t, a, x in zip(self.distances, self.accuracy, leaks, strict=True)
        ]
        return {
            "model": self.model, "encoding": self.encoding, "training_length": self.training_length,
            "trials": self.trials, "chance": self.chance, "rows": rows, "able": self.able, "farthest": self.farthest,
            "trf": self.field, "window": self.window, "leak": self.leak, "verdict": self.verdict,
            "sentence": self.sentence,
        }  # fmt: skip


def texts(
    rng: np.random.Generator, words: int, trials: int, distance: int, length: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Texts of `length` tokens whose last key was seen once, its value `distance` tokens back: ids, answers, values.

    Pairs of other keys fill the rest, each key always with its own value. The distance is that of the value from the
    last token, and odd: keys and values take turns.
    """
    usable = min(words, 4096)
    out = np.zeros((trials, length), dtype=np.int64)
    answers = np.zeros(trials, dtype=np.int64)
    choices = np.zeros((trials, VALUES), dtype=np.int64)
    for row in range(trials):
        symbols = np.arange(1, KEYS + VALUES + 1)  # a model that was trained for the task knows no others
        if words > KEYS + VALUES + 1:
            symbols = rng.choice(np.arange(1, usable), KEYS + VALUES, replace=False)
        keys, values = symbols[:KEYS], symbols[KEYS:]
        value_of = dict(zip(keys.tolist(), rng.choice(values, KEYS).tolist(), strict=True))
        wanted, others = int(keys[0]), keys[1:]
        pairs = rng.choice(others, (length + 1) // 2)
        place = length - 1 - distance - 1  # of the wanted key; its value follows
        line = np.empty(length + 1, dtype=np.int64)
        line[0::2] = np.resize(pairs, len(line[0::2]))
        first = place % 2
        if first:  # keys stand at odd places then
            line[0] = int(others[0])
            line[1::2] = np.resize(pairs, len(line[1::2]))
        for at in range(first, length, 2):
            key = wanted if at == place else int(line[at])
            line[at] = key
            line[at + 1] = value_of[key]
        line[length - 1] = wanted
        out[row], answers[row], choices[row] = line[:length], value_of[wanted], values
    return torch.from_numpy(out), torch.from_numpy(answers), torch.from_numpy(choices)


def needle(
    model: Model,
    *,
    distances: Sequence[int] | None = None,
    trials: int = 64,
    seed: int = 0,
    window: int | None = None,
    watch: Callable[[], None] | None = None,
) -> Needle:
    """Measure how often a model finds a value again, by its distance.

    Args:
        model: What `load_model` or `as_model` gives.
        distances: Odd numbers of tokens; from 1 to four times the training length unless given.
        trials: Texts at each distance.
        seed: Of the texts.
        window: Cut every head of every layer at so many tokens.
        watch: Called after each distance.
    """
    if model.training_length is None:
        raise ValueError(f"{model.name!r} does not say its training length: give --training-length.")
    if model.words < KEYS + VALUES + 1:
        raise ValueError(f"{model.name} knows {model.words} words; the task needs {KEYS + VALUES + 1}.")
    if trials < 1:
        raise ValueError(f"{trials} trials were asked for; it must be at least 1.")
    longest = 4 * model.training_length if model.longest is None else model.longest - 3
    if distances is None:
        tried = sorted({min(longest, 2**p) // 2 * 2 + 1 for p in range(1, longest.bit_length() + 1)})
        tried = [t for t in tried if t + 3 <= (model.longest or t + 3)]
    else:
        tried = sorted(set(distances))
    if any(t < 1 or t % 2 == 0 for t in tried):
        raise ValueError("distances are odd numbers of tokens from 1 on: keys and values take turns in the text.")
    rng, accuracy = np.random.default_rng(seed), []
    for t in tried:
        length = max(t + 2, min(model.training_length, longest))
        ids, answers, choices = texts(rng, model.words, trials, t, length)
        right = 0
        for a in range(0, trials, 16):
            with torch.inference_mode():
                states = model.states(ids[a : a + 16].to(model.device), window)[:, -1]
                logits = model.logits(states).cpu()
            some = choices[a : a + 16]
            best = some.gather(1, logits.gather(1, some).argmax(-1, keepdim=True))[:, 0]
            right += int((best == answers[a : a + 16]).sum())
        accuracy.append(right / trials)
        if watch is not None:
            watch()
    longest_text = max(max(tried) + 2, model.training_length)
    reach = _own_window(model) if window is None else 1 + model.layers * (window - 1)
    heads = [head_of(model, layer, h, longest_text) for layer in range(model.layers) for h in range(model.heads)]
    fields = [f for row in receptive_fields(model, EPSILON) for f in row]
    return Needle(
        model.name, model.encoding, model.training_length, trials, tuple(tried), tuple(accuracy), 1 / VALUES,
        None if None in fields or not fields else max(f for f in fields if f is not None),
        reach, mean_leak(heads), joint_verdict(head["verdict"] for head in heads),
        tuple(leak_beyond(model, t, longest_text) for t in tried),
    )  # fmt: skip


def _own_window(model: Model) -> int | None:
    """The tokens that a model of windows reaches, where every layer has one."""
    from farfield.nn.cache.windowed import own_windows

    windows = own_windows(model.network.config) if model.network.config.model_type != "farfield" else None
    if windows is None or None in windows:
        return None
    return 1 + sum(w - 1 for w in windows if w is not None)


def trained_for_it(
    encoding: str,
    *,
    length: int = 32,
    steps: int = 300,
    width: int = 32,
    heads: int = 4,
    seed: int = 0,
    parameters: dict[str, Any] | None = None,
    device: str | torch.device = "cpu",
    watch: Callable[[int, float], None] | None = None,
) -> Model:
    """A small model of two layers, trained on the spot to look values up, within texts of `length` tokens.

    Args:
        encoding: A name from the zoo, or a formula.
        length: Tokens of a training text.
        steps: Of Adam, 32 texts each.
        width: Of the model.
        heads: Of a layer.
        seed: Of weights and texts.
        parameters: Of the formula.
        device: Where to train.
        watch: Called with the step and the loss.
    """
    from farfield.nn.decoder.config import FarfieldConfig
    from farfield.nn.decoder.model import FarfieldForCausalLM

    torch.manual_seed(seed)
    config = FarfieldConfig(
        vocab_size=KEYS + VALUES + 1, hidden_size=width, num_hidden_layers=2, num_attention_heads=heads,
        intermediate_size=2 * width, max_position_embeddings=length, encoding=encoding, dropout=0.0,
        encoding_parameters=parameters,
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
        if watch is not None:
            watch(step + 1, float(loss.detach()))
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
