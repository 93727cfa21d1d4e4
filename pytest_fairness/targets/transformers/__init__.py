"""Targets `transformers:ID_OR_PATH`."""
