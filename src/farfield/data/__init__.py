"""Corpora, tokenizers and tokens: from text to the batches of a run."""
