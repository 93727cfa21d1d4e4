"""The key `anonymize` of a generation probe: terms and names that are removed from answers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_serializer
from pydantic_core import PydanticCustomError

from pytest_fairness.probes.audit_settings import ProbeModel
from pytest_fairness.probes.field_types import Line, Text
from pytest_fairness.probes.generation import first_names
from pytest_fairness.records import Json

Terms = Annotated[tuple[Text, ...], Field(min_length=1)]


def _needs_package(names_given: bool) -> bool:
    if not first_names.available():
        raise PydanticCustomError(
            "names", 'the list of first names needs the package faker: pip install "pytest-fairness[names]"'
        )
    return names_given


def _is_name(name: str) -> str:
    if not first_names.name_forms([name]):
        raise PydanticCustomError("names", "must be a name with at least two letters")
    return name


class Anonymize(ProbeModel):
    """Terms and names that are removed from answers, in addition to built-in identity terms and the axes' values."""

    terms: Terms = Field(default=(), description="Terms that are removed from the answers.")
    names: (
        Annotated[tuple[Annotated[Line, AfterValidator(_is_name)], ...], Field(min_length=1)]
        | Annotated[Literal[True], AfterValidator(_needs_package)]
        | None
    ) = Field(
        default=None,
        description="First names that are removed if they have a capital letter: true for a packaged list, or your "
        "own list.",
    )

    @property
    def first_names(self) -> frozenset[str]:
        """First names that are removed, in the form that `first_names.name_forms` returns."""
        return frozenset(first_names.packaged()) if self.names is True else first_names.name_forms(self.names or ())

    @field_serializer("names")
    def _digest_of_list(self, given: tuple[str, ...] | bool | None) -> Json:
        """Serialize `true` as the digest of the packaged list, because measurements depend on the list's content."""
        return first_names.digest() if given is True else given


RemovedTerms = Terms | Literal[False] | Anonymize
"""Type of the key `anonymize`: terms, `false` to remove nothing, or terms and names."""


def terms_of(given: RemovedTerms) -> tuple[str, ...] | None:
    """Return the terms that are removed in addition to the built-in terms; `None` if no terms are removed."""
    if given is False:
        return None
    return given.terms if isinstance(given, Anonymize) else given


def removal_fingerprint(given: RemovedTerms) -> Json:
    """Return the removed terms and names for the fingerprint, sorted; `False` if nothing is removed.

    The packaged list of names is represented by its digest.
    """
    declared = terms_of(given)
    removed = False if declared is None else sorted({*declared})
    if not isinstance(given, Anonymize) or given.names is None:
        return removed
    names = first_names.digest() if given.names is True else sorted(first_names.name_forms(given.names))
    return {"terms": removed, "names": names}
