"""Audits of recommended lists."""
