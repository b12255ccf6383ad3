"""The fields of a configuration, read one by one: what was missing is noted, and nonsense ends in a sentence."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

LARGEST = 10**9  # of any count or length in a configuration
_ABOUT_ATTENTION = re.compile(
    r"window|sliding|chunk|local|global|alibi|sink|sparse|softcap|logn|ntk|temperature|position|relative|rope_scaling"
    r"|attn_type|attention_type|layer_types|block_types|dilat|stride|recurrent|mamba|linear_attn"
)
_HARMLESS = re.compile(
    r"(original_)?max_position_embeddings|relative_attention_.*|n_positions|max_window_layers|use_sliding_window|final_logit_softcapping"
    r"|rope_local_base_freq|position_embedding_type|.*token.*|.*_top_?k|num_local_experts|.*dropout.*|hybrid_kernel"
    r"|temperature|num_return_sequences|diversity_penalty|encoder_no_repeat_ngram_size|task_specific_params"
)


class Fields:
    """A configuration of which it is known what was read, and what stood in for fields that are not there.

    Args:
        config: the configuration.
        defaults: what the published class of this architecture takes where a field is missing.
    """

    def __init__(self, config: Mapping[str, Any], defaults: Mapping[str, Any] | None = None):
        self.config = config
        self.defaults = dict(defaults or {})
        self.assumed: dict[str, Any] = {}
        self._read: set[str] = set()

    def unread(self) -> dict[str, Any]:
        """The fields that nobody asked for although their names speak of what a token attends to."""
        return {
            str(name)[:60]: value
            for name, value in self.config.items()
            if name not in self._read and _ABOUT_ATTENTION.search(str(name)) and not _HARMLESS.fullmatch(str(name))
            and value not in (None, False, 0, "", [], {})
        }  # fmt: skip

    def get(self, *names: str, default: Any = None) -> Any:
        """The first of these fields that is there, or the default of its architecture."""
        self._read.update(names)
        for name in names:
            if name in self.config:
                return self.config[name]
        for name in names:
            if name in self.defaults:
                self.assumed[name] = self.defaults[name]
                return self.defaults[name]
        return default

    def count(self, *names: str, default: int | None = None, most: int = LARGEST, of: str = "") -> int:
        """A positive whole number, of which there are at most so many."""
        value = self.optional(*names) or default
        if value is None:
            raise ValueError(f"the configuration has no {' or '.join(names)}, which this architecture needs")
        if value > most:
            raise ValueError(f"the configuration asks for {value:,} {of}; at most {most:,} are read")
        return value

    def optional(self, *names: str) -> int | None:
        """A positive whole number, or None where it is missing, null, 0 or -1."""
        value = self.get(*names)
        if value is None or value in (0, -1) or value is False:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or value % 1 != 0:  # as of inf and nan
            raise ValueError(f"{names[0]} must be a whole number, not {str(value)[:40]!r}")
        if not 0 < value <= LARGEST:
            raise ValueError(f"{names[0]} must lie between 1 and {LARGEST:,}, not {value}")
        return int(value)

    def flag(self, name: str) -> bool:
        """True or false; false where it is missing."""
        value = self.get(name)
        if value is not None and not isinstance(value, bool):
            raise ValueError(f"{name} must be true or false, not {str(value)[:40]!r}")
        return bool(value)

    def number(self, *names: str) -> float | None:
        """A positive number, or None where it is missing or null."""
        value = self.get(*names)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e12:
            raise ValueError(f"{names[0]} must be a positive number, not {str(value)[:40]!r}")
        return float(value)

    def part(self, name: str) -> Fields | None:
        """A configuration within this one."""
        value = self.get(name)
        if value is not None and not isinstance(value, Mapping):
            raise ValueError(f"{name} must be an object, not {str(value)[:40]!r}")
        return None if value is None else Fields(value)

    def words(self, name: str, count: int, allowed: Sequence[str]) -> list[str] | None:
        """A list with one word for each layer, each of them known; None where there is no list."""
        value = self.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) != count:
            have = f"{len(value)} entries" if isinstance(value, list) else f"{str(value)[:40]!r}"
            raise ValueError(f"{name} must be a list with one entry for each of {count} layers, not {have}")
        for word in value:
            if word not in allowed:
                raise ValueError(f"{name} has {str(word)[:40]!r}; known are {', '.join(allowed)}")
        return value
