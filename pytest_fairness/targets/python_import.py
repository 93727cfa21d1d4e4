"""Import of the user's Python callables, which options name as `package.module:callable`."""

from __future__ import annotations

import os
import sys
import sysconfig
import traceback
from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

from pytest_fairness.errors import FairnessError
from pytest_fairness.targets.one_line import one_line

_PACKAGE = f"{Path(__file__).parents[1]}{os.sep}"
"""Folder of this package."""
INSTALLED = tuple(f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "purelib", "platlib"))
"""Folders of Python's own modules and of installed packages, which are not the user's code."""


def is_callable_name(module: str, attribute: str) -> bool:
    """Return whether both parts of `package.module:callable` consist of identifiers, separated by dots."""
    return all(name.isidentifier() for name in (*module.split("."), *attribute.split(".")))


def imported(module: str, attribute: str, root: str, *, name: str, option: str, error: type[FairnessError]) -> Any:
    """Import a module of pytest's rootdir or an installed module, and return one of its attributes.

    The rootdir is added to `sys.path`.

    Args:
        module: name `package.module`.
        attribute: name of the object in the module; dots separate attributes of classes and objects.
        root: pytest's rootdir.
        name: name of the object for messages: `python:package.module:callable`.
        option: option that names the object, for messages.
        error: class of the errors that are raised.

    Raises:
        FairnessError: the module cannot be imported, or has no such attribute; an instance of `error`.
    """
    if root not in sys.path:
        sys.path.insert(0, root)
    try:
        found: Any = import_module(module)
    except ModuleNotFoundError as cause:
        missing = cause.name or str(cause)
        if module == missing or module.startswith(f"{missing}."):
            meant = _hint(missing, (path.stem for path in Path(root).iterdir()))
            raise error(
                f"{name}: there is no module {missing!r} in {root} or among the installed packages{meant}. Check "
                f"{option}."
            ) from cause
        raise error(f"{name}: importing {module} needs {missing!r}, which is not installed. Install it.") from cause
    except Exception as cause:
        raise error(
            f"{name}: importing {module} raised {type(cause).__name__}{raised_at(cause)}: {one_line(cause)}"
        ) from cause
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise error(f"{name}: {module} has no {attribute!r}{_hint(part, dir(found))}. Check {option}.")
        found = getattr(found, part)
    return found


def _hint(name: str, names: Iterable[str]) -> str:
    near = get_close_matches(name, names, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def raised_at(error: BaseException) -> str:
    """Return the place in the user's code at which an exception was raised: ` at checks.py:12, in answer`.

    If the traceback does not contain the user's code, return the last place in an installed package; if it contains
    neither, return an empty text.
    """
    called = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    called = [(code, line) for code, line in called if not code.co_filename.startswith((_PACKAGE, "<frozen"))]
    if not called:
        return ""
    own = [(code, line) for code, line in called if not code.co_filename.startswith(INSTALLED)]
    code, line = (own or called)[-1]
    return f" at {relative_path(code.co_filename)}:{line}, in {code.co_name}"


def relative_path(file: str) -> str:
    """Return a file's path, relative to the working directory if the file is below it."""
    path, here = Path(file), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else file
