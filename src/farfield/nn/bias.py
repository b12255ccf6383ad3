"""From a formula to the bias of each head: a (heads, n) vector of float32, with learned parameters where it has some.

The formula in the zoo, or the one that a person typed, is the only definition. It is evaluated in float64 and rounded
to float32 whatever the type of the model: in bfloat16 a large k*t would lose whole stretches of positions. Learned
parameters stay float32 for the same reason, however a model is loaded, converted or trained.

Shapes: H heads, n distances, S sets of learned parameters (one for all layers, or one for each layer).
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from farfield import zoo
from farfield.formula import Formula, parse
from farfield.zoo.learned import Learned, learned_rule

if TYPE_CHECKING:
    from jaxtyping import Float

Given = float | str | Sequence[float | str] | Mapping[str, Any]


def bias_of(
    encoding: str | zoo.Encoding,
    heads: int,
    width: int = 64,
    parameters: Mapping[str, Given] | None = None,
    *,
    layers: int = 1,
) -> Bias | T5Bias | None:
    """The bias module of an encoding, a name or a formula; None where the encoding is no bias (sinusoidal, rope)."""
    entry = zoo.find(encoding)
    if entry.formula is None:
        return None
    if entry.name == "t5":
        if parameters:
            raise ValueError("t5 learns a value for each bucket of distances; it takes no parameters")
        return T5Bias(heads, layers=layers)
    return Bias(encoding, heads, width, parameters, layers=layers)


class Float32Parameters(nn.Module):
    """A module whose parameters stay float32 (or float64) in a model of a narrower type, which would round them."""

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        """What `.half()`, `.to(torch.bfloat16)` and the like call: they move parameters and leave their type alone."""

        def converted(p: Tensor) -> Tensor:
            new = fn(p)
            narrow = new.is_floating_point() and new.dtype.itemsize < 4
            return p.to(new.device, torch.promote_types(p.dtype, torch.float32)) if narrow else new

        return super()._apply(converted, recurse)


def new_parameter(*shape: int) -> nn.Parameter:
    """A parameter without values; float32, or float64 where that is torch's type of new tensors."""
    kind = torch.promote_types(torch.get_default_dtype(), torch.float32)
    return nn.Parameter(torch.empty(*shape, dtype=kind))


