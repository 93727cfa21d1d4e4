"""The language of measured texts, in the details of a measurement; English is not named."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_fairness.languages.language import ENGLISH, Language, language
from pytest_fairness.probes.base import Probe
from pytest_fairness.records import Json


def language_details(probe: Probe) -> dict[str, Json]:
    """Return the detail `languages`: the codes of the probe's languages; empty if the only language is English."""
    return {} if probe.language.codes == ENGLISH.codes else {"languages": list(probe.language.codes)}


def language_of(details: Mapping[str, Json]) -> Language:
    """Return the language of a measurement's texts; words that the probe adds to the language are not included."""
    return language(*details.get("languages", ENGLISH.codes))
