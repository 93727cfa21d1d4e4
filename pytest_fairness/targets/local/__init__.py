"""Targets `local`: the embedded model and GGUF files."""
