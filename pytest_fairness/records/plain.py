"""Records as plain JSON: in the store, and between processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import cache, partial
from types import NoneType, UnionType
from typing import Any, Self, get_args, get_origin, get_type_hints

from pytest_fairness.records.requests import Json


class JsonRecord:
    """Base of records that are plain JSON in the store and between processes, with all records in their fields."""

    __slots__ = ()

    def to_json(self) -> dict[str, Json]:
        """Return the fields by name as plain JSON, from which `from_json` makes an equal record."""
        return {name: _plain(getattr(self, name)) for name in _readers(type(self))}  # type: ignore[arg-type]

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> Self:
        """Return the record from JSON data that `to_json` returned.

        Raises:
            LookupError, TypeError, ValueError: the data are not such JSON.
        """
        readers = _readers(cls)  # type: ignore[arg-type]  # classes are hashable
        return cls(**{name: value if (of := readers[name]) is None else of(value) for name, value in data.items()})


def _plain(value: Any) -> Json:
    """Return a value as plain JSON; what holds no records and tuples is not copied."""
    if type(value) in _UNCHANGED:
        return value
    if isinstance(value, JsonRecord):
        return JsonRecord.to_json(value)
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


_UNCHANGED = frozenset((str, int, float, bool, NoneType, dict))


Reader = Callable[[Json], Any]


@cache
def _readers(record: type) -> Mapping[str, Reader | None]:
    """Return the reader of each field of a record; `None` for a field whose JSON is its value."""
    return {name: _reader(hint) for name, hint in get_type_hints(record).items()}


def _reader(hint: Any) -> Reader | None:
    parts = [part for part in get_args(hint) if part is not NoneType]
    if isinstance(hint, UnionType):
        of = _reader(parts[0]) if len(parts) == 1 else None
        return of and partial(_optional, of)
    if get_origin(hint) in (Sequence, tuple):
        of = _reader(parts[0])
        return tuple if of is None else lambda values: tuple(map(of, values))
    if isinstance(hint, type) and issubclass(hint, JsonRecord):
        return hint.from_json
    if hint is float:
        return _number
    return hint if isinstance(hint, type) and issubclass(hint, StrEnum) else None


def _optional(of: Reader, value: Json) -> Any:
    return None if value is None else of(value)


def _number(value: Json) -> Json:
    return value + 0  # `TypeError` for what is no number
