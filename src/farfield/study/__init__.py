"""The study: the paper's experiments from one call, with its numbers beside ours.

`plan` says what is to be trained, `cell` trains and measures one model and leaves a `record`, `jobs` and `cluster` do
all of them, `entries` puts the records together, and `tables`, `figures`, `findings` and `report` tell what they say.
`farfield.study(...)` calls `conduct.study`, which does all of it.
"""

import sys
from types import ModuleType
from typing import Any


class _CallableModule(ModuleType):
    """`farfield.study` is this package and the function at once, whichever a person imports."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        from farfield.study.conduct import study

        return study(*arguments, **options)


sys.modules[__name__].__class__ = _CallableModule
