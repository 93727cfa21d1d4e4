"""Items of a run: audit items with their probes, the models that read their answers, and what notebooks show."""
