"""The notebook runs, and its saved outputs are what it prints.

`python tests/repository/test_notebook.py` saves the outputs anew.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason="the notebook needs the extra test")
nbclient = pytest.importorskip("nbclient", reason="the notebook needs the extra test")
pytest.importorskip("ipykernel", reason="the notebook needs the extra test")

TOUR = Path(__file__).resolve().parents[2] / "examples" / "tour.ipynb"
TRAINED = ("evaluate(", "BoundedCache(")  # what a trained model gives differs in its digits from machine to machine


def executed(folder: Path) -> Any:
    """The notebook after a run in a new kernel; an error in a cell is an error here."""
    notebook = nbformat.read(TOUR, as_version=4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FARFIELD_CACHE", str(folder / "cache"))
        patch.setenv("IPYTHONDIR", str(folder / "ipython"))
        patch.setenv("TMPDIR", str(folder))
        nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3", coalesce_streams=True).execute(
            cwd=str(folder)
        )
    return notebook


def printed(cell: Any) -> str:
    """What a cell printed, without the digits where they depend on a trained model."""
    assert all(out.output_type == "stream" for out in cell.outputs), cell.source
    text = "".join(out.text for out in cell.outputs if out.name == "stdout")
    return re.sub(r"[\d.,]+(?:e[+-]\d+)?", "#", text) if any(word in cell.source for word in TRAINED) else text


@pytest.mark.filterwarnings("default")  # the machinery of Jupyter warns about itself
def test_the_notebook_prints_what_is_saved(tmp_path: Path) -> None:
    saved = nbformat.read(TOUR, as_version=4)
    codes = [cell for cell in saved.cells if cell.cell_type == "code"]
    assert len(codes) >= 8
    assert all(cell.outputs for cell in codes)
    now = [cell for cell in executed(tmp_path).cells if cell.cell_type == "code"]
    for before, after in zip(codes, now, strict=True):
        assert re.sub(" +", " ", printed(after)) == re.sub(" +", " ", printed(before)), before.source


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        done = executed(Path(place))
    for one in done.cells:
        one.metadata.pop("execution", None)  # when each cell began and ended
        if one.cell_type == "code":
            one.outputs = [out for out in one.outputs if out.name == "stdout"]  # tqdm warns if there are no widgets
    done.metadata.pop("language_info", None)  # the version of whoever ran it
    nbformat.write(done, TOUR)
    sys.stdout.write(f"saved {TOUR}\n")
