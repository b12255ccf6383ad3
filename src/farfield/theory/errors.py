"""What theory raises: answers that are none (undecided, divergent, undefined), and signals between its own parts."""

from __future__ import annotations


class UndecidedError(ValueError):
    """Neither answer can be proven, or not within the limits of time and precision."""


class UnknownError(UndecidedError):
    """A number, a sign or a bound cannot be told; the text says which."""


class DivergenceError(ValueError):
    """The weights have no finite sum, so there is no receptive field; `reason` says why in a few words."""

    def __init__(self, reason: str = "", text: str = ""):
        self.reason = reason
        end = f": {reason}" if reason else ""
        super().__init__(f"the sum of the weights of {text} diverges, so it has no receptive field{end}")


class OutsideCoqError(ValueError):
    """The statement is outside what can be written for Coq; the sentence says why."""


class ZeroWeightsError(ValueError):
    """All weights are 0, so there is nothing to see."""

    def __init__(self, text: str):
        super().__init__(f"all weights of {text} are 0, so it has no receptive field")


class NotSmoothError(Exception):
    """A power series or a complex ball met a function that has no derivative there."""


class NotReachedError(Exception):
    """Euler-Maclaurin does not reach the precision from here."""


class IntegralError(Exception):
    """The integral takes too many evaluations: the weight oscillates."""


class EmptyRegionError(Exception):
    """No parameters satisfy the assumptions."""


class FaultError(Exception):
    """The formula is undefined (certain), or may be (not certain), and why."""

    def __init__(self, reason: str, certain: bool):
        super().__init__(reason)
        self.reason, self.certain = reason, certain
