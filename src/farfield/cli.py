"""The command line: one verb for each thing a person wants.

A command is imported when it is called, so that `farfield check` never waits for torch. A person's mistake, any
ValueError, ends in one sentence on stderr and exit status 2, never in a traceback.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import sys

from cyclopts import App, CycloptsError, UnknownCommandError, UnusedCliTokensError

from farfield import __version__

# The verb NAME is the function NAME_command in farfield/commands/NAME.py: what it answers, and an example.
VERBS = {
    "check": ("Does the series converge? Verdict and proof.", 'check "-2*log(t + 1)"'),
    "compare": ("Receptive fields side by side.", 'compare alibi type1 "-2*log(t + 1)"'),
    "design": ("Which parameter gives a wanted reach?", "design alibi --reach 4096"),
    "zoo": ("List every named encoding.", "zoo"),
    "window": ("How many tokens must each head keep?", "window alibi --heads 8 --logit-bound 5 --epsilon 0.01"),
    "inspect": ("How far does a model look? From its configuration.", "inspect runs/type1"),
    "predict": ("Which encodings will fail at 18x? Written down before training.", "predict alibi inverse"),
    "explore": ("All of this in the browser.", "explore"),
    "train": ("Train a language model with any encoding.", "train --encoding type1 --out runs/type1"),
    "replace": ("Another encoding in a model of transformers.", 'replace gpt2 --encoding "-k*t" --out gpt2-alibi'),
    "generate": ("Write on, with a bounded cache.", 'generate runs/type1 --prompt "def " --epsilon 1e-3'),
    "evaluate": ("Perplexity against length, 1x to 18x.", "evaluate runs/type1 --figure perplexity.pdf"),
    "receptive": ("How far a trained model looks.", "receptive runs/type1"),
    "needle": ("How far back does a model find a value again?", "needle --train alibi"),
    "study": ("The whole paper: train, measure, draw, report.", "study --encodings alibi,type1 --seeds 3"),
    "speed": ("What each way of inference costs.", "speed runs/type1"),
}

app = App(
    name="farfield",
    version=__version__,
    help="How far a transformer can see, from the formula of its positional encoding, with a proof.",
    help_format="plaintext",
)
for verb, (purpose, example) in VERBS.items():
    said = f"{purpose}\n\nExample: farfield {example}"
    app.command(f"farfield.commands.{verb}:{verb}_command", name=verb, help=said)

NARROWEST = 10  # columns in which tables and help can be written
_GONE = {  # verbs that were, and what to do instead
    "serve": "farfield serves no models: 'transformers serve' does, as docs/howto/serve-a-model.md shows",
    "cite": "farfield prints no citation: the file CITATION.cff has it, for Farfield and for the paper",
}
_EXTRAS = {  # which extra brings a package
    "train": ("torch", "numpy", "transformers", "accelerate", "tokenizers", "safetensors", "pydantic", "zstandard"),
    "figures": ("matplotlib",),
    "explore": ("starlette", "uvicorn", "anyio"),
    "study": ("adjustText", "jinja2"),
    "hub": ("datasets",),
    "sympy": ("sympy",),
}


def main(arguments: list[str] | None = None) -> None:
    """Run one command; print one sentence and leave with status 2 if a person made a mistake."""
    from farfield.formula import FormulaError

    _open_streams()
    try:
        try:
            app(arguments, exit_on_error=False, print_error=False)
        finally:
            sys.stdout.flush()  # a full disk behind it is noticed here, not when the interpreter has gone
    except FormulaError as error:
        _fail(f"{error}\n{error.pointer()}" if error.text else str(error))
    except CycloptsError as error:
        _fail(_sentence(error))
    except ImportError as error:
        _fail(_missing(error))
    except ValueError as error:
        _fail(str(error))
    except BrokenPipeError:  # the reader of a pipe has left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left goes nowhere
        sys.exit(0)
    except OSError as error:  # a folder that cannot be written, a full disk
        named = "" if error.filename is None else f" {str(error.filename)!r}"
        _fail(f"the file or folder{named} cannot be used: {error.strerror or error}")
    except (MemoryError, RuntimeError) as error:
        if not _no_memory(error):
            raise
        _fail("there is not enough memory for this; ask for less: shorter texts, smaller batches, fewer heads")
    except KeyboardInterrupt:
        sys.exit(130)


def _open_streams() -> None:
    """Let closed streams lead nowhere, or the next file would get their number; and a strange terminal show something.

    Without the last a table for 0 columns is never done, and a terminal of ASCII is an error.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - as long as the process
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    columns = os.environ.get("COLUMNS", "")
    if not (columns.isdecimal() and len(columns) <= 4 and int(columns) >= NARROWEST):
        os.environ.pop("COLUMNS", None)


def _sentence(error: CycloptsError) -> str:
    if "pydantic" in sys.modules:
        from pydantic import ValidationError

        if isinstance(error.__cause__, ValidationError):
            from farfield.training.settings import mistake

            return mistake(error.__cause__, "the options")
    verb = next(iter(error.command_chain or ()), "")
    return f"{_words(error, verb).rstrip('.')}. See '{f'farfield {verb}'.strip()} --help'."


def _words(error: CycloptsError, verb: str) -> str:
    """What is wrong with the command line, and what to type instead where that can be told."""
    first = next(iter(error.unused_tokens or ()), "")
    if isinstance(error, UnusedCliTokensError):
        value = "=" in first and verb in ("check", "design", "window", "train", "replace")
        return f"{first[:60]!r} is one word too many" + (f": a value is given with --set {first[:60]}" if value else "")
    if isinstance(error, UnknownCommandError) and first in _GONE:
        return _GONE[first]
    if isinstance(error, UnknownCommandError) and _is_encoding(first):
        return f"{first[:60]!r} is no command; to judge it, type: farfield check {shlex.quote(first[:60])}"
    words = " ".join(str(error).split())
    after = re.search(r"option: (-\S+)\. Did you mean \1\?", words)
    return f"after '--' nothing is an option: type {after[1]} before it" if after else words


def _is_encoding(text: str) -> bool:
    from farfield.zoo import find

    try:
        return bool(find(text))
    except ValueError:
        return False


def _missing(error: ImportError) -> str:
    """What to install, if a package is missing that one of the extras brings."""
    package = (error.name or "").partition(".")[0]
    for extra, packages in _EXTRAS.items():
        if package in packages:
            return f'this needs {package}, which is not installed: pip install "farfield[{extra}]"'
    return str(error)


def _no_memory(error: Exception) -> bool:
    """Whether Python, numpy or torch (on a CPU, on a GPU) had no memory left."""
    words = ("can't allocate memory", "out of memory", "not enough memory", "can't start new thread")
    return isinstance(error, MemoryError) or any(each in str(error) for each in words)


def _fail(sentence: str) -> None:
    # a terminal obeys control characters, which a file's name may hold
    shown = "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in sentence)
    print(f"farfield: {shown}", file=sys.stderr)
    sys.exit(2)
