"""What people write elsewhere, read as what was meant: `^`, `ln`, `²`, `λ`, `−`, `·` and their like.

Only a text that is no formula as it stands is read in this way, and the reader is told how.
"""

from __future__ import annotations

import re

_SIGNS = {
    "^": "**", "−": "-", "–": "-", "—": "-", "·": "*", "×": "*", "⋅": "*", "∙": "*", "÷": "/", "∕": "/", "≤": "<=",
    "≥": ">=", "π": "pi", "λ": "lam", "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "θ": "theta", "σ": "sigma",
    "μ": "mu", "τ": "tau", "ω": "omega", "\u00a0": " ", "\u202f": " ",
}  # fmt: skip
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_WORDS = {"ln": "log", "Log": "log", "Exp": "exp", "Sqrt": "sqrt", "lambda": "lam"}
_PATTERN = re.compile(
    rf"[{re.escape(''.join(_SIGNS))}]|[⁰¹²³⁴-⁹]+|√(?=\()|\b(?:{'|'.join(_WORDS)})\b(?=\s*\()|\blambda\b"
)


def as_meant(text: str) -> tuple[str, str]:
    """The text in the spelling of formulas, and what was read as what; ("", "") if there is nothing to read otherwise.

    Args:
        text: What a person typed.
    """
    changed: dict[str, str] = {}

    def write(result: re.Match[str]) -> str:
        sign = result[0]
        meant = (
            _SIGNS.get(sign) or _WORDS.get(sign) or ("sqrt" if sign == "√" else f"**{sign.translate(_SUPERSCRIPTS)}")
        )
        if meant.strip():
            changed[sign] = meant
        return meant

    written = _PATTERN.sub(write, text)
    if written == text:
        return "", ""
    said = [f"'{sign}' as '{meant}'" for sign, meant in changed.items()] or ["an unusual space as a space"]
    return written, f"read {', '.join(said)}"
