"""Measurements of items, of their noise, and of the probe's variants."""
