"""Audits of free texts: comparison of texts about a marked and the unmarked group."""
