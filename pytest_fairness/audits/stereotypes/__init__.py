"""Audits of texts and likelihoods about people and groups."""
