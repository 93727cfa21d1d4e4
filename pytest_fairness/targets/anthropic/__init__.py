"""Targets `anthropic:MODEL`."""
