"""Audits of whom a pronoun refers to."""
