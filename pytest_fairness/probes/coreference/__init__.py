"""Probes of kind `coreference`."""
