"""Audits of decisions about records."""
