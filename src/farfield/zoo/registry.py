"""The zoo by name: our encodings, and those of others.

Others add theirs with `farfield.register`, or by an entry point in the group "farfield.encodings".
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from farfield.formula import parse
from farfield.zoo.encoding import Encoding
from farfield.zoo.named import NAMED

ENTRY_POINTS = "farfield.encodings"
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def _printed(e: Encoding) -> Encoding:
    """The form that the paper prints, under the name NAME-paper."""
    free = parse(e.paper or "").parameters
    known = e.parameters if e.paper_parameters is None else e.paper_parameters
    used = tuple(p for p in known if p.name in free)
    return replace(e, name=f"{e.name}-paper", text=e.paper, parameters=used, paper=None)


class _Zoo(Mapping[str, Encoding]):
    """Every named encoding by its name; those of other packages are looked up when a name is not one of ours."""

    def __init__(self, own: Sequence[Encoding]):
        self._known = {e.name: e for e in own}
        self._known |= {f"{e.name}-paper": _printed(e) for e in own if e.paper is not None and e.paper != e.text}
        self._complete = False

    def add(self, encoding: Encoding) -> None:
        self._known[encoding.name] = encoding

    def __getitem__(self, name: str) -> Encoding:
        if name not in self._known and NAME.fullmatch(name):
            self._load()
        return self._known[name]

    def __contains__(self, name: object) -> bool:
        if name not in self._known and isinstance(name, str) and NAME.fullmatch(name):
            self._load()
        return name in self._known

    def __iter__(self) -> Iterator[str]:
        self._load()
        return iter(self._known)

    def __len__(self) -> int:
        self._load()
        return len(self._known)

    def __repr__(self) -> str:
        return f"ENCODINGS({', '.join(self)})"

    def _load(self) -> None:
        """Register what installed packages offer, once; a broken one is named in a warning and left out."""
        if self._complete:
            return
        self._complete = True
        from importlib.metadata import entry_points

        for point in entry_points(group=ENTRY_POINTS):
            try:
                offered = point.load()
                for encoding in offered if isinstance(offered, list | tuple) else [offered]:
                    register(encoding)
            except Exception as error:
                who = point.dist.name if point.dist is not None else "a package"
                warnings.warn(f"the encoding {point.name!r} of {who} was left out: {error}", stacklevel=4)


ENCODINGS = _Zoo(NAMED)


def register(encoding: Encoding) -> Encoding:
    """Add an encoding to the zoo: its name then works wherever one is expected.

    Args:
        encoding: a name that is not taken, and its formula.

    Returns:
        The encoding itself.
    """
    if not isinstance(encoding, Encoding):
        raise ValueError(f"only an Encoding can be registered, not {type(encoding).__name__}")
    if not isinstance(encoding.name, str) or not NAME.fullmatch(encoding.name) or len(encoding.name) > 40:
        shown = str(encoding.name)[:40]
        raise ValueError(f"the name of an encoding is made of a-z, 0-9 and hyphens, and begins with a-z, not {shown!r}")
    if encoding.name in ENCODINGS:
        raise ValueError(f"there is an encoding {encoding.name!r} already")
    names = set() if encoding.formula is None else set(encoding.formula.parameters)  # also refuses a broken formula
    for parameter in encoding.parameters:
        if parameter.name not in names:
            raise ValueError(f"the formula of {encoding.name!r} has no parameter {parameter.name!r}")
    ENCODINGS.add(encoding)
    return encoding
