"""`farfield generate`: text from a model whose cache is bounded, and the certificate of what that cost."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from farfield.commands.options import Flag, Json, Whole, WholeOrNone, plain_warnings
from farfield.reading import UnreadableError, read_bytes

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from farfield.nn.cache.certificate import CertificateTable

CHUNK = 1024  # tokens of a long prompt that are read at once


def generate_command(
    run: str,
    *,
    prompt: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    prompt_file: Path | None = None,
    epsilon: str = "1e-3",
    logit_bound: str | None = None,
    policy: Literal["widen", "warn", "stop"] = "widen",
    context: WholeOrNone = None,
    tokens: Whole = 100,
    sample: Flag = False,
    temperature: float = 1.0,
    seed: Whole = 0,
    full: Flag = False,
    device: str | None = None,
    as_json: Json = False,
) -> None:
    """Write on from a prompt, keeping only the keys that epsilon asks for, and tell what that can have cost.

    Args:
        run: A run folder of `farfield train`, a folder of `farfield replace`, or the folder or name of a BLOOM, MPT or
            Falcon (ALiBi) model, or of one with windows.
        prompt: The text to go on from; of any length, in constant memory.
        prompt_file: A file with that text.
        epsilon: The share of attention that a token may lose in any head.
        logit_bound: Choose windows for |q.k|/sqrt(d) up to this bound, instead of measuring them.
        policy: If a token may have lost more than epsilon all the same: `widen` the window, `warn`, or `stop`.
        context: The longest text; needed where the encoding's series diverges.
        tokens: Tokens to write.
        sample: Draw each token instead of taking the likeliest.
        temperature: Of the draw.
        seed: Of the draw.
        full: Keep every key: the usual cache, for comparison.
        device: Where to compute: cpu, cuda, cuda:1, ...; a GPU if there is one unless given.
        as_json: Print one JSON object.
    """
    text = _prompt(prompt, prompt_file)
    if tokens < 1:
        raise ValueError(f"{tokens} tokens were asked for; it must be at least 1")
    import torch
    from transformers import TextStreamer

    import farfield
    from farfield.data.tokenizing import try_out
    from farfield.nn.cache.certificate import CertificateError

    model, tokenizer = _load(run, device)

    torch.manual_seed(seed)
    try_out(tokenizer.backend_tokenizer, text, f"of {run!r}")
    ids = tokenizer(text, return_tensors="pt", return_token_type_ids=False).to(model.device)
    if ids["input_ids"].shape[1] == 0:
        raise ValueError("the prompt has no tokens; give some text")
    if (most := int(ids["input_ids"].max())) >= (size := model.get_input_embeddings().num_embeddings):
        raise ValueError(f"the tokenizer does not fit the model: it gives token {most}, the model has {size}")
    options: dict[str, Any] = {"max_new_tokens": tokens, "do_sample": sample, "return_dict_in_generate": True}
    if sample:
        options["temperature"] = temperature
    if not as_json:
        options["streamer"] = TextStreamer(tokenizer, skip_special_tokens=True)
    try:
        with plain_warnings():
            if not full:
                farfield.bound(model, epsilon, logit_bound=logit_bound, policy=policy, context=context)
                options |= {"past_key_values": model.new_bounded_cache(), "prefill_chunk_size": CHUNK}
            done = model.generate(**ids, **options)
    except CertificateError as error:
        raise ValueError(f"stopped: {error}") from None
    certificate = None if full else options["past_key_values"].certificate()
    if as_json:
        written = tokenizer.decode(done.sequences[0, ids["input_ids"].shape[1] :], skip_special_tokens=True)
        print(json.dumps({"text": written, "certificate": certificate.json() if certificate else None}))
    elif certificate is not None:
        _show(certificate, options["past_key_values"].bytes())


def _prompt(prompt: str | None, file: Path | None) -> str:
    if (prompt is None) == (file is None):
        raise ValueError("Give the text to go on from, either with --prompt or with --prompt-file.")
    if file is None:
        return str(prompt)
    try:
        return read_bytes(file).decode()
    except UnreadableError as error:
        raise ValueError(f"The prompt {error}") from None
    except UnicodeDecodeError:
        raise ValueError(f"The prompt {str(file)!r} cannot be read: it is no text in UTF-8.") from None


def _load(run: str, device: str | None) -> tuple[Any, PreTrainedTokenizerFast]:
    """A model that writes, on its device, and its tokenizer."""
    from transformers import PreTrainedTokenizerFast
    from transformers.utils import logging

    from farfield.data.tokenizer import load_tokenizer
    from farfield.data.tokenizing import refuse_growing_decoder
    from farfield.training.pretrained import load_network
    from farfield.training.processes import chosen_device

    # its reminder that a text is longer than the samples of the training is what this command is for
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    network, _ = load_network(run)
    folder = Path(run).expanduser()
    tokenizer = load_tokenizer(str(folder) if folder.exists() else run)
    refuse_growing_decoder(tokenizer, f"of {run!r}")
    return network.to(chosen_device(device)), PreTrainedTokenizerFast(tokenizer_object=tokenizer)


def _show(certificate: CertificateTable, size: int) -> None:
    from rich.console import Console
    from rich.text import Text

    from farfield.nn.cache.certificate import SCOPE
    from farfield.table import Table
    from farfield.words import memory, tokens

    console = Console(file=sys.stderr)
    outcome = "held" if certificate.holds else "was exceeded"
    over = f"over {tokens(certificate.tokens)} tokens, in a cache of {memory(size)}"
    console.print(Text(f"epsilon {certificate.epsilon:g} {outcome} {over}; {SCOPE}.", style="bold"))
    rows = [
        [str(r.layer), str(r.head), tokens(r.window), f"<= {r.share:.1e}", f"<= {r.change:.1e}", str(r.over)]
        for r in certificate.rows
    ]
    headings = ("layer", "head", "window", "share lost", "output moved", "tokens over epsilon")
    console.print(Table(headings, rows, title="what the cache can have cost", names=2).rich(console))
