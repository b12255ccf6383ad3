"""Where to compute: the device that a person names, or a GPU if there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def chosen_device(name: str | None = None) -> torch.device:
    """The device of this name (cpu, cuda, cuda:1, mps, ...); without one, the first GPU, or else the CPU."""
    import torch

    if name in (None, "auto"):
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise ValueError(f"There is no device {name!r} here: {reason}; cpu is always there.") from None
    return device
