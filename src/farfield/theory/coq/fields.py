"""Exact receptive fields as theorems of Coq: the closed forms, and how many terms and bits their proof takes.

Alibi -k*t, the power laws -p*log(c + d*t) with rational p and c/d, type 1 -log(1 + (k*t)**2) with rational k**2, and
windows. The number itself comes from theory; here the same two comparisons are made as Coq will make them, so that a
file is only written if they can succeed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from math import isqrt

from flint import arb, ctx

from farfield.formula import Formula, Node, tree
from farfield.formula.algebras import ball_value, exact_value
from farfield.theory.coq.certificates import line_of
from farfield.theory.coq.terms import atom, nat, rational, weight_term, wrap
from farfield.theory.errors import OutsideCoqError
from farfield.theory.exact.constants import ball

MOST_DIGITS = 100  # of a receptive field
TERMS = (30, 100, 300, 1000, 3000)  # that Coq may add up
MOST_TERMS = 4096
POWERS = 12  # of 1/t in the tail of type 1; proofs/QuadraticTrf.v says the same
ZERO = tree.ZERO
Bounds = tuple[arb, arb]
Tactic = Callable[[Fraction, int], str | None]  # for an epsilon and its field; None where the proof would not succeed


def fields_block(formula: Formula, fields: Iterable[tuple[Fraction, int]], start: int) -> str:
    """The weight and its receptive fields, without a verdict."""
    theorems = field_theorems(formula, fields, start)
    return f"(* {formula.text()} *)\n{wrap(f'Definition b (t : nat) : R := {weight_term(formula)}.')}\n{theorems}"


def field_theorems(formula: Formula, fields: Iterable[tuple[Fraction, int]], start: int) -> str:
    """One theorem for each epsilon and its receptive field, about the weight `b` that stands before them."""
    if start:
        raise OutsideCoqError("a receptive field is proven in Coq for sums that start at t = 0")
    if formula.is_bounded_family:
        raise OutsideCoqError("the receptive field of a bounded family is not written for Coq")
    tactic, sentences = _tactic(formula), []
    for i, (epsilon, tokens) in enumerate(fields, 1):
        if len(str(tokens)) > MOST_DIGITS:
            raise OutsideCoqError(f"no Coq proof is written for a receptive field of more than {MOST_DIGITS} digits")
        proof = tactic(epsilon, tokens)
        if proof is None:
            why = f"is a tie, or Coq would have to add up more than {TERMS[-1]} terms"
            raise OutsideCoqError(f"the receptive field of {formula.text()[:80]} at epsilon = {epsilon} {why}")
        share = f"{epsilon.numerator} / {epsilon.denominator}"
        sentences.append(f"Theorem field_{i} : is_trf b ({share}) (Z.to_nat {tokens}).\nProof. {proof}. Qed.")
    return "\n".join(sentences) + "\n"


def _tactic(formula: Formula) -> Tactic:
    node = formula.primitive.node
    for shape in () if formula.weight else (_alibi, _window, _type1, _power_law):
        tactic = shape(node)
        if tactic is not None:
            return tactic
    raise OutsideCoqError(
        f"the receptive field of {formula.text()[:80]} has no closed form in the Coq library, which knows -k*t, "
        "-p*log(c + d*t) with rational numbers, -log(1 + (k*t)**2) and windows"
    )


# ------------------------------------------------------------------------------------------------------------- shapes
def _scaled_log(node: Node) -> tuple[Fraction, Node] | None:
    """p and x of -p*log(x), p rational."""
    if node.op == "log":
        return Fraction(-1), node.args[0]
    if node.op == "neg":
        inner = _scaled_log(node.args[0])
        return None if inner is None else (-inner[0], inner[1])
    if node.op in ("*", "/"):
        for one, other in ((0, 1), (1, 0))[: 1 if node.op == "/" else 2]:
            inner, factor = _scaled_log(node.args[one]), exact_value(node.args[other], {})
            if inner is not None and factor:
                return inner[0] * (factor if node.op == "*" else 1 / factor), inner[1]
    return None


def _q(value: Fraction) -> str:
    return f"{rational(value)}%Q"


def _bits(tokens: int) -> int:
    return 60 + 2 * tokens.bit_length()


# ----------------------------------------------------------------------------------------------------------- the proofs
def _alibi(node: Node) -> Tactic | None:
    line = line_of(node)
    if line is None or exact_value(line[0], {}) != 0:
        return None
    slope = tree.negative(line[1])

    def tactic(epsilon: Fraction, n: int) -> str | None:
        bits = _bits(n)
        with ctx.workprec(bits - 20):
            k = ball_value(slope, {})
            if not ((-k * n).exp() < ball(epsilon) and (-k * (n - 1)).exp() >= ball(epsilon)):
                return None
        return f"field_of_alibi {atom(slope)} {bits}%positive"

    return tactic


def _window(node: Node) -> Tactic | None:
    if node.op != "where" or node.args[0] != tree.name("t") or node.value not in ("<", "<="):
        return None
    edge = node.args[1].value if node.args[1].op == "number" else None
    whole = isinstance(edge, Fraction) and edge.denominator == 1
    return (lambda *_: "field_of_window") if whole and node.args[2] == ZERO and node.args[3].op == "-inf" else None


def _power_law(node: Node) -> Tactic | None:
    scaled = _scaled_log(node)
    line = None if scaled is None else line_of(scaled[1])
    if scaled is None or line is None:
        return None
    p, (c, d) = scaled[0], line
    ratio = exact_value(tree.quotient(c, d), {}) if d != ZERO else None
    if p <= 1 or ratio is None or ratio <= 0:
        return None

    def term(t: int) -> arb:
        return ball(t + ratio) ** -ball(p)

    def tactic(epsilon: Fraction, n: int) -> str | None:
        terms = _enough(term, lambda j: _power_tail(p, j + ratio - Fraction(1, 2)), 1, epsilon, n)
        numbers = f"{atom(tree.fraction(p))} {atom(c)} {atom(d)} {_q(p)} {_q(ratio)}"
        return None if terms is None else f"field_of_power {numbers} {nat(terms)} {_bits(n)}%positive"

    return tactic


def _power_tail(p: Fraction, y: Fraction) -> Bounds:
    """Bounds for the sum of (y + 1/2 + i)**-p, those of proofs/PowerTails.v."""
    x = ball(y)
    low = x ** ball(1 - p) / ball(p - 1) - ball(p / 24) * x ** ball(-p - 1)
    return low, low + ball(Fraction(7, 5760) * p * (p + 1) * (p + 2)) * x ** ball(-p - 3)


def _quadratic_tail(c2: Fraction, j: int) -> Bounds:
    """Bounds for the sum of 1/(t**2 + c2) from j on: the better of those of proofs/Quadratic{Trf,Tails}.v."""
    low, high = (_arc(c2 + Fraction(1, 4), j), _arc(c2, j))
    powers = [_power_tail(Fraction(2 * i + 2), j - Fraction(1, 2)) for i in range(POWERS + 1)]
    least, most = arb(0), powers[-1][1]
    for below, above in reversed(powers[:-1]):
        least, most = below - ball(c2) * most, above - ball(c2) * least
    return low.max(least), high.min(most)


def _arc(inside: Fraction, j: int) -> arb:
    root = ball(inside).sqrt()
    return (root / ball(j - Fraction(1, 2))).atan() / root


def _type1(node: Node) -> Tactic | None:
    scaled = _scaled_log(node)
    if scaled is None or scaled[0] != 1 or scaled[1].op != "+":
        return None
    one, square = scaled[1].args
    if exact_value(one, {}) != 1 or square.op != "**" or exact_value(square.args[1], {}) != 2:
        return None
    line = line_of(square.args[0])
    if line is None or exact_value(line[0], {}) != 0:
        return None
    k, k2 = line[1], _square(line[1])
    if k2 is None or k2 * MOST_TERMS**2 < 1:
        return None
    c2 = 1 / k2
    first = isqrt(-(-(8 * c2 + 1) // 8)) + 1  # its square is at least c2 + 1/8

    def tactic(epsilon: Fraction, n: int) -> str | None:
        terms = _enough(lambda t: 1 / ball(t * t + c2), lambda j: _quadratic_tail(c2, j), first, epsilon, n)
        if terms is None:
            return None
        return f"field_of_type1 {atom(k)} {_q(c2)} {first}%Z {nat(terms)} {_bits(n)}%positive"

    return tactic


def _square(k: Node) -> Fraction | None:
    """k**2 where it is plainly rational: k a number, or 2**x with 2 x whole."""
    exact = exact_value(k, {})
    if exact is not None:
        return exact * exact or None
    power = exact_value(k.args[1], {}) if k.op == "**" and exact_value(k.args[0], {}) == 2 else None
    return Fraction(2) ** int(2 * power) if power is not None and (2 * power).denominator == 1 else None


def _enough(
    term: Callable[[int], arb], tail: Callable[[int], Bounds], first: int, epsilon: Fraction, n: int
) -> int | None:
    """How many terms settle the field n, by the comparisons of proofs/TailCheck.v; None if none of TERMS does."""
    with ctx.workprec(_bits(n) - 10):
        e = ball(epsilon)
        for count in (max(number, first) for number in TERMS):
            heads = [arb(0)]
            for t in range(count):
                heads.append(heads[-1] + term(t))
            least, most = (heads[-1] + bound for bound in tail(count))
            if n <= count:
                settled = (1 - e) * most < heads[n] and (1 - e) * least >= heads[n - 1]
            else:
                settled = tail(n)[1] < e * least and tail(n - 1)[0] >= e * most
            if settled:
                return count
    return None
