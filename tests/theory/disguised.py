"""A generator of disguised Bertrand series: the verdict is known by construction, the formula hides it.

Every series is built from -ln b(t) = l_1 + ... + l_m + s*l_(m+1) + (what does not change the verdict), with
l_1 = ln t, l_2 = ln ln t, ...; it converges if and only if s > 1. Then the numbers, the logarithms and the whole are
rewritten by identities (nested radicals, roots of squares, logarithms of products, shifts, exp and log, steps, bounded
waves, min, max, where), and parts that cancel or stay bounded are added.
"""

import random
from dataclasses import dataclass
from fractions import Fraction

START = 20  # every series begins here, where ln ln ln t is positive


@dataclass(frozen=True)
class Series:
    """A formula, its first distance, and the verdict that it has by construction."""

    text: str
    verdict: str
    start: int = START


def rational(q):
    """A rational number as text, in brackets where it is needed."""
    q = Fraction(q)
    if q.denominator == 1:
        return str(q) if q >= 0 else f"({q})"
    return f"({q.numerator}/{q.denominator})"


ONES = [  # each is exactly 1
    "(1/(sqrt(2)-1) - sqrt(2))",
    "(sqrt(5+2*sqrt(6)) - sqrt(2) - sqrt(3) + 1)",
    "(sqrt((1-sqrt(2))**(-2)) - sqrt(2))",
    "(((1-sqrt(2))**(-2))**(1/2) - sqrt(2))",
    "((7+5*sqrt(2))**(1/3) - sqrt(2))",
    "(2*(2+sqrt(5))**(1/3) - sqrt(5))",
    "(sqrt(2)*sqrt(8)/4)",
    "(2**(1/3)*4**(1/3)/2)",
    "(sqrt(3+2*sqrt(2)) - sqrt(2))",
    "(sqrt(2+sqrt(3)) - (sqrt(6)+sqrt(2))/2 + sqrt(2) - sqrt(2)/2 - (sqrt(2)-2)/2)",
    "(log(4)/log(2) - 1)",
    "(log(6)-log(2)-log(3)+1)",
    "exp(log(3)-log(12)/2-log(3)/2+log(2))",
    "(exp(1)*exp(-1))",
    "(exp(2)/exp(1)**2)",
    "(2*cos(pi/3))",
    "(2*sin(pi/6))",
    "(4*cos(pi/4)**2 - 1)",
    "(2*(cos(pi/5) - cos(2*pi/5)))",
    "(2*(cos(pi/7) - cos(2*pi/7) + cos(3*pi/7)))",
    "(sin(1)**2 + cos(1)**2)",
    "abs(-1)",
    "abs(sqrt(2) - 1 - sqrt(2))",
    "max(1, sqrt(2) - 1/2)",
    "min(1, pi/3)",
    "floor(sqrt(3))",
    "floor(exp(1) - 1)",
    "sqrt(sqrt(16)/4)",
    "(sqrt(2)**2 - 1)",
    "((sqrt(3)-1)*(sqrt(3)+1)/2)",
    "((1+sqrt(5))/2 - 2/(1+sqrt(5)))",
    "(sum(1/j, j, 2, 3)*6/5)",
    "where(sqrt(2) < 3/2, 1, 7)",
    "(pi/(2*pi) + 1/2)",
    "((-1)**2)",
]
IRRATIONALS = [  # two spellings of one irrational number
    ("1/(sqrt(2)-1)", "sqrt(2)+1"),
    ("sqrt(5+2*sqrt(6))", "sqrt(2)+sqrt(3)"),
    ("sqrt((1-sqrt(2))**(-2))", "1+sqrt(2)"),
    ("sqrt(8)", "2*sqrt(2)"),
    ("log(8)", "3*log(2)"),
    ("sqrt(pi**2)", "pi"),
    ("exp(log(2)/2)", "sqrt(2)"),
    ("2*cos(pi/5)", "(1+sqrt(5))/2"),
    ("(7+5*sqrt(2))**(1/3)", "1+sqrt(2)"),
    ("log(2)/log(3)", "1/(log(3)/log(2))"),
    ("sqrt(4+2*sqrt(3))", "1+sqrt(3)"),
    ("2**(3/2)", "sqrt(2)*2"),
]


