"""Results that earlier runs stored; an item with the same inputs has the same result, and is not measured again."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from pytest_fairness.errors import FairnessError
from pytest_fairness.probes import Probe
from pytest_fairness.recent import Recent
from pytest_fairness.records import Json, Prompt, VerdictName, json_text
from pytest_fairness.run.answering.engines import Engines
from pytest_fairness.run.comparing.baseline_comparer import BaselineComparer
from pytest_fairness.run.items.probe_items import RECENT, ProbeItem
from pytest_fairness.run.measuring import placebos
from pytest_fairness.run.measuring.measurements import plain_settings, probe_digest
from pytest_fairness.targets.base import Target

_PACKAGE = Path(__file__).parents[1]
_REUSED = frozenset({VerdictName.PASS, VerdictName.INCONCLUSIVE})
"""Verdicts of the results that are stored for later runs. The text of any other verdict may contain a command, which
depends on the command line."""


class EarlierResult(NamedTuple):
    """Result of an earlier run, as `ItemResult.to_plain` returns it, with its item and target."""

    plain: Json
    item: ProbeItem
    target: Target


class _ProbeResults(NamedTuple):
    """Results of a probe's items.

    Attributes:
        item: one of the items.
        target: the system under test.
        digest: hash of the inputs that all items share; `None` if results cannot be reused, for example because a
            response is not recorded.
        stored: results in the store, by the key of the result.
        new: results that are not stored yet.
    """

    item: ProbeItem
    target: Target
    digest: str | None
    stored: Mapping[str, Json]
    new: dict[str, Json]


class EarlierResults:
    """Results of items in the store, under a hash of all inputs that determine a result.

    The inputs are the code of the package, the probe and the files that it names, the settings of the item, the
    prompts, the recorded responses, and the files of the baseline. An item that also depends on something else, such as
    a scorer, a judge model or an audit of another package, is measured in every run.
    """

    def __init__(self, engines: Engines, baselines: BaselineComparer) -> None:
        self._engines, self._baselines = engines, baselines
        self._last: _ProbeResults | None = None
        self._missing: tuple[str, str] | None = None
        """Id in pytest and key of the item for which `find` last found no result."""

    def find(self, item: ProbeItem, target: Target, nodeid: str) -> EarlierResult | None:
        """Return the stored result of an item; `None` if no result is stored for the present inputs.

        Return `None` also if the item's results are never stored, because they depend on something else, such as a
        scorer.

        Args:
            target: the system under test.
            nodeid: the item's id in pytest.
        """
        self._missing = None
        if not _depends_on_known_inputs(item):
            return None
        known = self._of_probe(item, target)
        if known.digest is None:
            return None
        key = _key(item, target, nodeid, known.digest)
        if key in known.stored:
            return EarlierResult({**known.stored[key], "method": item.audit.info.to_json()}, item, target)
        self._missing = nodeid, key
        return None

    def keep(self, plain: Mapping[str, Json]) -> None:
        """Keep the result of the item for which `find` just returned `None`, until `store` is called.

        A result whose verdict is not in `_REUSED` is ignored.
        """
        missing, self._missing = self._missing, None
        if missing is not None and self._last is not None and plain["verdict"]["name"] in _REUSED:
            nodeid, key = missing
            if nodeid == plain["nodeid"]:
                # A copy, because the record may get the outcome of a mark `xfail`. The audit's description, which is a
                # third of a result, is not stored.
                self._last.new[key] = {name: value for name, value in plain.items() if name != "method"}

    def store(self) -> None:
        """Store the new results of the last probe's items, unless an input changed in the meantime."""
        last, self._last = self._last, None
        if last is None or not last.new:
            return
        with suppress(FairnessError):  # without stored results, the next run measures the items again
            # The digest does not show whether the other file of a shared baseline still exists.
            if not self._baselines.is_shared(last.item) and self._digest(last.item, last.target) == last.digest:
                self._engines.store.cache.put_all(last.new)

    def _of_probe(self, item: ProbeItem, target: Target) -> _ProbeResults:
        """Return the stored and new results of a probe; consecutive items of the probe share one read of the store."""
        last = self._last
        if last is None or last.target is not target or not _share_inputs(last.item, item):
            self.store()
            digest = self._digest(item, target)
            stored = {} if digest is None else self._engines.store.cache.get_all(digest)
            self._last = last = _ProbeResults(item, target, digest, stored, {})
        return last

    def _digest(self, item: ProbeItem, target: Target) -> str | None:
        """Return a hash of the inputs that all items of a probe share.

        Return `None` if a response is not recorded, the baseline cannot be read, or there are too many prompts.
        """
        prompts = RECENT.prompts_of(item.probe, item.trial_count)
        if not isinstance(prompts, list):  # too many to read them all before the measurement reads them
            return None
        responses = self._engines.engine(target).digest([prompt.request for prompt in prompts])
        if responses is None:
            return None
        with suppress(OSError):  # the comparison with the baseline reports the error
            baseline = self._baselines.digest(item)
            return _hash(code_digest(_PACKAGE), _probe(item.probe), [*map(_reading, prompts)], responses, baseline)
        return None


@cache
def code_digest(folder: Path) -> str:
    """Return a hash of all files of a package, and of Python's version."""
    digest = sha256(sys.version.encode())
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted({*folders} - {"__pycache__"})
        for name in sorted(files):
            path = Path(parent, name)
            digest.update(bytes(path) + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _share_inputs(item: ProbeItem, other: ProbeItem) -> bool:
    return item.probe is other.probe and item.trial_count == other.trial_count


def _depends_on_known_inputs(item: ProbeItem) -> bool:
    probe, reading = item.probe, item.probe.reading
    return (
        item.asks
        and type(item.audit).__module__.startswith(f"{_PACKAGE.name}.")
        and item.models.preparation is None
        and reading.judging is None
        and reading.refusals.by == "patterns"
        and not (probe.follow_ups.possible or probe.variants)
        and len(item.analyses) == 1
        and placebos.placebo_of(item) is None
    )


def _key(item: ProbeItem, target: Target, nodeid: str, shared: str) -> str:
    """Return the key of a result, which begins with the hash of the inputs that all items of the probe share."""
    settings = plain_settings(item.settings)
    return shared + _hash(target.name, nodeid, item.id, item.labels, item.seed, item.alpha, item.beta, settings)


def _digest_of_probe(probe: Probe) -> str:
    """Return a hash of the probe, including the keys that change results but no measurements."""
    return _hash(probe_digest(probe), probe.description, probe.compare_sampling)


_probe = Recent(_digest_of_probe, 8)


def _reading(prompt: Prompt) -> str:
    """Return, as text, all parts of a prompt that are not in its request; they determine how an answer is read."""
    return repr((dict(prompt.labels), prompt.trial, prompt.choices, prompt.number, prompt.selection))


def _hash(*parts: object) -> str:
    return sha256(json_text(parts).encode()).hexdigest()
