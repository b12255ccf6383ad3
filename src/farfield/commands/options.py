"""Options that several commands share: each is said once, and means the same in every verb."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter, Token
from rich.console import Console
from rich.table import Table
from rich.text import Text

from farfield.formula import FormulaError
from farfield.theory.figures import figure_path

if TYPE_CHECKING:
    from farfield.measure import Model
    from farfield.measure import Text as Tokens

Formula = Annotated[str, Parameter(allow_leading_hyphen=True)]
SetParameters = Annotated[list[str] | None, Parameter(name="--set", negative="", allow_leading_hyphen=True)]
Learn = Annotated[str | None, Parameter(name="--learn")]
Slopes = Annotated[str | None, Parameter(name="--slopes", allow_leading_hyphen=True)]
Json = Annotated[bool, Parameter(name="--json", negative="")]
Flag = Annotated[bool, Parameter(negative="")]


def _whole(_kind: object, tokens: Sequence[Token]) -> int:
    """A whole number: cyclopts itself would take 2.7 for 3."""
    if not re.fullmatch(r"[-+]?[0-9]{1,18}", tokens[0].value):
        raise ValueError(f"it must be a whole number, not {tokens[0].value[:30]!r}")
    return int(tokens[0].value)


def _drawable(_kind: object, path: Path | None) -> None:
    """A figure's place is checked when the command line is read, before any work is done."""
    if path is not None:
        figure_path(path)


Whole = Annotated[int, Parameter(converter=_whole)]
WholeOrNone = Annotated[int | None, Parameter(converter=_whole)]
FigurePath = Annotated[Path | None, Parameter(validator=_drawable)]
Watch = Callable[[str, int, int], None]


@Parameter(name="*")
@dataclass(frozen=True)
class Measuring:
    """Which text a trained model is measured on, and how the result is shown."""

    corpus: str | None = None
    """The text: `python`, a path, or a data set of the hub; the one that a run was trained on unless given."""
    split: Literal["train", "valid", "test"] = "test"
    """Which part of the corpus."""
    training_length: WholeOrNone = None
    """For models that do not say it."""
    tokenizer: Annotated[str | None, Parameter(alias="--tokeniser")] = None
    """For models without one: `bytes`, a tokenizer.json, or a name on the hub."""
    device: str | None = None
    """Where to compute: cpu, cuda, cuda:1, ...; a GPU if there is one unless given."""
    figure: FigurePath = None
    """Write the figure here: .pdf, .png or .svg."""
    quiet: Flag = False
    """No progress bar."""
    as_json: Json = False
    """Print JSON instead of tables."""

    def model(self, name: str) -> Model:
        """The model of this name, on the chosen device."""
        from farfield.measure.loading import load_model

        return load_model(name, self.training_length, device=self.device)

    def text(self, model: Model, tokens: int | None, segment: int | None = None) -> Tokens:
        """At most so many tokens of the chosen text, in segments spread over it where their length is given."""
        from farfield.measure.loading import load_text

        if tokens is not None and tokens < 1:
            raise ValueError(f"{tokens} tokens were asked for; it must be at least 1.")
        return load_text(
            model,
            self.corpus,
            split=self.split,
            tokens=tokens,
            segment=segment,
            tokenizer=self.tokenizer,
            progress=not self.quiet,
        )


@Parameter(name="*")
@dataclass(frozen=True)
class StudySizes:
    """The size of the models of a study: a preset is a name for such sizes."""

    preset: str | None = None
    """small (minutes on two cores, the default), long (deeper, twice as long), geometry (512 training tokens, narrow
    models), tiny (a test), paper (the paper's whole grid, for GPUs)."""
    layers: WholeOrNone = None
    """Layers of each model; the preset's unless given, as for the options below."""
    width: WholeOrNone = None
    """Width of the hidden states; the feed-forward layers follow in proportion."""
    heads: WholeOrNone = None
    """Attention heads in each layer."""
    length: WholeOrNone = None
    """Training length, in tokens."""
    batch: WholeOrNone = None
    """Samples in one update."""
    tokenizer: str | None = None
    """bytes, bpe (trained on the text), a tokenizer.json, or a name on the hub."""
    updates: WholeOrNone = None
    """Number of updates."""
    segments: WholeOrNone = None
    """Segments of the test text, each of the longest length."""

    def changes(self) -> dict[str, int | str | None]:
        """The settings that differ from the preset's."""
        names = ("layers", "width", "heads", "length", "batch", "tokenizer", "segments")
        return {**{name: getattr(self, name) for name in names}, "steps": self.updates}


@contextmanager
def progress(first: str, quiet: bool) -> Iterator[Watch]:
    """A bar on stderr, if that is a terminal; gives the function that moves it."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=quiet or not console.is_terminal, transient=True) as bar:
        task = bar.add_task(first, total=None)

        def watch(label: str, done: int, total: int) -> None:
            bar.update(task, description=label, completed=done, total=total)

        yield watch


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Warnings as sentences on stderr when the work is done, without the line of code that they come from.

    Of several that tell the need of one head, which grows while a text is read, the last is said.
    """
    said: dict[str, str] = {}

    def keep(message: Warning | str, *_: object, **__: object) -> None:
        said[str(message).partition(" needs a window of ")[0]] = f"note: {message}"

    with warnings.catch_warnings():
        warnings.showwarning = keep
        try:
            yield
        finally:
            for sentence in said.values():
                Console(stderr=True).print(Text(sentence))


def numbered(steps: Sequence[str]) -> Table:
    """The steps of a proof, numbered."""
    grid = Table.grid(padding=(0, 1))
    for number, step in enumerate(steps, 1):
        grid.add_row(Text(f"{number:4}."), Text(step))
    return grid


def values(given: list[str] | None) -> dict[str, str]:
    """The parameters of --set k=0.1."""
    parameters: dict[str, str] = {}
    for name, several in head_values(given).items():
        if isinstance(several, list):
            raise ValueError(
                f"--set gives {name} one value here, not {len(several)}; values for each head are taken by check, "
                "window, train and replace"
            )
        parameters[name] = several
    return parameters


def head_values(given: list[str] | None) -> dict[str, str | list[str]]:
    """The parameters of --set k=0.1, or of --set k=1/2,1/4 with one value for each head."""
    parameters: dict[str, str | list[str]] = {}
    for one in given or []:
        name, equals, value = one.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise FormulaError("--set takes NAME=VALUE, for example --set k=0.1", one)
        if name.strip() in parameters:
            raise ValueError(f"--set gives {name.strip()!r} twice; give each parameter one value")
        parts = split_list(value)
        parameters[name.strip()] = parts if len(parts) > 1 else parts[0]
    return parameters


def split_list(text: str) -> list[str]:
    """The parts between commas; a comma inside of parentheses belongs to a formula."""
    parts, depth = [""], 0
    for sign in text:
        depth += (sign == "(") - (sign == ")")
        if sign == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts]


def one_format(**chosen: bool) -> None:
    """One sentence if more than one format of the output was asked for."""
    given = [f"--{name}" for name, wanted in chosen.items() if wanted]
    if len(given) > 1:
        raise ValueError(f"{' and '.join(given)} are two formats of one output; choose one")


def whole_numbers(option: str, text: str) -> list[int]:
    """The numbers in "16,64,256"."""
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise ValueError(f"{option} takes whole numbers with commas, such as 16,64,256, not {text[:40]!r}.") from None