class Bias(Float32Parameters):
    """The bias vector of each head, from the formula of an encoding.

    Args:
        encoding: A name from the zoo, a formula, or `Encoding("-a*log(1 + p*t)", learn={"a": (0, 2), ...})`.
        heads: How many heads.
        width: Of a head; Sandwich takes its number of terms from it.
        parameters: Of the formula, before those of the zoo: a number, a constant as text ("2**(-1/2)"), one of either
            for each head, or {"start": (0, 2), "least": 0, "most": None, "spread": True} for a learned one. In a
            formula that a person typed, `k` is the head's ALiBi slope unless it is given here.
        layers: How many sets of learned parameters: 1 is shared by all layers, as in KERPLE.
    """

    def __init__(
        self,
        encoding: str | zoo.Encoding,
        heads: int,
        width: int = 64,
        parameters: Mapping[str, Given] | None = None,
        *,
        layers: int = 1,
    ) -> None:
        super().__init__()
        entry = zoo.find(encoding)
        if entry.formula is None or entry.name == "t5":
            what = "learns a value for each bucket: use T5Bias" if entry.name == "t5" else "is not a bias"
            raise ValueError(f"the encoding {entry.name!r} {what}")
        entry.formula.require_one_bias("a model")
        if heads < 1 or layers < 1:
            raise ValueError(f"{heads} heads and {layers} layers were given; each must be at least 1")
        self.encoding = encoding if isinstance(encoding, str) else entry.name
        self.heads, self.formula = heads, entry.formula
        self.rules, self.fixed = _rules(entry, heads, width, dict(parameters or {}))
        self.learned = nn.ParameterDict({name: new_parameter(layers, heads) for name in self.rules})
        self._vector: Tensor | None = None  # the vector from distance 0 on, if nothing is learned
        self.reset_parameters()
        self._require_values()

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Let the learned parameters start where their rules say."""
        for name, rule in self.rules.items():
            start(self.learned[name], rule, generator)
        self.keep_in_range()

    def forward(
        self, n: int, *, offset: int = 0, layer: int = 0, device: torch.device | str | None = None
    ) -> Float[Tensor, "H n"]:
        """The bias at the distances offset, ..., offset + n - 1, as that layer has it.

        Args:
            n: How many distances.
            offset: The first of them.
            layer: Which set of learned parameters, where there are several.
            device: Where to put it; that of the learned parameters, or the CPU, unless given.
        """
        if n < 1 or offset < 0:
            raise ValueError(f"{n} distances from {offset} on were asked for; it must be at least 1, from 0 or more on")
        if self.learned:
            return self._at(offset, n, layer).to(device)
        place = torch.device("cpu" if device is None else device)
        if self._vector is None or self._vector.shape[1] < offset + n or self._vector.device != place:
            before = 0 if self._vector is None else self._vector.shape[1] + self._vector.shape[1] // 2
            self._vector = self._at(0, max(offset + n, before), layer).to(place)  # ahead: decoding adds one each time
        return self._vector[:, offset : offset + n]

    def with_formula(self, formula: Formula, fixed: Mapping[str, float | list[float]]) -> Bias:
        """The same module with another formula and values: what is learned is shared, no vector is taken over."""
        changed = copy.copy(self)
        changed.formula, changed._vector = formula, None
        changed.fixed = {name: value for name, value in fixed.items() if name in formula.parameters}
        return changed

    def values_of(self, head: int, layer: int = 0) -> dict[str, float]:
        """The parameters of one head as they stand: with these the formula can be given to `farfield check`."""
        self.keep_in_range()
        learned = {name: p[min(layer, len(p) - 1), head].item() for name, p in self.learned.items()}
        return {name: v if isinstance(v, float) else v[head] for name, v in self.fixed.items()} | learned

    @torch.no_grad()
    def _require_values(self) -> None:
        """Refuse a formula that has no value at some distance for parameters from the range in which they start."""
        if not self.rules or any(p.device.type == "meta" for p in self.learned.values()):
            return
        t = torch.tensor([*range(65), *(2**e for e in range(7, 21))], dtype=torch.float64, device="cpu")
        fixed = {name: v if isinstance(v, float) else v[0] for name, v in self.fixed.items()}
        for corner in itertools.islice(itertools.product(*(set(rule.edges) for rule in self.rules.values())), 256):
            values = dict(zip(self.rules, corner, strict=True))
            r = self.formula.torch(t, {**fixed, **values})
            bad = (r.isnan() | (r == torch.inf)).nonzero()
            if len(bad):
                where = ", ".join(f"{name} = {v:g}" for name, v in values.items())
                raise ValueError(
                    f"{self.encoding} has no value at t = {t[bad[0]].item():g} with {where}: start elsewhere"
                )

    def extra_repr(self) -> str:
        return f"{self.encoding!r}, heads={self.heads}"

    def _at(self, offset: int, n: int, layer: int) -> Tensor:
        self.keep_in_range()
        device = next((p.device for p in self.learned.values()), None)
        number = torch.float32 if device is not None and device.type == "mps" else torch.float64
        t = torch.arange(offset, offset + n, dtype=number, device=device)
        names: dict[str, Any] = {
            name: v if isinstance(v, float) else t.new_tensor(v)[:, None] for name, v in self.fixed.items()
        }
        for name, p in self.learned.items():
            names[name] = p[min(layer, len(p) - 1)].to(number)[:, None].expand(self.heads, n)
            if names[name].requires_grad:  # at t = 0 the derivative of sqrt(a*t) reads infinity times zero: it is zero
                names[name].register_hook(lambda g: g.masked_fill(g.isnan() & (t == 0), 0.0))
        exact = any(p.dtype == torch.float64 for p in self.learned.values())
        return self.formula.torch(t.expand(self.heads, n), names).to(torch.float64 if exact else torch.float32)

    @torch.no_grad()
    def keep_in_range(self) -> None:
        """Move a learned parameter that an update took out of its range back to the edge, where it can still learn."""
        for name, rule in self.rules.items():
            p = self.learned[name]
            p = p.to_local() if hasattr(p, "to_local") else p  # of a divided parameter, the share of this process
            if p.device.type != "meta" and (rule.least, rule.most) != (None, None):
                inside = p.clamp(rule.least, rule.most)
                if not torch.equal(inside, p):
                    p.copy_(inside)


class T5Bias(Float32Parameters):
    """T5's bias: a learned value for each of 32 buckets of distance, the last one for everything from 113 on."""

    def __init__(self, heads: int, *, layers: int = 1) -> None:
        super().__init__()
        self.bucket: Formula = parse(zoo.T5_BUCKET)
        self.table = new_parameter(layers, heads, zoo.T5_BUCKETS)
        nn.init.zeros_(self.table)

    def forward(self, n: int, *, offset: int = 0, layer: int = 0) -> Float[Tensor, "H n"]:
        """The bias at the distances offset, ..., offset + n - 1, as that layer has it."""
        t = torch.arange(offset, offset + n, dtype=torch.float64)
        bucket = self.bucket.torch(t).long().to(self.table.device)
        table = self.table[min(layer, len(self.table) - 1)]
        return table[:, bucket].to(torch.promote_types(table.dtype, torch.float32))


