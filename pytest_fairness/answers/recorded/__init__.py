"""Readers of files that hold answers instead of asking for them, one module a probe kind."""
