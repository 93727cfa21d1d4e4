"""Checks of an item's answers: can a verdict be based on these answers?"""
