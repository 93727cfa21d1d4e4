"""Targets `http://…` and `https://…`."""
