"""`farfield cite`: BibTeX for Farfield and for the paper whose question it answers."""

from __future__ import annotations

from farfield import __version__

PAPER = """\
@inproceedings{qin2024exploring,
  title     = {Exploring Transformer Extrapolation},
  author    = {Qin, Zhen and Zhong, Yiran and Deng, Hui},
  booktitle = {Proceedings of the AAAI Conference on Artificial Intelligence},
  volume    = {38},
  number    = {17},
  pages     = {18897--18905},
  year      = {2024},
  doi       = {10.1609/aaai.v38i17.29855}
}"""


def cite_command() -> None:
    """Print what to put into a bibliography, for Farfield and for the paper."""
    print(
        "@software{farfield,\n"
        "  title   = {Farfield: how far a transformer can see, from the formula of its positional encoding, "
        "with a proof},\n"
        "  author  = {{The Farfield maintainers}},\n"
        f"  version = {{{__version__}}},\n"
        "  year    = {2026},\n"
        "  license = {Apache-2.0}\n"
        "}\n"
    )
    print(PAPER)
