"""Audits of pronoun resolution: which of two people an answer takes a pronoun to mean."""
