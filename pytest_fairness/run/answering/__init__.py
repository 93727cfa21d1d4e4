"""Answers of items: targets that give answers, and models that classify, score or embed answers."""
