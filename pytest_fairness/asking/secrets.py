"""Removal of secrets (of environment variables, headers and addresses) from all texts that are recorded or shown."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from urllib.parse import unquote, urlsplit

from pytest_fairness.options import RunSettings
from pytest_fairness.records.plain_json import fields_of
from pytest_fairness.targets.web.address import REFERENCE
from pytest_fairness.targets.web.api_keys import is_distinct, secret_remover

SHORTEST = 8
"""Minimum number of characters of a secret: shorter values also occur in ordinary text."""
SHORTEST_WORD = 12
"""Minimum number of characters of a secret without digits: shorter ones may be placeholders, such as `lm-studio`."""

_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)
_HEADER = re.compile(r"auth|key|token|secret|passw|cookie|credential|session|signature", re.IGNORECASE)
"""Names of headers whose value is a secret, whatever it looks like."""


def environment_redactor(
    environment: Mapping[str, str] | None = None, settings: RunSettings | None = None
) -> Callable[[str], str]:
    """Return a function that replaces secrets by `[key]` in a text, in all forms that `api_keys.forms_of` lists.

    Secrets are the values of environment variables whose name ends with `KEY`, `TOKEN` or similar, the passwords in
    addresses of servers and databases that a variable or setting holds, and the values of the headers in the settings.

    Args:
        environment: environment variables by name; default: the variables of this process.
        settings: settings of the run, with the headers; `None` for the environment alone.
    """
    environment = os.environ if environment is None else environment
    values = {value.strip() for name, value in environment.items() if _NAME.search(name)}
    found = {*filter(_is_secret, values), *_passwords(environment.values())}
    if settings is not None:
        found |= _passwords(value for value in fields_of(settings).values() if isinstance(value, str))
        for line in (*settings.http_headers, *settings.api_headers):
            filled = REFERENCE.sub(lambda match: environment.get(match[1], ""), line)
            name, _, value = (part.strip() for part in filled.partition(":"))
            found |= {
                own
                for own in (value, value.partition(" ")[2])  # with and without `Bearer`
                if (is_distinct(own) if _HEADER.search(name) else _is_secret(own) and "://" not in own)
            }
    return secret_remover(found)


def _passwords(values: Iterable[str]) -> set[str]:
    """Return the passwords in values that are addresses, such as `postgresql://me:password@host/shop`."""
    found = set()
    for value in values:
        if "://" in value and "@" in value:
            try:
                password = urlsplit(value.strip()).password or ""
            except ValueError:  # not an address
                continue
            found |= {password, unquote(password)}
    return set(filter(is_distinct, found))


def _is_secret(value: str) -> bool:
    """Return whether a value looks like a secret, and not like a path or a placeholder such as `none` or `ollama`."""
    return (
        len(value) >= SHORTEST
        and not value.startswith("/")
        and not any(map(str.isspace, value))
        and (value.startswith("sk-") or any(map(str.isdigit, value)) or len(value) >= SHORTEST_WORD)
    )
