"""Scorers: models that give each text a score for each of their labels, such as `negative`."""
