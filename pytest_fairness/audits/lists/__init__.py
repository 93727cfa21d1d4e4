"""Audits of recommended lists: comparison of the values of an attribute."""
