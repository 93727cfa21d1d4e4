"""Parsers of responses: texts, lists, choices, refusals, and recorded answers."""
