"""Send requests and store responses: engine, store, claims, retries, rate limits, budget."""
