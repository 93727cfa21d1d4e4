"""Secrets, such as keys and passwords, and their removal from all texts that are recorded, logged or shown."""

from __future__ import annotations

import base64
import json
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import quote, quote_plus, unquote, urlsplit

from pytest_fairness.options import RunSettings
from pytest_fairness.records.requests import fields_of

REFERENCE = re.compile(r"\$\{(\w+)\}")
"""Pattern of a reference `${NAME}` to an environment variable."""

SHORTEST = 8
"""Minimum number of characters of a secret with only letters; shorter ones, such as `none`, may be ordinary words."""
SHORTEST_MIXED = 4
"""Minimum number of characters of a known secret with other characters than letters."""
SHORTEST_WORD = 12
"""Minimum number of characters of a variable's value without digits; shorter ones, such as `lm-studio`, may be
placeholders."""

_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)
_NAMED = re.compile(rf"{REFERENCE.pattern}|\bapi_key_env=(\w+)")
"""References to environment variables in settings."""
_HEADER = re.compile(r"auth|key|token|secret|passw|cookie|credential|session|signature", re.IGNORECASE)
"""Names of headers whose value is a secret, whatever it looks like."""

Redact = Callable[[str], str]


def secret_remover(values: Iterable[str]) -> Redact:
    """Return a function that replaces these values, in all of their encoded forms, by `[key]` in a text."""
    forms = {form for value in values if value for form in _forms_of(value)}
    if not forms:
        return str
    pattern = re.compile("|".join(map(re.escape, sorted(forms, key=len, reverse=True))))
    return lambda text: pattern.sub("[key]", text)


def _forms_of(value: str) -> list[str]:
    """Return the forms in which a text may contain a secret: unchanged, or encoded for JSON, an address or base64."""
    quoted = [quote(value, safe=""), quote(value), quote_plus(value)]
    lower = [re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), text) for text in quoted]
    written = [json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]]
    raw, encoded = value.encode("utf-8", "surrogatepass"), []
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        encoded.append(encode(raw).rstrip(b"=").decode())
        # As a part of a longer text, such as `user:password`, without the digits that it shares with the rest.
        for before in range(3) if len(raw) >= SHORTEST else ():
            shared = before + (before > 0)
            encoded.append(encode(b"\0" * before + raw)[shared : (before + len(raw)) * 4 // 3].decode())
    return [value, *written, *quoted, *lower, *encoded]


def is_distinct(value: str) -> bool:
    """Return whether a key is unlikely to be a word of ordinary text, so that it can be removed from texts."""
    return len(value) >= SHORTEST or (len(value) >= SHORTEST_MIXED and not value.isalpha())


def secrets_of(url: str) -> list[str]:
    """Return the secrets in an address, as written and decoded: login, password, and the values of the query."""
    parts = urlsplit(url)
    login = parts.netloc.rpartition("@")[0]
    values = [login, login.partition(":")[2], *(pair.partition("=")[2] for pair in parts.query.split("&"))]
    return [form for value in values if value for form in dict.fromkeys((value, unquote(value)))]


def environment_redactor(environment: Mapping[str, str] | None = None, settings: RunSettings | None = None) -> Redact:
    """Return a function that replaces secrets by `[key]` in a text; see `secret_remover`.

    Secrets are the values of environment variables whose name ends with `KEY`, `TOKEN` or similar or is in a setting,
    the passwords in addresses of servers and databases that a variable or setting holds, and the values of the headers
    in the settings.
    """
    environment = os.environ if environment is None else environment
    found = {value.strip() for name, value in environment.items() if _NAME.search(name)}
    found = {*filter(_is_secret, found), *_passwords(environment.values())}
    if settings is not None:
        written = [value for value in fields_of(settings).values() if isinstance(value, str)]
        written += settings.targets.values()
        named = {name for value in written for pair in _NAMED.findall(value) for name in pair}
        found |= {*_passwords(written), *(environment.get(name, "").strip() for name in named)}
        for line in (*settings.http_headers, *settings.api_headers):
            filled = REFERENCE.sub(lambda match: environment.get(match[1], ""), line)
            name, _, value = (part.strip() for part in filled.partition(":"))
            values = (value, value.partition(" ")[2])  # with and without `Bearer`
            found |= {own for own in values if _HEADER.search(name) or (_is_secret(own) and "://" not in own)}
    return secret_remover(filter(is_distinct, found))


def _passwords(values: Iterable[str]) -> Iterator[str]:
    """Yield the passwords in values that are addresses, such as `postgresql://me:password@host/shop`."""
    for value in values:
        if "://" in value and "@" in value:
            with suppress(ValueError):  # not an address
                password = urlsplit(value.strip()).password or ""
                yield from (password, unquote(password))


def _is_secret(value: str) -> bool:
    """Return whether a value looks like a secret, and not like a path or a placeholder such as `none` or `ollama`."""
    return (
        len(value) >= SHORTEST
        and not value.startswith("/")
        and not any(map(str.isspace, value))
        and (value.startswith("sk-") or any(map(str.isdigit, value)) or len(value) >= SHORTEST_WORD)
    )


@contextmanager
def removed_from_logs(redact: Redact) -> Iterator[None]:
    """Remove secrets from the messages and exceptions of all log records of this process."""
    made = logging.getLogRecordFactory()

    def without_secrets(*args: Any, **more: Any) -> logging.LogRecord:
        record = made(*args, **more)
        with suppress(Exception):  # arguments that do not fit the message, which `logging` reports
            said = record.getMessage()
            if redact(said) != said:
                record.msg, record.args = redact(said), None
        if record.exc_info and record.exc_info[0] is not None:
            text = logging.Formatter().formatException(record.exc_info)
            if redact(text) != text:
                record.exc_info, record.exc_text = None, redact(text)
        return record

    if redact is not str:
        logging.setLogRecordFactory(without_secrets)
    try:
        yield
    finally:
        if logging.getLogRecordFactory() is without_secrets:
            logging.setLogRecordFactory(made)
