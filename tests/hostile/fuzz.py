"""Fuzzes one door with atheris: `python tests/hostile/fuzz.py DOOR SECONDS`, DOOR being one of those at the end.

Whatever a door is handed, it answers or raises ValueError with one line; anything else ends the fuzzer with the input.
"""

import os
import sys
import tempfile
from collections.abc import Callable
from urllib.parse import parse_qsl

import atheris

with atheris.instrument_imports(include=["farfield"]):
    from farfield.explorer.question import FIELDS as FIELDS_OF
    from farfield.explorer.question import read
    from farfield.formula import parse
    from farfield.models.inspection import inspect
    from farfield.reading import parse_json
    from farfield.theory.checker.examination import examine

SMOOTH = parse("-2*log(t + 1)")
TERMS = [
    "t", "-", "+", "*", "/", "**", "(", ")", ",", "log(", "exp(", "sqrt(", "where(", "sum(", "min(", "floor(", "abs(",
    "1", "2", "0.5", "1e9", "inf", "k", "<", ">", " ", "weight:", "sin(", "j", "1/3", "\x00", "é", "'", "__",
]  # fmt: skip
KINDS, NAMES = [*FIELDS_OF], [*sorted(set().union(*FIELDS_OF.values())), "evil"]
ODD = [
    "alibi",
    "0.k=1/16",
    "1.k=2",
    "k",
    "1",
    "0",
    "-1",
    "1e-9",
    "1e999",
    "9" * 30,
    "nan",
    "1/3",
    "",
    "00",
    "\x00",
    "²",
    "٣",
]
FIELDS = [
    "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim", "sliding_window",
    "layer_types", "rope_theta", "rope_scaling", "rope_parameters", "max_position_embeddings", "attn_config", "alibi",
    "d_model", "n_heads", "n_layers", "n_head", "n_layer", "encoding", "parameters", "attn_logit_softcapping",
    "text_config", "vocab_size", "architectures", "attention_chunk_size", "no_rope_layers", "sliding_window_pattern",
    "training",
]  # fmt: skip
CLAIMS = ["upper", "lower", "finite", "mean", "sum", "part", "classes", "zero", ""]


def answers(call: Callable[[], object]) -> None:
    """The door holds: an answer, or a ValueError in one line."""
    try:
        call()
    except ValueError as error:
        assert "\n" not in str(error), str(error)  # noqa: PT017


def grammar(data: bytes) -> None:
    """Raw text in one half of the cases, words of the grammar in the other."""
    given = atheris.FuzzedDataProvider(data)
    if given.ConsumeBool():
        text = given.ConsumeUnicode(2000)
    else:
        text = "".join(given.PickValueInList(TERMS) for _ in range(given.ConsumeIntInRange(0, 60)))

    def call() -> None:
        tree = parse(text)
        assert parse(tree.text()) == tree

    answers(call)


def json_doors(data: bytes) -> None:
    """A text of JSON, and a model's configuration: what stands there, with other values in some of the fields."""
    answers(lambda: parse_json(data))
    given = atheris.FuzzedDataProvider(data)
    values = [0, -1, 1, 3, 2**62, 0.5, float("nan"), "", "x", "-k*t", None, True, [], {}, [1], {"type": "linear"}]
    config = {name: given.PickValueInList(values) for name in FIELDS if given.ConsumeBool()}
    config["model_type"] = given.PickValueInList(
        ["llama", "mistral", "bloom", "mpt", "gemma2", "t5", "farfield", "falcon"]
    )
    answers(lambda: inspect(config))


def query(data: bytes) -> None:
    """A question of the explorer: a raw query in one half of the cases, known fields with odd values in the other."""
    given = atheris.FuzzedDataProvider(data)
    kind = given.PickValueInList(KINDS)
    if given.ConsumeBool():
        text = given.ConsumeUnicode(4000)
        answers(lambda: read(kind, parse_qsl(text, keep_blank_values=True, max_num_fields=64)))
        return
    fields = []
    for _ in range(given.ConsumeIntInRange(0, 8)):
        own = given.ConsumeUnicode(20) if given.ConsumeBool() else given.PickValueInList(ODD)
        fields.append((given.PickValueInList(NAMES), own))
    answers(lambda: read(kind, fields))


def certificate(data: bytes) -> None:
    """A certificate with random parts, for a formula that converges: never accepted as a proof that it diverges."""
    given = atheris.FuzzedDataProvider(data)

    def value(depth: int) -> object:
        kind = given.ConsumeIntInRange(0, 8 if depth else 5)
        if kind <= 1:
            return "".join(given.PickValueInList(TERMS) for _ in range(given.ConsumeIntInRange(0, 6)))
        if kind == 2:
            return given.ConsumeInt(8)
        if kind == 3:
            return given.ConsumeFloat()
        if kind == 4:
            return given.PickValueInList([None, True, False])
        if kind == 5:
            return given.PickValueInList(["0", "1", "2", "1/2", "-1", "exp(5)"])
        if kind == 6:
            return [value(depth - 1) for _ in range(given.ConsumeIntInRange(0, 3))]
        return claim(depth - 1)

    def claim(depth: int) -> dict[str, object]:
        names = [
            "from",
            "exponent",
            "ln_constant",
            "depth",
            "factor",
            "mean",
            "parts",
            "part",
            "index",
            "modulus",
            "classes",
        ]
        chosen = {name: value(depth) for name in names if given.ConsumeBool()}
        return {"claim": given.PickValueInList(CLAIMS), **chosen}

    found = claim(3)
    answers(lambda: _never(examine(SMOOTH, "diverges", found)))


def _never(accepted: object) -> None:
    assert not accepted, "a proof that 1/(t + 1)^2 has no finite sum"


DOORS = {"grammar": grammar, "json": json_doors, "query": query, "certificate": certificate}

if __name__ == "__main__":
    door, seconds = sys.argv[1:3]
    os.chdir(tempfile.mkdtemp())  # where the input that broke a door is left
    atheris.Setup(
        [sys.argv[0], f"-max_total_time={seconds}", "-timeout=60", "-rss_limit_mb=2048", "-max_len=4000"], DOORS[door]
    )
    atheris.Fuzz()
