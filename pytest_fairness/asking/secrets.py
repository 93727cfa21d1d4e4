"""Keeps what is secret in the environment out of everything that is written or shown."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from pytest_fairness.targets.api_keys import hiding

SHORTEST = 8
"""Characters that a secret has at least: what is shorter stands in ordinary text too."""

_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)


class Secrets:
    """The values of the environment variables that hold keys, as the environment is when this is made."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        environment = os.environ if environment is None else environment
        found = {value.strip() for name, value in environment.items() if _NAME.search(name)}
        self._hide = hiding(filter(_is_secret, found))

    def hidden(self, text: str) -> str:
        """The text with `[key]` in place of every secret."""
        return self._hide(text)


def _is_secret(value: str) -> bool:
    """Not `none`, `ollama` or `/run/secrets/key`: words that people put where no key is needed, and places of files."""
    return (
        len(value) >= SHORTEST
        and not value.startswith("/")
        and not any(map(str.isspace, value))
        and (value.startswith("sk-") or any(map(str.isdigit, value)))
    )
