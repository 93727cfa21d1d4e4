"""Sending of requests and storage of their responses: engine, store, claims, limits, batches."""
