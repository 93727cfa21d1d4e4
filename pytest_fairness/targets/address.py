"""Addresses of servers, as they may be shown."""

from __future__ import annotations

import re
from urllib.parse import urlsplit, urlunsplit

REFERENCE = re.compile(r"\$\{(\w+)\}")
"""`${NAME}`: what the environment holds under this name."""


def public_url(url: str) -> str:
    """The address without user, password, query and closing slash: what may be shown and recorded."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))


def is_web_address(url: str) -> bool:
    """Whether this is `http://host` or `https://host`, with or without a port and a path."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False


def public_target(target: str) -> str:
    """A target as typed, `NAME=` before it or not, without what may be secret in an address.

    User and password are left out, and of the query every value that does not come from the environment.
    """
    name, address, rest = re.match(r"([\w.-]+\s*=\s*)?(https?://)?(.*)", target.strip(), re.DOTALL).groups("")  # type: ignore[union-attr] # matches anything
    if not address:
        return target
    place, mark, query = rest.partition("?")
    host, slash, path = place.partition("/")
    pairs = [pair.partition("=") for pair in query.partition("#")[0].split("&")]
    kept = "&".join(
        f"{key}={value if REFERENCE.fullmatch(value) else '…'}" if equals else "…" for key, equals, value in pairs
    )
    return f"{name}{address}{host.rpartition('@')[2]}{slash}{path}{mark}{kept if mark else ''}"


def public_address(text: str) -> str:
    """Return a text with every address in it as `public_target` shows it."""
    return re.sub(r"https?://\S+", lambda found: public_target(found[0]), text)
