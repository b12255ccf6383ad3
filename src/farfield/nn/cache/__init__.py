"""The key/value cache whose size a certificate fixes."""
