"""Commands of `python -m pytest_fairness`: a module each, with `add_arguments` and `run`.

The docstring of `run` is the description that `--help` prints.
"""
