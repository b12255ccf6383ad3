"""The reply to a question: its answer, or one sentence that says why there is none."""

from __future__ import annotations

import traceback
from typing import Any

from farfield.explorer.answer import answer
from farfield.explorer.question import Question
from farfield.formula import FormulaError


def reply(question: Question) -> tuple[dict[str, Any], str]:
    """The answer or {"error": sentence}, and the traceback of a fault of ours, for whoever runs the explorer."""
    try:
        return answer(question), ""
    except FormulaError as error:
        return {"error": str(error), "pointer": error.pointer() if error.text else None}, ""
    except ValueError as error:
        return {"error": str(error)}, ""
    except (MemoryError, RecursionError, OverflowError):
        return {"error": "this formula needs more memory or depth than the explorer gives it"}, ""
    except Exception as error:
        sentence = f"Farfield could not answer this ({type(error).__name__}): a fault of Farfield's own"
        return {"error": sentence}, traceback.format_exc()
