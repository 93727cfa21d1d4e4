"""Audits: methods that measure bias in answers. One module for each method, in a folder for each family."""
