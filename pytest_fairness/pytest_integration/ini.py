"""Values of the ini file, and the file and line of each value."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

import pytest

from pytest_fairness.options import OPTIONS, PREFIX, Option
from pytest_fairness.probes.diagnostics import nearest
from pytest_fairness.pytest_integration.relative_paths import relative_path

ENVIRONMENT_PREFIX = "PYTEST_FAIRNESS_"
ENVIRONMENT: list[str] = [
    name for option in OPTIONS if (name := option.environment) and name.startswith(ENVIRONMENT_PREFIX)
]
"""Environment variables that the plugin reads and whose names begin with `ENVIRONMENT_PREFIX`."""
INI_NAMES = [option.name for option in OPTIONS if option.in_ini]


def ini(config: pytest.Config, option: Option) -> Any:
    """Return the ini file's value of an option, in the option's ini type; `None` if it is not set.

    Raises:
        pytest.UsageError: the value does not have this type.
    """
    try:
        return config.getini(option.name)
    except (TypeError, ValueError, pytest.UsageError) as error:
        raise pytest.UsageError(f"{place(config, option.name)} must be {option.type.takes}.") from error


def registered_marks(config: pytest.Config) -> list[str]:
    """Return the markers that the ini file registers; markers of pytest and its plugins are left out."""
    # `getini` would also return the markers of plugins. The attribute with the raw values was renamed in pytest 9.
    raw = config._inicfg if hasattr(config, "_inicfg") else config.inicfg
    written: Any = getattr(raw.get("markers"), "value", raw.get("markers")) or ()
    lines = written.splitlines() if isinstance(written, str) else written
    return [match[0].strip() for line in lines if (match := re.match(r"\s*\w+", str(line)))]


def place(config: pytest.Config, name: str) -> str:
    """Return where an ini value is set, for messages: `pytest.ini:4: fairness_timeout` or `-o fairness_timeout`.

    The result is only the name if the value is set in neither of these places.
    """
    for setting in config.getoption("override_ini", None) or ():
        if setting.partition("=")[0].strip() == name:
            return f"-o {name}"
    if config.inipath is None:
        return name
    lines = config.inipath.read_text("utf-8", errors="replace").splitlines()
    for number, line in enumerate(lines, 1):
        if re.match(rf"""\s*["']?{name}["']?\s*[=:]""", line):
            return f"{relative_path(config.inipath, config.invocation_params.dir)}:{number}: {name}"
    return name


def require_known_names(config: pytest.Config) -> None:
    """Raise `pytest.UsageError` for unknown ini names and environment variables with the plugin's prefix.

    Otherwise a misspelt name would silently leave a setting, such as the target, at its default. Names that a conftest
    declares are accepted.
    """
    overridden = (setting.partition("=")[0].strip() for setting in config.getoption("override_ini", None) or ())
    # The public attribute `inicfg` gives a warning from pytest 9.1 on. No other attribute has undeclared names.
    written = getattr(config, "_inicfg", None)
    names = dict.fromkeys([*(config.inicfg if written is None else written), *overridden])
    errors = [
        f"{place(config, name)}: there is no such setting{_suggestion(name, PREFIX, INI_NAMES)}"
        for name in names
        if name.casefold().startswith(PREFIX) and name not in INI_NAMES and not _is_declared(config, name)
    ]
    for name in sorted(os.environ):
        if name.startswith(ENVIRONMENT_PREFIX) and name not in ENVIRONMENT:
            setting = name.removeprefix("PYTEST_").casefold()
            hint = f"; set {setting} in the ini file instead" if setting in INI_NAMES else ""
            hint = hint or _suggestion(name, ENVIRONMENT_PREFIX, ENVIRONMENT)
            errors.append(f"{name}: pytest-fairness reads no environment variable of this name{hint}")
    if errors:
        raise pytest.UsageError("\n".join(errors))


def _suggestion(name: str, prefix: str, known: Sequence[str]) -> str:
    """Return a hint for the message: the most similar known name, or all known names."""
    # Names are compared without their common prefix.
    near = nearest(name[len(prefix) :], [known_name.removeprefix(prefix) for known_name in known])
    return f": did you mean {prefix + near!r}?" if near else f"; the valid names are {', '.join(known)}"


def _is_declared(config: pytest.Config, name: str) -> bool:
    try:
        config.getini(name)
    except ValueError:
        return False
    return True
