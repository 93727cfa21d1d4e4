"""Requests that are sent in batches of a provider: chosen, uploaded, created, polled and recorded."""
