"""Templates of prompts."""

from __future__ import annotations


def literal(text: str) -> str:
    """Return a template without placeholders that gives this text: its braces are doubled."""
    return text.replace("{", "{{").replace("}", "}}")
