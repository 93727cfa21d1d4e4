"""Answers of items: targets, engines, and the models that judge, score or embed answers."""
