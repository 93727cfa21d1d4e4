"""Removal of secrets of the environment from everything that is recorded or shown."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from pytest_fairness.targets.api_keys import hiding

SHORTEST = 8
"""Fewest characters of a secret: shorter values also occur in ordinary text."""

_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)


class Secrets:
    """Values of the environment variables that hold keys.

    Args:
        environment: the variables; those of this process by default.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        environment = os.environ if environment is None else environment
        values = {value.strip() for name, value in environment.items() if _NAME.search(name)}
        self._hide = hiding(filter(_is_secret, values))

    def hidden(self, text: str) -> str:
        """Return the text with `[key]` in place of every secret."""
        return self._hide(text)


def _is_secret(value: str) -> bool:
    """Return whether a value is a key, and neither a path nor a placeholder such as `none` or `ollama`."""
    return (
        len(value) >= SHORTEST
        and not value.startswith("/")
        and not any(map(str.isspace, value))
        and (value.startswith("sk-") or any(map(str.isdigit, value)))
    )
