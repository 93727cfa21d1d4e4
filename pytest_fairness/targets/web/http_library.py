"""HTTP library on which the installed `openai` client is built: httpx2 since version 3 of the client, httpx before."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx2 as httpx
else:
    httpx = import_module("httpx2" if int(version("openai").partition(".")[0]) >= 3 else "httpx")

__all__ = ["httpx"]
