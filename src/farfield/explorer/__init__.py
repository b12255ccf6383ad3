"""The explorer: the verdict, the receptive fields and the design of any encoding, in a browser on one's own machine."""
