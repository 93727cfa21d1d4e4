"""Parse responses: texts, lists, choices, pronouns, refusals."""
