"""API keys in environment variables, and their removal from texts."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Callable, Iterable
from urllib.parse import quote, quote_plus, unquote, urlsplit

from pytest_fairness.errors import TargetError

SHORTEST = 8
"""Minimum length at which a key with only letters is removed from texts; shorter keys, such as `none`, may be ordinary
words."""
SHORTEST_MIXED = 4
"""Minimum length at which a key with other characters than letters is removed from texts."""


def key_of(target: str, variable: str) -> str:
    """Return the key in an environment variable; an empty text if the variable is not set.

    Args:
        target: the target's name, for the message.
        variable: name of the variable.

    Raises:
        TargetError: the key has characters that cannot be sent in a header.
    """
    key = os.environ.get(variable, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise TargetError(
            f"{target}: the key in the environment variable {variable} has characters that cannot be sent, as they are "
            "not printable ASCII. Copy the key again."
        )
    return key


def secrets_of(url: str) -> list[str]:
    """Return the secrets in an address, as written and decoded: login, password, and the values of the query."""
    parts = urlsplit(url)
    login = parts.netloc.rpartition("@")[0]
    values = [login, login.partition(":")[2], *(pair.partition("=")[2] for pair in parts.query.split("&"))]
    return [form for value in values if value for form in dict.fromkeys((value, unquote(value)))]


def forms_of(value: str) -> list[str]:
    """Return the forms in which a text may contain a secret: unchanged, or encoded for JSON, an address or base64."""
    quoted = [quote(value, safe=""), quote(value), quote_plus(value)]
    lower = [re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), text) for text in quoted]
    raw = value.encode("utf-8", "surrogatepass")
    encoded = [encode(raw).decode().rstrip("=") for encode in (base64.b64encode, base64.urlsafe_b64encode)]
    if len(raw) >= SHORTEST:  # as a part of a longer text, such as `user:password`, without the digits that it shares
        for before in (1, 2):
            for encode in (base64.b64encode, base64.urlsafe_b64encode):
                inner = encode(b"\0" * before + raw)[before + 1 : (before + len(raw)) * 4 // 3]
                encoded.append(inner.decode())
        encoded += [text[: len(raw) * 4 // 3] for text in encoded[:2]]
    written = [json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]]
    return list({value, *written, *quoted, *lower, *encoded})


def secret_remover(values: Iterable[str]) -> Callable[[str], str]:
    """Return a function that replaces these values, in all of their encoded forms, by `[key]` in a text."""
    forms = {form for value in values if value for form in forms_of(value)}
    if not forms:
        return str
    pattern = re.compile("|".join(map(re.escape, sorted(forms, key=len, reverse=True))))
    return lambda text: pattern.sub("[key]", text)


def is_distinct(value: str) -> bool:
    """Return whether a key is unlikely to be a word of ordinary text, so that it can be removed from texts."""
    return len(value) >= SHORTEST or (len(value) >= SHORTEST_MIXED and not value.isalpha())
