"""Removal of secrets (API keys in environment variables) from all texts that are recorded or shown."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping

from pytest_fairness.targets.web.api_keys import secret_remover

SHORTEST = 8
"""Minimum number of characters of a secret: shorter values also occur in ordinary text."""

_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)


def environment_redactor(environment: Mapping[str, str] | None = None) -> Callable[[str], str]:
    """Return a function that replaces the secret values of environment variables by `[key]` in a text.

    Args:
        environment: environment variables by name; default: the variables of this process.
    """
    environment = os.environ if environment is None else environment
    values = {value.strip() for name, value in environment.items() if _NAME.search(name)}
    return secret_remover(filter(_is_secret, values))


def _is_secret(value: str) -> bool:
    """Return whether a value looks like a secret, and not like a path or a placeholder such as `none` or `ollama`."""
    return (
        len(value) >= SHORTEST
        and not value.startswith("/")
        and not any(map(str.isspace, value))
        and (value.startswith("sk-") or any(map(str.isdigit, value)))
    )
