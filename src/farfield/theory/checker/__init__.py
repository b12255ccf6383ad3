"""The independent checker of certificates: it shares nothing with the prover but the formula."""
