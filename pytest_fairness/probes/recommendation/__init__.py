"""Probes of kind `recommendation`."""
