"""Audits: methods that measure bias in answers. `registry.py` lists the methods and their modules."""
