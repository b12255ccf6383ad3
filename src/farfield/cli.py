"""The command line: one verb for each thing a person wants.

A command is imported when it is called, so that `farfield check` never waits for torch. A person's mistake, any
ValueError, ends in one sentence on stderr and exit status 2, never in a traceback.
"""

from __future__ import annotations

import sys

from cyclopts import App, CycloptsError

from farfield import __version__

# The verb NAME is the function NAME_command in farfield/commands/NAME.py.
VERBS = {
    "check": "Does the series converge? Verdict and proof.",
    "compare": "Receptive fields side by side.",
    "design": "Which parameter gives a wanted reach?",
    "zoo": "List every named encoding.",
    "window": "How many tokens must each head keep?",
    "inspect": "How far does a model look? From its configuration.",
    "explore": "All of this in the browser.",
    "train": "Train a language model with any encoding.",
    "generate": "Write on, with a bounded cache.",
    "evaluate": "Perplexity against length, 1x to 18x.",
    "receptive": "How far a trained model looks.",
    "study": "The whole paper: train, measure, draw, report.",
    "speed": "What each way of inference costs.",
}

app = App(
    name="farfield",
    version=__version__,
    help="How far a transformer can see, from the formula of its positional encoding, with a proof.",
    help_format="plaintext",
)
for verb, purpose in VERBS.items():
    app.command(f"farfield.commands.{verb}:{verb}_command", name=verb, help=purpose)


def main(arguments: list[str] | None = None) -> None:
    """Run one command; print one sentence and leave with status 2 if a person made a mistake."""
    from farfield.formula import FormulaError

    try:
        app(arguments, exit_on_error=False, print_error=False)
    except FormulaError as error:
        _fail(f"{error}\n{error.pointer()}" if error.text else str(error))
    except CycloptsError as error:
        _fail(_sentence(error))
    except (ValueError, ImportError) as error:
        _fail(str(error))
    except BrokenPipeError:  # the reader of a pipe has left
        sys.stderr.close()
        sys.exit(0)
    except KeyboardInterrupt:
        sys.exit(130)


def _sentence(error: CycloptsError) -> str:
    if "pydantic" in sys.modules:
        from pydantic import ValidationError

        if isinstance(error.__cause__, ValidationError):
            from farfield.training.settings import mistake

            return mistake(error.__cause__, "the options")
    command = " ".join(["farfield", *(error.command_chain or ())])
    return f"{' '.join(str(error).split())} See '{command} --help'."


def _fail(sentence: str) -> None:
    print(f"farfield: {sentence}", file=sys.stderr)
    sys.exit(2)
