"""Probes of kind `stereotype`."""
