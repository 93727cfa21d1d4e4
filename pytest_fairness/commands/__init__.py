"""The commands of `python -m pytest_fairness`, a module each: `declare` says what it takes, `run` does it."""
