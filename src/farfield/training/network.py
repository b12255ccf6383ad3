"""The network of a run: this project's decoder, or a model of transformers that `farfield replace` made.

Both are asked the same: for a configuration, to be made, for the mean loss of a batch, their weights, and the bias. A
checkpoint holds the weights and the moments of the optimizer, written whole, or each process its part; both forms are
safetensors with the same names (`layers.0.up.weight`, `layers.0.up.weight.exp_avg`), so either can be read by any
number of processes, divided or not: `torch.distributed.checkpoint` puts the pieces together.
"""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.distributed import checkpoint as distributed

from farfield import zoo
from farfield.data import durable
from farfield.data.tokenizer import end_token, tokenizer_digest, vocabulary_size
from farfield.nn.decoder.config import FarfieldConfig
from farfield.nn.decoder.model import FarfieldForCausalLM, Position
from farfield.training.checkpoint import About, DamagedCheckpointError, Listed, Write, list_file, save_checkpoint, stage
from farfield.training.pretrained import Start, read_other_config
from farfield.training.processes import Processes
from farfield.training.runfolder import MODEL, write_tensors
from farfield.training.settings import Settings

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PretrainedConfig, PreTrainedModel

    from farfield.data.tokens import Tokens
    from farfield.nn.bias import Bias, T5Bias
    from farfield.training.loop import Loop

OPTIMIZER = "optimizer.safetensors"
MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # what AdamW keeps of each parameter


def is_ours(config: PretrainedConfig) -> bool:
    """Whether this is a configuration of the project's own decoder."""
    return isinstance(config, FarfieldConfig)


def model_config(
    settings: Settings, tokenizer: Tokenizer, tokens: dict[str, Tokens], start: Start | None = None
) -> PretrainedConfig:
    """The model's configuration for these settings, with the settings inside, and what their names stand for today."""
    end, size = end_token(tokenizer), vocabulary_size(tokenizer)
    identity: dict[str, object] = {
        "formula": zoo.find(settings.encoding).text,
        "tokenizer": tokenizer_digest(tokenizer),
        "corpus": {split: text.sha256 for split, text in tokens.items()},
    }
    if start is not None:
        identity["start"] = start.digests
    training = {"settings": settings.model_dump(mode="json"), "identity": identity}
    if start is not None and start.replaced is not None:
        config = read_other_config(start.replaced)
        if size > config.vocab_size:
            raise ValueError(
                f"The tokenizer in {str(start.replaced)!r} has {size} words, but its model {config.vocab_size}."
            )
        config.training, config.name_or_path = training, ""
        return config
    config = FarfieldConfig(
        vocab_size=size,
        **settings.sizes(),
        dropout=settings.dropout,
        encoding=settings.encoding,
        encoding_parameters=dict(settings.parameters) or None,
        shared_bias=settings.shared_bias,
        bos_token_id=end and end[1],
        eos_token_id=end and end[1],
        training=training,
    )
    identity["values"] = Position(config).values()
    return config


def model_json(config: PretrainedConfig) -> dict[str, object]:
    """The `config.json` of a model, as `save_pretrained` would write it."""
    classes = [FarfieldForCausalLM.__name__] if is_ours(config) else config.architectures
    fields = {**config.to_dict(), "architectures": classes, "dtype": "float32"}
    return json.loads(json.dumps({**fields, "use_cache": True}, sort_keys=True))


def make_network(config: PretrainedConfig, *, recompute: bool, compile: bool) -> PreTrainedModel:  # noqa: A002
    """A model of this configuration with first weights; `recompute` and `compile` as `train` has them."""
    model: PreTrainedModel
    if is_ours(config):
        model = FarfieldForCausalLM(config)
    else:
        from transformers import AutoModelForCausalLM

        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    if recompute:
        # transformers 5.23 gave it another name, and warns of the old one
        getattr(model, "activation_checkpointing_enable", model.gradient_checkpointing_enable)()
    if compile:
        for layer in model.layers if is_ours(config) else [model]:
            layer.compile()
    return model


def optimizer_of(model: PreTrainedModel, settings: Settings) -> torch.optim.Optimizer:
    """Adam with decoupled weight decay on every parameter, which is what the authors' code (fairseq) does."""
    return torch.optim.AdamW(
        model.parameters(),
        lr=settings.learning_rate,
        betas=settings.betas,
        eps=settings.epsilon,
        weight_decay=settings.weight_decay,
        fused=True,
    )


