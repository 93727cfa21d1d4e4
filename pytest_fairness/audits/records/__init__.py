"""Audits of decisions about records of people."""
