"""Makes `AutoConfig` and `AutoModelForCausalLM` know our models after a mere `import farfield`.

transformers has no entry point for this: one registers classes, which means importing transformers and torch (seconds).
So nothing is imported here. If transformers' tables of models are loaded already, we register at once; otherwise a
finder on `sys.meta_path` waits for the two modules that hold the tables, lets them load as ever, and registers right
after. Whoever never imports transformers pays nothing, and nobody's import of transformers can fail because of us: what
goes wrong while we register is kept in `failure`, and shows when one of our models is imported.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType

_CONFIGS = "transformers.models.auto.configuration_auto"
_MODELS = "transformers.models.auto.modeling_auto"
_REGISTERING = {  # the modules that register when they are imported
    _CONFIGS: ("farfield.nn.decoder.config", "farfield.models.networks.replaced_config"),
    _MODELS: ("farfield.nn.decoder.model",),
}

failure: Exception | None = None


def _register(table: str) -> None:
    """Import our modules that register with a table of transformers; never raises."""
    global failure
    for module in _REGISTERING[table]:
        if module in sys.modules:  # it has registered, or is about to: it may have caused this import
            continue
        try:
            importlib.import_module(module)
        except Exception as error:
            failure = error


class _Watcher(importlib.abc.MetaPathFinder):
    """Finds the two modules as anyone would, and registers after they are loaded."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in _REGISTERING:
            return None
        try:
            others = (finder for finder in sys.meta_path if not isinstance(finder, _Watcher))
            spec = next(filter(None, (finder.find_spec(name, path, target) for finder in others)), None)
            assert spec is not None
            assert spec.loader is not None
            load = spec.loader.exec_module

            def load_and_register(module: ModuleType) -> None:
                load(module)
                _register(name)

            spec.loader.exec_module = load_and_register  # type: ignore[method-assign]
        except Exception:  # whatever it is, it is not for us to say: the next finder finds the module without us
            return None
        return spec


def install() -> None:
    """Register now if transformers is at hand, else when it is imported; calling it again does nothing."""
    if any(isinstance(finder, _Watcher) for finder in sys.meta_path):
        return
    for table in _REGISTERING:
        if table in sys.modules:
            _register(table)
    sys.meta_path.insert(0, _Watcher())