class Disguise:
    """One series, drawn at random from a seed."""

    def __init__(self, seed):
        self.dice = random.Random(seed)

    def pick(self, *choices):
        return self.dice.choice(choices)

    # ------------------------------------------------------------------------------------------------ numbers
    def number(self, q):
        """A text whose value is exactly q."""
        q = Fraction(q)
        plain = rational(q)
        way = self.dice.randrange(12)
        if way < 4:
            return plain
        if way < 8:
            one = self.pick(*ONES)
            return self.pick(
                f"({plain}*{one})", f"({plain}/{one})", f"({rational(q - 1)} + {one})", f"({rational(q + 1)} - {one})"
            )
        if way == 8 and q > 0:
            return self.pick(
                f"sqrt({rational(q * q)})",
                f"sqrt({plain}**2)",
                f"exp(log({plain}))",
                f"({rational(1 / q)})**(-1)",
                f"sqrt((-{plain})**2)",
            )
        if way == 9 and q > 0:
            return self.pick(
                f"(1/sqrt({plain}**(-2)))",
                f"abs({rational(-q)})",
                f"({rational(q**3)})**(1/3)",
                f"(1/((-{plain})**(-2))**(1/2))",
            )
        if way == 10:
            a, b = self.pick(*IRRATIONALS)
            return f"({plain} + ({a}) - ({b}))"
        a, b = self.pick(*IRRATIONALS)
        return f"({plain}*({a})/({b}))"

    # ------------------------------------------------------------------------------------------------ logarithms
    def near_t(self):
        """Something that grows as t does, up to a constant factor: its logarithm is ln t + O(1)."""
        a, b = self.dice.randint(1, 9), self.dice.randint(1, 5)
        return self.pick(
            "t",
            "t",
            f"(t+{a})",
            f"(t+{a})",
            f"({b}*t+{a})",
            f"(t+{a}/{b})",
            f"(t/{b}+{a})",
            "(t+sqrt(t))",
            "(t+log(t))",
            f"sqrt(t**2+{a})",
            f"(t**3+{a}*t)**(1/3)",
            f"(t**2/(t+{a}))",
            f"(t**2+{a}*t+{b})/(t+1)",
            f"(t*(2+sin({b}*t)))",
            f"(t+{b}*cos(t))",
            f"(t+{b})*(1+1/(t+{a}))",
            f"(floor(t/{b + 1})+1)",
            f"(floor(sqrt(t))**2+{a})",
            f"max(t, {a})",
            f"max(t, {a}*t)",
            f"min(t**2, {a}*t)",
            f"abs({a}-t)",
            f"where(t < {100 * a}, t+{b}, {b}*t)",
            "abs(1-sqrt(2))*t",
            "exp(log(t+1))",
            f"(exp(log(t)/2)+{a})**2",
            f"(t+{a}-floor(t/2))",
            f"(t**{rational(Fraction(b, b + 1))})**{rational(Fraction(b + 1, b))}",
            f"sum(t+j, j, 1, {b})",
            f"(t + exp(-t)*{a})",
            f"t**{self.number(1)}",
            f"(t+{self.number(a)})",
            f"({self.number(b)}*t + 1)",
        )

    def log_t(self):
        """ln t + O(1)."""
        x, y, a, b = self.near_t(), self.near_t(), self.dice.randint(1, 9), self.dice.randint(1, 5)
        return self.pick(
            f"log({x})",
            f"log({x})",
            f"log({x})",
            f"(log(({x})**2)/2)",
            f"(2*log(sqrt({x})))",
            f"(log(({x})*({y})) - log({y}))",
            f"(log(({x})*({y}))/2)",
            f"(-log(1/({x})))",
            f"(log(t)+log(1+{a}/t))",
            f"log(exp(log({x})))",
            f"(log({x}) + sin(t)/{b})",
            f"floor(log({x}))",
            f"(log({x}) + 1/log(t))",
            f"(log(t**{a}*({x})) - {a}*log(t))",
            f"(log({x})+{b}*cos(t)**2)",
            f"(log(({x})+({y})))",
            f"max(log({x}), {b})",
            f"(log({x})**2/log({y}))",
            f"sqrt(log({x})**2+{a})",
            f"(log({x})+where(sin(t) < 0, {a}, {b}))",
            f"(log({x})*{self.number(1)})",
            f"(log(({x})**{self.number(a)})/{a})",
            f"(log(({x})**({b}+1/2))/({b}+1/2))",
            "(log(t)+abs(sin(t)))",
            f"(log({x}) - log(log({y})) + log(log(t)))",
            f"sqrt(log(t)*log({x}))",
        )

    def log_log(self, depth):
        """ln ... ln t with `depth` logarithms, up to O(1)."""
        if depth == 1:
            return self.log_t()
        a = self.dice.randint(0, 5)
        inner = self.pick("t", "t", "(t+1)", "(2*t+3)", f"(t+{a})", "sqrt(t)*sqrt(t+1)", "t**2", "(t*(2+cos(t)))")
        text = f"log({inner})"
        for _ in range(depth - 1):
            text = self.pick(
                f"log({text})", f"log({text})", f"log({text}+{a})", f"log({text}+1/t)", f"(log({text}**2)/2)"
            )
        return self.pick(text, text, text, f"({text}+sin(t)/9)", f"({text}+{a}/log(t))", f"({text}*{self.number(1)})")

    # ------------------------------------------------------------------------------------ what does not matter
    def nothing(self):
        """A bounded summand: it changes no verdict."""
        a, b = self.dice.randint(1, 9), self.dice.randint(1, 9)
        p, q = self.pick(*IRRATIONALS)
        return self.pick(
            f"sin({a}*t)",
            f"{b}*cos(t/{a})",
            f"sin(t)*cos({a}*t)",
            "cos(sqrt(t))",
            f"sin(t)**{a}",
            f"{a}/log(t)",
            f"{b}",
            "1/t",
            f"where(t < {100 * a}, {a}, -{b})",
            f"where(sin(t) < 0, {a}, {b})",
            "exp(-t)",
            "(sqrt(t+1)-sqrt(t))",
            "t*log(1+1/t)",
            f"({a}*t - floor({a}*t/{b})*{b})/{b}",
            "(floor(t/3)-t/3)",
            "min(log(t), 3)",
            "abs(cos(t))",
            f"(t**({p}) - t**({q}))",
            f"(exp(({p})*t) - exp(({q})*t))",
            f"({p} - ({q}))*t**2",
            f"((t+{a})**2 - t**2 - {2 * a}*t)",
            "(log(exp(t)+1)-t)",
            f"(log(t)**({p}) - log(t)**({q}))",
            f"(t**2 - t*sqrt(t**2-{a}))",
            f"(log(t+{a})-log(t))*{b}",
            "max(sin(t), cos(t))",
            f"({p})*log(t) - ({q})*log(t)",
            "log(2+sin(t))",
            "log(1+1/log(t))*log(t)",
            "(sqrt(t**2+t)-t)",
            "(floor(t)-t)",
            f"(log(t**({p})) - ({q})*log(t))",
        )

    def tail_of(self, depth):
        """A summand that is small against ln ... ln t with `depth` logarithms, of any sign."""
        inside = "log(" * (depth + 1) + "t" + ")" * (depth + 1)
        a = self.dice.randint(1, 4)
        return self.pick(f"{a}*{inside}", f"-{a}*{inside}", f"sqrt({inside})") if depth < 2 else "0"

    # ------------------------------------------------------------------------------------------------ the whole
    def exponent(self):
        return Fraction(
            self.pick(
                *[1] * 8,
                *[2, 3, 0, -1],
                *map(Fraction, ("1/2", "3/2", "99/100", "101/100", "4/3", "3/4", "5/4", "9/8")),
            )
        )

    def bertrand(self):
        """(the bias as text, whether it converges) of one series."""
        depth = self.pick(0, 0, 0, 0, 1, 1, 2)
        s = self.exponent()
        parts = [
            f"-{self.number(1)}*{self.log_log(i + 1)}" if self.dice.random() < 0.4 else f"-{self.log_log(i + 1)}"
            for i in range(depth)
        ]
        parts.append(f"-{self.number(s)}*{self.log_log(depth + 1)}")
        if s != 1 and self.dice.random() < 0.2:
            parts.append(self.tail_of(depth + 1))
        for _ in range(self.pick(0, 0, 1, 1, 2)):
            parts.append(self.nothing())
        self.dice.shuffle(parts)
        text = " + ".join(parts).replace("+ -", "- ")
        return text, s > 1

    def weight(self):
        """(the weight as text, whether it converges): a product of powers."""
        depth, s = self.pick(0, 0, 0, 1, 1, 2), self.exponent()
        below = [self.near_t() if i == 0 else self.log_log(i) for i in range(depth)]
        last = self.near_t() if depth == 0 else self.log_log(depth)
        factors = [f"1/({x})" for x in below] + [f"({last})**(-{self.number(s)})"]
        if self.dice.random() < 0.5:
            a = self.dice.randint(2, 9)
            factors.append(
                self.pick(
                    f"({a}+sin(t))",
                    f"exp(cos({a}*t))",
                    "(1+1/t)**t",
                    f"where(t < {a}00, 5, 1/{a})",
                    f"sqrt({a}+cos(t))",
                    f"{a}",
                )
            )
        return "*".join(factors), s > 1

    def series(self):
        way = self.dice.randrange(10)
        if way < 5:
            text, converges = self.bertrand()
        elif way < 8:
            text, converges = self.weight()
            text = f"weight: {text}"
        elif way == 8:
            (a, first), (b, second) = self.bertrand(), self.bertrand()
            converges = first and second
            text = self.pick(
                f"max({a}, {b})",
                f"weight: exp({a}) + exp({b})",
                f"where(sin(t) < {self.pick('0', '1/2')}, {a}, {b})" if first == second else f"max({a}, {b})",
                f"where(t - 2*floor(t/2) < 1, {a}, {b})",
            )
        else:
            a, converges = self.bertrand()
            big = (
                self.pick("-t", "-sqrt(t)", "-log(t)**2", "-t**2/9", "-exp(t)")
                if converges
                else self.pick("sqrt(t)", "0", "log(log(t))", "t")
            )
            text = f"max({a}, {big})" if converges or big else a
            if converges and self.dice.random() < 0.5:
                text, converges = f"min({a}, {self.pick('0', '-1', '-log(log(t))', '-sqrt(t)')})", True
        return Series(text, "converges" if converges else "diverges")


def series(seed):
    """The series of a seed."""
    return Disguise(seed).series()
