"""Probes whose sentences, entities or relevant items stand in files that are made when they are needed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from pytest_fairness import kinds, probes
from pytest_fairness.probes import Probe


def probe(text: str, name: str, files: Mapping[str, str], *held: str) -> Probe:
    """A probe that is read together with its files.

    Args:
        text: the probe.
        name: its name.
        files: names and contents of the files that it names.
        held: the probe's attributes that keep their content, as the files are gone afterwards.
    """
    with TemporaryDirectory() as folder:
        for file, content in files.items():
            Path(folder, file).write_text(content, "utf-8")
        found = probes.parse(text.encode(), Path(folder, f"{name}.yaml"), kinds.schemas())
        for attribute in held:
            getattr(found, attribute)
    return found
