"""Keys of services, which stand in the environment and nowhere else."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Callable, Iterable
from urllib.parse import quote, quote_plus, unquote, urlsplit

from pytest_fairness.errors import TargetError

SHORTEST = 8
"""Characters from which on a key in use is taken out of answers, whatever it consists of."""
SHORTEST_MIXED = 4
"""The same for one that does not consist of letters only, as `none` and `ollama` do: these stand in ordinary text."""


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


def secrets_of(url: str) -> list[str]:
    """Return what must not be shown of an address: user and password, and the values of its query."""
    parts = urlsplit(url)
    login = parts.netloc.rpartition("@")[0]
    values = [login, login.partition(":")[2], *(pair.partition("=")[2] for pair in parts.query.split("&"))]
    return [form for value in values if value for form in dict.fromkeys((value, unquote(value)))]


def forms_of(value: str) -> list[str]:
    """Return the forms in which a secret may be repeated: as it is, in JSON, in an address, in base64."""
    quoted = [quote(value, safe=""), quote(value), quote_plus(value)]
    lower = [re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), text) for text in quoted]
    raw = value.encode("utf-8", "surrogatepass")
    encoded = [encode(raw).decode().rstrip("=") for encode in (base64.b64encode, base64.urlsafe_b64encode)]
    written = [json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]]
    return list({value, *written, *quoted, *lower, *encoded})


def hiding(values: Iterable[str]) -> Callable[[str], str]:
    """Return a function that writes `[key]` in place of these values in a text, in whatever form they stand there."""
    forms = {form for value in values if value for form in forms_of(value)}
    if not forms:
        return str
    pattern = re.compile("|".join(f"{re.escape(form)}" for form in sorted(forms, key=len, reverse=True)))
    return lambda text: pattern.sub("[key]", text)


def is_distinct(value: str) -> bool:
    """Return whether a key in use is no word of ordinary text, so that answers can be rid of it."""
    return len(value) >= SHORTEST or (len(value) >= SHORTEST_MIXED and not value.isalpha())
