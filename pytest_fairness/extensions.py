"""Extensions of other packages: audits, targets, scorers and report formats that are declared as entry points."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal, get_args

from pytest_fairness.errors import FairnessError

Group = Literal["audits", "targets", "scorers", "reports"]


def declared(group: Group, built_in: Collection[str] = ()) -> dict[str, EntryPoint]:
    """Return the entry points that installed packages declare in a group, by name; none is imported.

    Raises:
        FairnessError: a package declares a built-in name, or two packages declare one name for different objects.
    """
    entries = _entries(group)
    for name in entries.keys() & built_in:
        entry = entries[name]
        raise FairnessError(
            f"{_package(entry)} declares {name!r} in the entry points {entry.group}, but {name!r} is the name of a "
            "built-in extension. Rename the extension in that package, or uninstall the package."
        )
    return entries


@cache
def installed() -> list[EntryPoint]:
    """Return the entry points for pytest-fairness, found in the metadata of all installed packages."""
    everything = entry_points()
    return [entry for group in get_args(Group) for entry in everything.select(group=f"pytest_fairness.{group}")]


@cache
def _entries(group: Group) -> dict[str, EntryPoint]:
    entries: dict[str, EntryPoint] = {}
    found = [entry for entry in installed() if entry.group == f"pytest_fairness.{group}"]
    for entry in sorted(found, key=lambda entry: (entry.name, entry.value)):
        other = entries.setdefault(entry.name, entry)
        if other.value != entry.value:
            raise FairnessError(
                f"{_package(other)} and {_package(entry)} both declare {entry.name!r} in the entry points "
                f"pytest_fairness.{group}. Uninstall one of them."
            )
    return entries


def load(entry: EntryPoint) -> Any:
    """Import and return the object that an entry point names; raise `FairnessError` if the import fails."""
    try:
        return entry.load()
    except Exception as error:
        raise FairnessError(
            f"The entry point `{entry.name} = {entry.value}` ({entry.group}) of {_package(entry)} cannot be imported "
            f"({type(error).__name__}: {error}). Update or uninstall the package."
        ) from error


def _package(entry: EntryPoint) -> str:
    return f"the package {entry.dist.name}" if entry.dist else "a package"
