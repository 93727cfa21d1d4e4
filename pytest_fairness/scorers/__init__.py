"""Scorers: functions that turn a text into a score, and models that give a score for each label, such as `negative`."""
