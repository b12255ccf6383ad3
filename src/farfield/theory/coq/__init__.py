"""Verdicts and receptive fields as files that the proof assistant Coq accepts: the library is in proofs/."""
