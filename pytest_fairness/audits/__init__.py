"""Audits: what is measured in answers, one module a method, one folder a family."""
