"""Tokenizers: byte-pair encoding trained on the corpus, plain bytes, or one that exists already.

Every choice ends as one `tokenizers.Tokenizer`, so that there is one way to encode, one file (`tokenizer.json`) in a
run folder, and `AutoTokenizer.from_pretrained(run)` works for all.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farfield.data.corpus import Corpus, CorpusError, FilesRead, Passage
from farfield.data.tokenizing import try_out
from farfield.reading import UnreadableError, read_json

if TYPE_CHECKING:
    from tokenizers import Tokenizer

END = "<|endoftext|>"  # stands between documents
SMALLEST_VOCABULARY = 257  # the bytes and the end of a document
LARGEST = 256 << 20  # bytes of a tokenizer.json
TRAINING_BYTES = 64 << 20  # text that a BPE is trained on: more changes little and costs memory
_KNOWN_ENDS = (END, "</s>", "<eos>", "<|end_of_text|>", "<|im_end|>")


def byte_tokenizer() -> Tokenizer:
    """One token for each of the 256 bytes, and one for the end of a document."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    # GPT-2's spelling of bytes as printable characters, in the order of the bytes
    spelled = {character: number for number, character in enumerate(_characters_of_bytes())}
    tokenizer = Tokenizer(models.BPE(vocab=spelled, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([END])
    return tokenizer


def _characters_of_bytes() -> list[str]:
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    spare = iter(range(0x100, 0x200))
    return [chr(byte) if byte in printable else chr(next(spare)) for byte in range(256)]


def train_bpe(corpus: Corpus, vocabulary: int, files: FilesRead | None = None) -> Tokenizer:
    """Byte-level BPE of this many words, trained on the train split of the corpus (its first 64 MB)."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    if vocabulary < SMALLEST_VOCABULARY:
        raise CorpusError(f"A vocabulary of {vocabulary} is too small: BPE needs at least {SMALLEST_VOCABULARY}.")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_first(corpus.passages("train", files), TRAINING_BYTES), trainer)
    return tokenizer


def _first(passages: Iterator[Passage], size: int) -> Iterator[str]:
    for text, _ in passages:
        if size <= 0:
            return
        size -= len(text)
        yield text


def load_tokenizer(name: str) -> Tokenizer:
    """The tokenizer of a `tokenizer.json`, of a folder that holds one, or of this name on the hub."""
    from tokenizers import Tokenizer

    path = Path(name).expanduser()
    if path.is_dir():
        path = path / "tokenizer.json"
    if path.exists() or path.suffix == ".json":
        return _load_untrusted(path)
    try:
        return Tokenizer.from_pretrained(name)
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise CorpusError(
            f"There is no tokenizer {name!r}: give bpe, bytes, the path of a tokenizer.json, or a name on the "
            f"Hugging Face hub ({reason})."
        ) from None


def _load_untrusted(path: Path) -> Tokenizer:
    """The tokenizer of a file, tried in a process with limits first unless it is plain."""
    from tokenizers import Tokenizer

    try:
        # tokens of a corpus are all its tokens, and no others
        description = {**read_json(path, LARGEST), "padding": None, "truncation": None}
        try_out(description, "A short text, as a trial: 1 + 1 = 2.\n", repr(str(path)))
        return Tokenizer.from_str(json.dumps(description))
    except UnreadableError as error:
        raise UnreadableError(f"No tokenizer: {error}") from None
    except Exception as error:  # the Rust side raises a bare Exception
        raise CorpusError(f"{str(path)!r} is not a tokenizer that can be read: {error}.") from None


def make_tokenizer(name: str, corpus: Corpus, vocabulary: int, cache: Path) -> Tokenizer:
    """The tokenizer called `bpe` (trained on the corpus, once), `bytes`, or whatever `load_tokenizer` finds."""
    import tokenizers

    from farfield.data.durable import private_folder, replace_file

    if name == "bytes":
        return byte_tokenizer()
    if name != "bpe":
        return load_tokenizer(name)
    files = FilesRead()

    def place() -> Path:
        key = f"bpe 1 {tokenizers.__version__} {vocabulary} {corpus.digest('train', files)}"
        return cache / "tokenizers" / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"

    path = place()
    if path.exists():
        try:
            return tokenizers.Tokenizer.from_file(str(path))
        except Exception:  # a damaged cache is made again
            path.unlink(missing_ok=True)
    tokenizer = train_bpe(corpus, vocabulary, files)
    private_folder(path.parent)
    replace_file(place(), tokenizer.to_str().encode())
    return tokenizer


def tokenizer_digest(tokenizer: Tokenizer) -> str:
    """The sha256 of a tokenizer's own description."""
    return hashlib.sha256(tokenizer.to_str().encode()).hexdigest()


def vocabulary_size(tokenizer: Tokenizer) -> int:
    """How many rows an embedding for this tokenizer needs."""
    return max(tokenizer.get_vocab(with_added_tokens=True).values()) + 1


def end_token(tokenizer: Tokenizer) -> tuple[str, int] | None:
    """The token that stands between documents, with its number, if the tokenizer has one."""
    for token in _KNOWN_ENDS:
        number = tokenizer.token_to_id(token)
        if number is not None:
            return token, number
    return None


def for_transformers(tokenizer: Tokenizer) -> Any:
    """The same tokenizer as transformers wants it, with its end token and no limit on length."""
    from transformers import PreTrainedTokenizerFast

    end = end_token(tokenizer)
    special = {} if end is None else {"eos_token": end[0], "bos_token": end[0]}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, clean_up_tokenization_spaces=False, **special)
