"""Functions that check addresses of servers, and remove secrets from addresses."""

from __future__ import annotations

import re
from urllib.parse import urlsplit, urlunsplit

REFERENCE = re.compile(r"\$\{(\w+)\}")
"""Pattern of a reference `${NAME}` to an environment variable."""


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


def public_target(target: str) -> str:
    """Return the name of a target as the user typed it (including `NAME=`), without the secrets in its address.

    The user, the password and the values in the query are removed; references to environment variables stay.
    """
    name, address, rest = re.match(r"([\w.-]+\s*=\s*)?(https?://)?(.*)", target.strip(), re.DOTALL).groups("")  # type: ignore[union-attr] # the pattern matches every text
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
    """Return a text with secrets removed from every address in it; see `public_target`."""
    return re.sub(r"https?://\S+", lambda found: public_target(found[0]), text)
