"""English: pronouns, names and the agreement of verbs with a singular "they"."""
