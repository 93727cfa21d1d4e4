"""Targets `openai:MODEL`."""
