"""The text of a run: the corpus, the tokenizer and the tokens that its settings name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from farfield.data.corpus import Corpus, open_corpus
from farfield.data.durable import cache_folder
from farfield.data.tokenizer import load_tokenizer, make_tokenizer
from farfield.data.tokens import Tokens, tokenize
from farfield.training.settings import Settings

if TYPE_CHECKING:
    from tokenizers import Tokenizer


def corpus_of(settings: Settings) -> Corpus:
    """The corpus that a run's settings name."""
    return open_corpus(settings.corpus, split_seed=settings.split_seed, errors=settings.errors, limit=settings.limit)


def read_text(
    settings: Settings,
    splits: tuple[str, ...] = ("train", "valid"),
    *,
    stored: Path | None = None,
    progress: bool,
    say: Callable[[str], None] | None = None,
) -> tuple[Tokenizer, dict[str, Tokens]]:
    """The tokenizer of a run and the tokens of these splits; `stored` is the tokenizer that the run has."""
    corpus = corpus_of(settings)
    if say is not None and corpus.division:
        say(corpus.division)
    if stored is not None and stored.exists():
        tokenizer = load_tokenizer(str(stored))
    else:
        tokenizer = make_tokenizer(settings.tokenizer, corpus, settings.vocabulary, cache_folder())
    return tokenizer, {split: tokenize(corpus, split, tokenizer, progress=progress) for split in splits}
