"""Settings of the ini file, and where in it they stand, for whoever has to mend one."""

from __future__ import annotations

import os
import re
from typing import Any

import pytest


def ini(config: pytest.Config, name: str, *, takes: str = "text") -> Any:
    """What the ini file says, in the type that it was declared with.

    Args:
        config: pytest's.
        name: of the setting.
        takes: what it must be, for the message.

    Raises:
        pytest.UsageError: it is something else.
    """
    try:
        return config.getini(name)
    except (TypeError, ValueError, pytest.UsageError) as error:
        raise pytest.UsageError(f"{place(config, name)} must be {takes}.") from error


def registered_marks(config: pytest.Config) -> list[str]:
    """Return the marks that the ini file registers, without those of pytest and its plugins."""
    # `getini` gives the marks of all plugins too. pytest before 9 has the plain values, under another name.
    raw = config._inicfg if hasattr(config, "_inicfg") else config.inicfg
    written: Any = getattr(raw.get("markers"), "value", raw.get("markers")) or ()
    lines = written.splitlines() if isinstance(written, str) else written
    return [found[0].strip() for line in lines if (found := re.match(r"\s*\w+", str(line)))]


def place(config: pytest.Config, name: str) -> str:
    """`pytest.ini:4: fairness_timeout`; the bare name where it stands in no file."""
    for setting in config.getoption("override_ini", None) or ():
        if setting.partition("=")[0].strip() == name:
            return f"-o {name}"
    if config.inipath is None:
        return name
    lines = config.inipath.read_text("utf-8", errors="replace").splitlines()
    for number, line in enumerate(lines, 1):
        if re.match(rf"""\s*["']?{name}["']?\s*[=:]""", line):
            return f"{os.path.relpath(config.inipath, config.invocation_params.dir)}:{number}: {name}"
    return name
