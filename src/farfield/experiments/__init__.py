"""Code that is tried out: chosen by name, imported by nobody. README.md says what may live here, and for how long."""
