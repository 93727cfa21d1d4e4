"""Targets `openai:MODEL`, and models of other services with OpenAI's chat completions API."""
