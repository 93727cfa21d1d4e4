"""Sending of requests in batches of a provider, from the choice of the requests to the record of their results."""
