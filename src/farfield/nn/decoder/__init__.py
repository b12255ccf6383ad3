"""The language model of the paper with any encoding, as a transformers model."""
