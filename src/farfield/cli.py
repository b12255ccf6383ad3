"""The command line: one verb for each thing a person wants.

A command is imported when it is called, so that `farfield check` never waits for torch. A person's mistake, any
ValueError, ends in one sentence on stderr and exit status 2, never in a traceback.
"""

from __future__ import annotations

import sys

from cyclopts import App, CycloptsError

from farfield import __version__

app = App(
    name="farfield",
    version=__version__,
    help="How far a transformer can see, from the formula of its positional encoding, with a proof.",
    help_format="plaintext",
)
app.command("farfield.commands.check:check_command", name="check", help="Does the series converge? Verdict and proof.")
app.command("farfield.commands.compare:compare_command", name="compare", help="Receptive fields side by side.")
app.command("farfield.commands.design:design_command", name="design", help="Which parameter gives a wanted reach?")
app.command("farfield.commands.zoo:zoo_command", name="zoo", help="List every named encoding.")
app.command("farfield.commands.window:window_command", name="window", help="How many tokens must each head keep?")
app.command("farfield.commands.explore:explore_command", name="explore", help="All of this in the browser.")
app.command("farfield.commands.train:train_command", name="train", help="Train a language model with any encoding.")
app.command("farfield.commands.generate:generate_command", name="generate", help="Write on, with a bounded cache.")
app.command(
    "farfield.commands.evaluate:evaluate_command", name="evaluate", help="Perplexity against length, 1x to 18x."
)
app.command("farfield.commands.receptive:receptive_command", name="receptive", help="How far a trained model looks.")
app.command(
    "farfield.commands.study:study_command", name="study", help="The whole paper: train, measure, draw, report."
)
app.command("farfield.commands.speed:speed_command", name="speed", help="What each way of inference costs.")


def main(arguments: list[str] | None = None) -> None:
    """Run one command; print one sentence and leave with status 2 if a person made a mistake."""
    from farfield.formula import FormulaError

    try:
        app(arguments, exit_on_error=False, print_error=False)
    except FormulaError as error:
        _fail(f"{error}\n{error.pointer()}" if error.text else str(error))
    except CycloptsError as error:
        _fail(_words(error))
    except (ValueError, ImportError) as error:
        _fail(str(error))
    except BrokenPipeError:  # the reader of a pipe has left
        sys.stderr.close()
        sys.exit(0)
    except KeyboardInterrupt:
        sys.exit(130)


def _words(error: CycloptsError) -> str:
    command = " ".join(["farfield", *(error.command_chain or ())])
    sentence = " ".join(str(error).split())
    return f"{sentence} See '{command} --help'."


def _fail(sentence: str) -> None:
    print(f"farfield: {sentence}", file=sys.stderr)
    sys.exit(2)
