"""Items of the report document: their reading, and what they say in words and in tables."""