@torch.no_grad()
def start(p: Tensor, rule: Learned, generator: torch.Generator | None = None) -> None:
    """Where a (sets, heads) parameter starts: given, each head in its own part, or anywhere."""
    if rule.values is not None:
        p.copy_(p.new_tensor(rule.values).expand_as(p))
    elif rule.spread:
        sets, heads = p.shape
        order = [torch.randperm(heads, generator=generator, device=p.device) for _ in range(sets)]
        share = (torch.stack(order) + torch.rand(p.shape, generator=generator, device=p.device)) / heads
        p.copy_(rule.start[0] + (rule.start[1] - rule.start[0]) * share)
    else:
        nn.init.uniform_(p, *rule.start, generator=generator)


def _rules(
    entry: zoo.Encoding, heads: int, width: int, parameters: dict[str, Given]
) -> tuple[dict[str, Learned], dict[str, float | list[float]]]:
    """How each parameter gets its value: the rules of the learned ones, and the values of the others."""
    assert entry.formula is not None
    zoo.require_parameters(entry, parameters)
    values = entry.heads(heads, {n: v for n, v in parameters.items() if not isinstance(v, Mapping)}, width=width)
    rules: dict[str, Learned] = {}
    fixed: dict[str, float | list[float]] = {}
    for name in entry.formula.parameters:
        rule, value = entry.rule(name), parameters.get(name)
        if isinstance(value, Mapping):
            rules[name] = learned_rule(name, value)
            if len(rules[name].values or ()) not in (0, heads):
                raise ValueError(f"{name} starts at {len(rules[name].values or ())} values for {heads} heads")
        elif name in values[0]:
            alike = isinstance(rule, zoo.Fixed) if value is None else not isinstance(value, list | tuple)
            numbers = [zoo.number(row[name]) for row in values]
            fixed[name] = numbers[0] if alike else numbers
        elif isinstance(rule, Learned):
            rules[name] = rule
        else:
            raise ValueError(
                f"{entry.name!r} needs a value for its parameter {name!r}; give parameters={{{name!r}: ...}}"
            )
    return rules, fixed
