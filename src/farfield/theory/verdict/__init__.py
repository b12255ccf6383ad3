"""Does the sum of the weights converge, for which parameters, and why."""
