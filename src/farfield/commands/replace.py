"""`farfield replace`: a model of transformers with another positional encoding, saved to a folder."""

from __future__ import annotations

from pathlib import Path

from farfield.commands.options import Formula, Learn, SetParameters, Slopes, head_values
from farfield.data import durable
from farfield.zoo import find
from farfield.zoo.encoding import choose_parameters, slopes_sentence


def replace_command(
    model: str,
    /,
    *,
    encoding: Formula,
    out: Path,
    parameters: SetParameters = None,
    learn: Learn = None,
    slopes: Slopes = None,
    shared_bias: bool = True,
    device: str = "cpu",
) -> None:
    """Take a model's own positions out, put the bias of a formula in, and save it. It must then be trained further.

    Args:
        model: A folder of `save_pretrained`, or an id on the Hugging Face hub: GPT-2, Llama, Mistral, Qwen, Phi, OLMo,
            GPT-NeoX, BLOOM, MPT or Falcon.
        encoding: A name from the zoo (`farfield zoo`) or a formula such as "-k*t".
        out: The folder to write; `farfield evaluate`, `generate` and `train --from` take it.
        parameters: A parameter of the formula, as NAME=VALUE, or one value for each head: a=1,2,4,8; may be repeated.
        learn: Parameters that each head learns, with the range in which the heads start and, after "in", bounds:
            "a=0:2, p=0.5:1.5 in 0.01:3".
        slopes: What k is: alibi (the default), learned (starting at ALiBi's), or one for each head: 1/2,1/4,1/8,1/16.
        shared_bias: One set of learned parameters for all layers, or one for each.
        device: Where the model is held meanwhile: cpu, cuda, cuda:1, ...
    """
    named = find(encoding)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ValueError(f"{str(out)!r} exists already: choose another --out.")
    from farfield.models.networks.replace import family_of_model
    from farfield.models.networks.replace import replace as replaced
    from farfield.training.pretrained import load_network, quiet_transformers
    from farfield.training.processes import chosen_device

    place = chosen_device(device)
    network = load_network(model)[0].to(place)
    family_of_model(network)
    heads = network.config.num_attention_heads
    given = choose_parameters(named, heads, head_values(parameters), learn, slopes)
    made = replaced(network, encoding, parameters=given, shared=shared_bias)
    out.mkdir(parents=True, exist_ok=True)
    with quiet_transformers():
        durable.replace_files(out, made.save_pretrained)
        has_tokenizer = _save_tokenizer(model, out)
    if said := slopes_sentence(named, heads, given):
        print(f"{said}.")
    for name, rule in getattr(made.farfield_bias, "rules", {}).items():
        print(f"{name}: {rule.text}.")
    if not has_tokenizer:
        print(f"{model!r} has no tokenizer that could be copied.")
    print(
        f"The model with {encoding} in place of its own positions is in {str(out)!r}. Its weights were learned with "
        "other positions: it must be trained further."
    )


def _save_tokenizer(model: str, out: Path) -> bool:
    """Save the tokenizer of a model beside the new one; False if it has none."""
    from transformers import AutoTokenizer

    folder = Path(model).expanduser()
    name = str(folder) if folder.exists() else model
    try:
        tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=False)
        durable.replace_files(out, tokenizer.save_pretrained)
    except (OSError, ValueError, KeyError, TypeError):  # what transformers raises where there is none
        return False
    return True
