"""The working precision of the Arb balls, set for a block of code and restored after it."""

from __future__ import annotations

from types import TracebackType

from flint import ctx


class precision:  # noqa: N801 - reads as a statement: `with precision(128):`
    """Work with `bits` of precision inside the block, and with power series of `terms` terms if that is given.

    python-flint cuts every power series to `ctx.cap` terms, 10 by default, without a word: whoever needs more
    derivatives must say so here.
    """

    def __init__(self, bits: int | None = None, *, terms: int | None = None):
        self.bits, self.terms = bits, terms

    def __enter__(self) -> precision:
        self.before = (ctx.prec, ctx.cap)
        if self.bits is not None:
            ctx.prec = self.bits
        if self.terms is not None:
            ctx.cap = self.terms
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        ctx.prec, ctx.cap = self.before
