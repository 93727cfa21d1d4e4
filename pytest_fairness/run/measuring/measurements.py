"""Measurements of items, and the keys under which the store keeps them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

from pytest_fairness.answers import reading
from pytest_fairness.audits.answer_checks import checks
from pytest_fairness.probes.audit_settings import AuditSettings
from pytest_fairness.probes.base import Probe
from pytest_fairness.recent import Recent
from pytest_fairness.records import Answer, Json, Measurement
from pytest_fairness.run.items.item_view import ItemView
from pytest_fairness.run.items.probe_items import ProbeItem

NOT_MEASURED = {"audits", "description", "intersections", "marks", "variants", "compare_sampling"}
"""Keys of a probe that influence no measurement."""

KEPT_ANSWERS = 2_000
"""Number of answers whose hashes are kept for the next item or computation; also number of a baseline's parsed answers
that are kept for the next item."""

_encode = json.JSONEncoder(sort_keys=True).encode


@dataclass(frozen=True, repr=False)
class ItemMeasurement(ItemView):
    """Measurement of one item, with its answers and the name of the target that gave them.

    A notebook shows the value and a chart. `to_pandas()` returns all numbers, `words()` returns a table of all words in
    the answers, and `plots` holds the charts.

    Attributes:
        item: the item with its probe and audit.
        target: name of the target.
        answers: the answers.
        measurement: value, interval, standard error, p-value, counts and details.
    """

    item: ProbeItem
    target: str
    answers: Sequence[Answer]
    measurement: Measurement

    def _measurement_or_error(self) -> Measurement:
        return self.measurement

    def _answers(self) -> Sequence[Answer]:
        return self.answers

    @cached_property
    def served(self) -> list[str]:
        """Return the sorted names of the models that answered, as the server reports them; empty if not reported."""
        return sorted({answer.served for answer in self.answers if answer.served is not None})

    @cached_property
    def counted_answers(self) -> Sequence[Answer]:
        """Return the answers that are counted, checked and shown; see `Audit.counted_answers`."""
        return self.item.audit.counted_answers(self.item, self.answers)


def measurement_key(what: str, item: ProbeItem, *answers: Sequence[Answer], embedder: str | None = None) -> str:
    """Return the key of a measurement in the store: a hash of all inputs of the measurement.

    Args:
        what: name of the computation.
        answers: answers of one run, or of the two runs that are compared.
        embedder: identity of the model that embeds the answers, if there is one.
    """
    depends_on = [
        [what, item.audit.kind, item.audit.info.name, item.audit.version, checks.VERSION, reading.VERSION],
        [item.id, item.alpha, item.total_alpha, item.seed],
        plain_settings(item.settings),
        probe_digest(item.probe),
        [[digest(run), _truncations_and_errors(run)] for run in answers],
        *item.models.fingerprint.values(),
        *([embedder] if embedder else []),
    ]
    return sha256(json.dumps(depends_on, sort_keys=True).encode()).hexdigest()


def digest(answers: Iterable[Answer]) -> str:
    """Return a hash of the answers that does not depend on their order."""
    # A sum does not depend on the order; sorting would need all lines in memory.
    return f"{sum(map(_answer_digest, answers)):x}"


def _digest_of_answer(answer: Answer) -> int:
    judged = (answer.judged.to_json(),) if answer.judged else ()
    line = _encode([dict(answer.labels), answer.trial, answer.status, answer.text, *judged])
    return int.from_bytes(sha256(line.encode()).digest(), "big")


def _digest_of_probe(probe: Probe) -> str:
    return sha256(_encode(probe.model_dump(mode="json", by_alias=True, exclude=NOT_MEASURED)).encode()).hexdigest()


def _settings_of(settings: AuditSettings) -> Json:
    return settings.model_dump(mode="json", exclude={"skip", "xfail"})


_answer_digest = Recent(_digest_of_answer, KEPT_ANSWERS)
probe_digest = Recent(_digest_of_probe, 8)
plain_settings = Recent(_settings_of, 8)


def _truncations_and_errors(answers: Sequence[Answer]) -> list[Json]:
    """Return the number of truncated answers, and the number of answers with each error message.

    Answer checks depend on these numbers.
    """
    errors = Counter(answer.error for answer in answers if answer.error is not None)
    return [sum(answer.truncated for answer in answers), sorted(errors.items())]
