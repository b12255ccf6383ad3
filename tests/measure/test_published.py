"""transformers reads the same windows from published configurations as `inspect` does."""

import importlib.util
from pathlib import Path

import pytest
from transformers import DynamicCache
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

import farfield

_path = Path(__file__).parents[1] / "models" / "configurations.py"
_spec = importlib.util.spec_from_file_location("published_configurations", _path)
assert _spec is not None
assert _spec.loader is not None
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)
MASKED = ("gpt_neo", "t5")  # their windows are masks, which the cache does not know


@pytest.mark.parametrize(
    "row",
    [r for r in _module.PUBLISHED if r.config["model_type"] in CONFIG_MAPPING and r.config["model_type"] not in MASKED],
    ids=lambda row: row.hub,
)
def test_the_cache_of_transformers_has_the_same_windows(row):
    given = {k: v for k, v in row.config.items() if k not in ("model_type", "vision_config")}
    config = CONFIG_MAPPING[row.config["model_type"]](**given).get_text_config()
    layers = farfield.inspect(row.config).model.layers
    cache = DynamicCache(config=config)
    theirs = [getattr(layer, "sliding_window", None) for layer in cache.layers] or [None] * len(layers)
    theirs = [None if w is not None and w < 0 else w for w in theirs]
    assert theirs == [x.window for x in layers]
    assert config.num_attention_heads == layers[0].heads
