"""Audits of stereotypes: in texts about people, and in the likelihoods of sentences."""
