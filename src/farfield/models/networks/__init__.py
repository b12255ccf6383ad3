"""The networks of models that people run: taken apart where they must be, with another encoding, or a bounded cache."""
