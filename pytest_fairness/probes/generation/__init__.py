"""Probes of kind `generation`."""
