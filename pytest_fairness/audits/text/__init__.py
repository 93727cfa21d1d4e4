"""Audits of free texts about two groups."""
