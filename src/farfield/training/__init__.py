"""One run: settings in, a trained model out, and nothing lost when it is killed."""
