"""What a trained model does: perplexity by length, how far it looks, what a window costs, what inference costs.

Everything here takes a model of ours, or any causal language model of transformers, through one door (models.py).
"""
