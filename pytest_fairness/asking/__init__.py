"""Requests sent and responses stored: engine, store, claims, retries, rate limits, budget."""
