"""Measurements of items, and what is measured besides: noise and variants."""
