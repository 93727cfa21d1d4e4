"""Sending of requests and storage of their responses: engine, store, claims, retries, rate limits, budget."""
