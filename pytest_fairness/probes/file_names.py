"""Checks that names are valid file names, and name different files, on every operating system."""

from __future__ import annotations

import re
import unicodedata

_RESERVED = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?", re.IGNORECASE | re.DOTALL)
_FORBIDDEN = re.compile(r'^\.|[/\\:*?"<>|]')


def name_problem(name: str) -> str | None:
    """Return the reason why a name is not valid as a file name on every operating system; `None` if it is valid."""
    if not name.strip() or not name.isprintable() or _FORBIDDEN.search(name):
        return 'a file name must not be blank, begin with a dot, or have / \\ : * ? " < > | or invisible characters'
    if _RESERVED.fullmatch(name):
        return "Windows reserves this name"
    if name.endswith((" ", ".")):
        return "Windows drops a dot or a blank at the end of a name"
    return None


def name_key(name: str) -> str:
    """Return a key that is equal for names of the same file on systems that ignore letter case (Windows, macOS)."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
