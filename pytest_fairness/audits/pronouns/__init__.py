"""Audits of pronoun resolution."""
