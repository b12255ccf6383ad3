"""Makes `AutoConfig` and `AutoModelForCausalLM` know our models after a mere `import farfield`.

transformers has no entry point for this: one registers classes, which means importing transformers and torch (seconds).
So nothing is imported here. If transformers' tables of models are loaded already, we register at once; otherwise a
finder on `sys.meta_path` waits for the two modules that hold the tables, lets them load as ever, and registers right
after. Whoever never imports transformers pays nothing.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType

_CONFIGS = "transformers.models.auto.configuration_auto"
_MODELS = "transformers.models.auto.modeling_auto"


def _register(table: str) -> None:
    if table == _CONFIGS:
        from transformers.models.auto.configuration_auto import AutoConfig

        from farfield.nn.decoder.config import FarfieldConfig

        AutoConfig.register(FarfieldConfig.model_type, FarfieldConfig, exist_ok=True)
    elif "farfield.nn.decoder.model" not in sys.modules:  # while it is being imported it is about to register itself
        import farfield.nn.decoder.model  # noqa: F401


class _Watcher(importlib.abc.MetaPathFinder):
    """Finds the two modules as anyone would, and registers after they are loaded."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in (_CONFIGS, _MODELS):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def load_and_register(module: ModuleType) -> None:
            load(module)
            _register(name)

        spec.loader.exec_module = load_and_register  # type: ignore[method-assign]
        return spec


def install() -> None:
    """Register now if transformers is at hand, else when it is imported; calling it again does nothing."""
    if any(isinstance(finder, _Watcher) for finder in sys.meta_path):
        return
    for table in (_CONFIGS, _MODELS):
        if table in sys.modules:
            _register(table)
    sys.meta_path.insert(0, _Watcher())
