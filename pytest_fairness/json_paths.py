"""JSONPaths, which select parts of JSON documents (RFC 9535)."""

from __future__ import annotations

from functools import lru_cache

from pytest_fairness.records.plain_json import Json


class JsonPath:
    """Compiled JSONPath.

    Args:
        text: the path, such as `$.choices[0].message.content`.

    Attributes:
        single: whether the path can match only one value: it has no wildcard, slice, filter or `..`.

    Raises:
        ValueError: the text is not one JSONPath; the message says why, without the path.
    """

    def __init__(self, text: str) -> None:
        import jsonpath  # the import takes 0.1 s

        if not text.startswith("$"):
            raise ValueError("it does not begin with $")
        try:
            path = jsonpath.compile(text)
        except jsonpath.JSONPathError as error:
            raise ValueError(str(error).splitlines()[0]) from error
        if not isinstance(path, jsonpath.JSONPath):
            raise ValueError("it contains several JSONPaths; write only one")  # noqa: TRY004 - the text is wrong
        self._path, self._errors = path, (jsonpath.JSONPathError, RecursionError)
        self.single = path.singular_query()

    def find(self, document: Json) -> list[Json]:
        """Return the values that the path matches; an empty list if it matches none.

        Raises:
            ValueError: the document is nested too deeply.
        """
        try:
            return list(self._path.findall(document))
        except self._errors as error:
            raise ValueError("nested too deeply") from error


compiled = lru_cache(JsonPath)
"""Function that returns a compiled JSONPath; equal paths are compiled once."""
