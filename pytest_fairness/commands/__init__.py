"""Commands of `python -m pytest_fairness`; each command is a module with the functions `add_arguments` and `run`.

The docstring of `run` is the description that `--help` prints.
"""
