"""Keys of services, which stand in the environment and nowhere else."""

from __future__ import annotations

import os

from pytest_fairness.errors import TargetError


def key_of(target: str, variable: str) -> str:
    """The key that an environment variable holds; empty where it holds none.

    Args:
        target: the name of who is asked, for the message.
        variable: the variable's name.

    Raises:
        TargetError: it holds characters that cannot be sent in a header.
    """
    key = os.environ.get(variable, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise TargetError(f"{target}: the environment variable {variable} holds characters that no key has.")
    return key
