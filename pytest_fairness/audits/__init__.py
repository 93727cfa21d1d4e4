"""Audits: methods that measure bias in answers. Each method is a module; each family of methods is a folder."""
