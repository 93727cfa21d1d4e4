"""Numbers in, numbers out: statistics without files, settings or probes."""
