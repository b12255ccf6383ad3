"""Formulas drawn at random, to test predictions on encodings that nobody chose.

    python benchmarks/draw_formulas.py --seed 7 --count 40          one formula a line

Six kinds take turns: windows, powers, plateaus, logarithms, mixtures and oscillations. In each formula the distance is
scaled by k, the ALiBi slope of the head, or in every third round by a number that all heads share. The constants are
drawn so that the weight beyond the training length of our small models (64 tokens) goes from almost none to almost all.
"""

from __future__ import annotations

import argparse
import math
import random

KINDS = ("window", "power", "plateau", "logarithm", "mixture", "oscillation")


def draw(seed: int, count: int) -> list[str]:
    """So many different formulas; the same seed gives the same, and a longer list begins with the shorter one."""
    source, formulas = random.Random(seed), []
    while len(formulas) < count:
        number = len(formulas)
        formula = _formula(source, KINDS[number % len(KINDS)], shared=number // len(KINDS) % 3 == 2)
        if formula not in formulas:
            formulas.append(formula)
    return formulas


def _between(source: random.Random, least: float, most: float) -> str:
    """A number of two digits, uniform in its logarithm."""
    value = math.exp(source.uniform(math.log(least), math.log(most)))
    return f"{float(f'{value:.2g}'):.12g}"


def _formula(source: random.Random, kind: str, shared: bool) -> str:
    x = (
        f"{_between(source, 0.003, 0.4)}*t"
        if shared
        else "k*t"
        if source.random() < 0.5
        else f"{_between(source, 0.25, 4)}*k*t"
    )
    p, height = _between(source, 0.5, 3), _between(source, 0.5, 10)
    if kind == "window":
        width = round(float(_between(source, 6, 600)))
        inside = source.choice(["0", f"-{x}", f"-{p}*log(1 + {x})"])
        return f"where(t < {width}, {inside}, -inf)"
    if kind == "power":
        power = _between(source, 0.3, 1.6)
        return source.choice([f"-({x})**{power}", f"-{p}*log(1 + ({x})**{power})"])
    if kind == "plateau":
        width = round(float(_between(source, 6, 600)))
        return source.choice(
            [
                f"-min({x}, {height})",
                f"log(exp(-{x}) + 10**-{_between(source, 1, 6)})",
                f"where(t < {width}, 0, -{height})",
            ]
        )
    if kind == "logarithm":
        return source.choice(
            [
                f"-{p}*log(1 + {x})",
                f"-{p}*log(3 + {x}) - log(log(3 + {x}))",
                f"-log(1 + {x})**{_between(source, 1.1, 2.5)}",
            ]
        )
    if kind == "mixture":
        share = _between(source, 0.02, 0.9)
        return f"log({share}*exp(-{x}) + (1 + {x})**-{p})"
    period = _between(source, 1, 40)
    base = source.choice([f"-{x}", f"-{p}*log(1 + {x})"])
    return f"{base} + {_between(source, 0.3, 3)}*cos(t/{period})"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=40)
    chosen = parser.parse_args()
    print("\n".join(draw(chosen.seed, chosen.count)))