def mean_loss(forward: nn.Module, config: PretrainedConfig, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """The mean loss over the tokens of a batch.

    The dropout of our decoder is drawn for each sample; that of another model is drawn for the batch, by its first
    sample. So both are functions of the seed and the samples, and a run that goes on does what an undisturbed one does.
    """
    if is_ours(config):
        # as a tuple: FSDP looks at all fields of an output, and logits are computed when looked at
        return forward(**batch, use_cache=False, return_dict=False)[0]
    if "sample_seeds" in batch:
        torch.manual_seed(int(batch["sample_seeds"][0]))
    logits = forward(input_ids=batch["input_ids"], use_cache=False, return_dict=False)[0]
    return nn.functional.cross_entropy(logits.float().flatten(0, 1), batch["shift_labels"].flatten())


def weights_of(model: PreTrainedModel) -> dict[str, torch.Tensor]:
    """The weights by name, each once: those that two names share stand under the first."""
    names: dict[int, str] = {}
    weights = model.state_dict(keep_vars=True)
    first = {name: names.setdefault(id(tensor), name) == name for name, tensor in weights.items()}
    return {name: tensor.detach() for name, tensor in weights.items() if first[name]}


def load_weights(model: PreTrainedModel, weights: dict[str, torch.Tensor], where: str | None) -> None:
    """Put weights into a model that has the same names and shapes.

    Raises:
        ValueError: With the first that differs.
    """
    here = model.state_dict()
    for name in sorted({*here, *weights}):
        shapes = [tuple(table[name].shape) if name in table else None for table in (here, weights)]
        if shapes[0] != shapes[1]:
            words = ["no such tensor" if shape is None else f"{shape}" for shape in shapes]
            raise ValueError(f"The weights in {where!r} do not fit: {name} is {words[1]} there and {words[0]} here.")
    model.load_state_dict(weights)


def bias_of_network(model: PreTrainedModel) -> tuple[str, Bias | T5Bias | None]:
    """The module that gives the bias of the encoding, with its name; None if there is none."""
    return ("position.bias", model.position.bias) if is_ours(model.config) else ("farfield_bias", model.farfield_bias)


# --- checkpoints ------------------------------------------------------------------------------------------------------


def save_state(loop: Loop, files: dict[str, Write], about: About) -> None:
    """Save a checkpoint of a run; every process takes part, and all of them learn if it failed."""
    run, step, model, optimizer, processes = loop.run, loop.state.step, loop.model, loop.optimizer, loop.processes
    written: dict[str, Listed] | None = None
    staged: Path | None = None
    if loop.divided:
        staged = processes.on_main(lambda: stage(run, step))
        written = _write_parts(staged, {**model.state_dict(), **_moments(model, optimizer)}, processes)
    else:
        files = {
            **files,
            MODEL: lambda path: write_tensors(path, weights_of(model)),
            OPTIMIZER: lambda path: write_tensors(path, _moments(model, optimizer)),
        }
    keep = loop.settings.keep
    processes.on_main(
        lambda: save_checkpoint(run, step, files, about, keep=keep, staged=staged, written=written) and None
    )


def load_state(loop: Loop, folder: Path, step: int) -> None:
    """Load a checkpoint that was verified, after a look at every name, shape and type in it."""
    model, optimizer, divided = loop.model, loop.optimizer, loop.divided
    moments = {
        f"{name}.{key}": torch.zeros((), dtype=torch.float32) if key == "step" else torch.zeros_like(parameter)
        for name, parameter in model.named_parameters()
        for key in MOMENTS
    }
    wanted = {**(model.state_dict() if divided else weights_of(model)), **moments}
    reader = distributed.HuggingFaceStorageReader(str(folder))
    _check(folder, reader, wanted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is one process only is as it should be
        distributed.load(wanted, storage_reader=reader, no_dist=not divided)
    if any(moments[name].item() != step for name in moments if name.endswith(".step")):
        raise DamagedCheckpointError(f"{folder.name}: its moments are of another step than {step}")
    names = [name for name, _ in model.named_parameters()]
    state = {number: {key: moments[f"{name}.{key}"] for key in MOMENTS} for number, name in enumerate(names)}
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def _moments(model: PreTrainedModel, optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    return {
        f"{name}.{key}": value
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def _check(folder: Path, reader: distributed.HuggingFaceStorageReader, wanted: dict[str, torch.Tensor]) -> None:
    """Refuse a checkpoint that does not fit the model, before anything of it is loaded."""
    stored = reader.read_metadata().state_dict_metadata
    for name, tensor in wanted.items():
        if name not in stored:
            raise DamagedCheckpointError(f"The checkpoint {folder.name} has no {name!r}, which the model needs.")
        size, dtype = tuple(stored[name].size), stored[name].properties.dtype
        if size != tuple(tensor.shape) or dtype != tensor.dtype:
            raise DamagedCheckpointError(
                f"In the checkpoint {folder.name}, {name!r} is {size} of {dtype}, but the model has "
                f"{tuple(tensor.shape)} of {tensor.dtype}."
            )


def _write_parts(folder: Path, tensors: dict[str, torch.Tensor], processes: Processes) -> dict[str, Listed]:
    """Each process writes its part of the tensors into the staged folder, and syncs and hashes some of the files."""
    writer = distributed.HuggingFaceStorageWriter(str(folder), save_distributed=True)
    try:
        durable.write_with(lambda _: _save(tensors, writer), folder)
        mine = sorted(folder.iterdir())[processes.rank :: processes.count]
        tables = processes.everyone(lambda: {path.name: list_file(path) for path in mine})
    except BaseException:
        if processes.is_main:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    return {name: listed for table in tables for name, listed in table.items()}


def _save(tensors: dict[str, torch.Tensor], writer: distributed.HuggingFaceStorageWriter) -> None:
    """Write the parts; if one process fails, all do, with an error that is a mere `BaseException` of torch's."""
    try:
        distributed.save(tensors, storage_writer=writer)
    except distributed.CheckpointException as error:
        raise RuntimeError(str(error)) from error
