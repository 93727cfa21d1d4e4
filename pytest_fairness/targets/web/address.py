"""Functions that check addresses of servers, and remove secrets from addresses."""

from __future__ import annotations

import re
from urllib.parse import urlsplit, urlunsplit

REFERENCE = re.compile(r"\$\{(\w+)\}")
"""Pattern of a reference `${NAME}` to an environment variable."""
_ADDRESS = re.compile(r"(https?://)(\S+)")


def public_url(url: str) -> str:
    """Return the address without user, password, query and final slash, so that it is safe to show and record."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))


def is_web_address(url: str) -> bool:
    """Return whether this is an `http` or `https` address with a host."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False


def public_address(text: str) -> str:
    """Return a text, such as the name of a target, without the secrets in the web addresses that it contains.

    The user, the password and the values in the query are removed; references to environment variables stay.
    """
    return _ADDRESS.sub(_without_secrets, text)


def _without_secrets(found: re.Match[str]) -> str:
    place, mark, query = found[2].partition("?")
    host, slash, path = place.partition("/")
    pairs = [pair.partition("=") for pair in query.partition("#")[0].split("&")]
    kept = "&".join(
        f"{key}={value if REFERENCE.fullmatch(value) else '…'}" if equals else "…" for key, equals, value in pairs
    )
    return f"{found[1]}{host.rpartition('@')[2]}{slash}{path}{mark}{kept if mark else ''}"
