"""Objects behind the fixtures for Python tests: client, corpora of parallel texts, and verdicts on measurements."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness import kinds, probes
from pytest_fairness.audits import registry
from pytest_fairness.errors import FairnessError, ProbeError
from pytest_fairness.probes import Probe
from pytest_fairness.pytest_integration.items.asked_targets import name_asked
from pytest_fairness.pytest_integration.items.audit_service import AuditService
from pytest_fairness.records import Answer, Request, Response, Sampling, Verdict
from pytest_fairness.run import MAX_ALPHA, ItemMeasurement, ProbeItem, read_all

KIND = "generation"
"""Kind of probe that a corpus is made of."""


class Client:
    """Client of the target, with the same store, limits and retries as the probes."""

    def __init__(self, service: AuditService, request: pytest.FixtureRequest) -> None:
        self._service = service
        self._target = service.planner.target_for(request)

    def complete(self, prompt: str, system: str | None = None, trials: int = 1, **sampling: Any) -> list[Response]:
        """Send one prompt `trials` times, and return the responses.

        Args:
            prompt: the prompt.
            system: the system prompt, if any.
            trials: number of requests.
            **sampling: `temperature`, `top_p`, `max_tokens`, `seed`; a parameter that is not given is not sent.

        Raises:
            FairnessError: a request failed; the other responses are recorded.
        """
        drawn = Sampling(**sampling)
        requests = [Request(prompt, system, drawn, trial).with_own_seed() for trial in range(trials)]
        answered: list[Response] = []
        for response in self._service.planner.ask(self._target, requests):
            if isinstance(response, FairnessError):
                raise response
            answered.append(response)
        return answered


class CorpusGenerator:
    """Function that generates parallel texts: one prompt for every combination of the axes' values."""

    def __init__(self, service: AuditService, request: pytest.FixtureRequest) -> None:
        self._service = service
        self._target = service.planner.target_for(request)
        self._name = name_asked(request.node)

    def __call__(
        self,
        prompt: str | Sequence[str],
        *,
        axes: Mapping[str, Mapping[str, Any]],
        trials: int = 15,
        system: str | None = None,
        answer: Mapping[str, Any] | None = None,
        anonymize: Sequence[str] | Mapping[str, Any] | bool = (),
        **sampling: Any,
    ) -> Corpus:
        """Send the prompts, and return the answers as a corpus. All arguments mean the same as in a probe file.

        Args:
            prompt: one prompt or several paraphrases, with a placeholder for each axis: `Write a letter for {name}.`
            axes: name to `{"unmarked": value, "marked": [values]}`.
            trials: answers for each combination; `--fairness-trials` overrides it.
            system: the system prompt, if any.
            answer: how answers are read, such as `{"format": "json"}`; by default as text.
            anonymize: terms to remove besides the built-in ones, `{"names": True}` for first names as well, or `False`
                to remove none.
            **sampling: `temperature`, `top_p`, `max_tokens`, `seed`.

        Raises:
            ProbeError: an argument is wrong, or the arguments do not fit together.
            FairnessError: answers are missing for a reason that concerns all of them.
        """
        written = {
            "prompt": prompt if isinstance(prompt, str) else list(prompt),
            "axes": {name: {**axis, "marked": list(axis.get("marked", ()))} for name, axis in axes.items()},
            "trials": trials,
            "system": system,
            "answer": answer and dict(answer),
            "anonymize": _anonymize(anonymize),
            "sampling": sampling,
        }
        probe = _probe({name: value for name, value in written.items() if value not in (None, [], {})})
        prompts = list(probe.prompts(self._service.run.settings.trials))
        responses = self._service.planner.ask(self._target, [prompt.request for prompt in prompts])
        return Corpus(self._service, probe, self._target.name, self._name, read_all(prompts, responses))


@dataclass(frozen=True)
class Corpus:
    """Parallel texts of groups. Every audit of texts is a method: `corpus.jsd("name", "Kelly", **settings)`.

    Attributes:
        answers: the answers, read; `labels`, `trial`, `text`, `status` and `content`.
    """

    _service: AuditService
    _probe: Probe
    _target: str
    _name: str | None
    answers: Sequence[Answer]

    def __getattr__(self, audit: str) -> Callable[..., ItemMeasurement]:
        if audit not in registry.AUDITS[KIND]:
            raise AttributeError(f"A corpus has no audit {audit!r}. The audits are {', '.join(registry.AUDITS[KIND])}.")
        return partial(self._measure, audit)

    def _measure(self, name: str, axis: str, value: str, **settings: Any) -> ItemMeasurement:
        """Return the measurement of one audit that compares a marked value with the unmarked value of its axis.

        Raises:
            FairnessError: there is no such axis or value, or the audit has several items for it.
            NotMeasurable: too few usable answers.
        """
        audit = registry.get(KIND, name)
        items = audit.items(self._probe, registry.settings_model(KIND, name)(**settings))
        found = [item for item in items if item.labels.get(axis) == value]
        if len(found) > 1:
            raise FairnessError(f"corpus.{name}: {len(found)} items compare {value!r}. Name one lexicon in each call.")
        item = next(iter(found), None)
        if item is None:
            raise FairnessError(
                f"corpus.{name}: no item compares {axis} {value!r}. The items are {', '.join(i.id for i in items)}."
            )
        trials = self._service.run.settings.trials
        tested = replace(item, alpha=MAX_ALPHA, seed=item.id, target=self._name)
        probe_item = ProbeItem.made_of(tested, self._probe, audit, trials)
        answers = [answer for answer in self.answers if probe_item.uses(answer.labels)]
        return self._service.run.measurer.measure_answers(probe_item, answers, self._target)


class Check:
    """Function that judges measurements like the items of a probe, each against a baseline of its own."""

    def __init__(self, service: AuditService, request: pytest.FixtureRequest) -> None:
        self._service = service
        self._item = request.node

    def __call__(
        self, name: str, measurement: ItemMeasurement, limit: float | None = None, tolerance: float | None = None
    ) -> Verdict:
        """Return the verdict on a measurement; its baseline is an item of `baselines/<name>.json`.

        Args:
            name: name of the baseline; several measurements may share it.
            measurement: measurement of a corpus by an audit.
            limit: worst acceptable value; by default only the baseline counts.
            tolerance: worst acceptable change from the baseline; by default that of the audit.

        Raises:
            pytest.fail.Exception: the verdict fails the test.
            FairnessError: the baseline cannot be read, or a probe has this name.
        """
        if not isinstance(measurement, ItemMeasurement):
            raise TypeError(
                f"fairness_check takes a measurement of a corpus, such as corpus.jsd(...), not {measurement!r}."
            )
        item = measurement.item
        given = {"limit": limit, "tolerance": tolerance}
        stated = {name: value for name, value in given.items() if value is not None}
        settings = type(item.settings).model_validate({**item.settings.model_dump(), **stated})
        named = replace(item, settings=settings, probe=item.probe.model_copy(update={"name": name}))
        measured = replace(measurement, item=named)
        return self._service.check(self._item, measured).verdict


def _anonymize(given: Sequence[str] | Mapping[str, Any] | bool) -> Any:
    """Return the value of `anonymize` in a probe file; `None` for its default."""
    if given is True:
        return None
    return given if isinstance(given, bool | Mapping) else list(given)


def _probe(written: Mapping[str, Any]) -> Probe:
    """Return the arguments of a corpus as a probe, checked like a probe file."""
    audits: dict[str, dict[str, Any]] = {"jsd": {}}  # required by the schema; a corpus gets its audits later
    content = json.dumps({"kind": KIND, "name": "corpus", **written, "audits": audits}, ensure_ascii=False)
    try:
        return probes.parse(content.encode(), Path("corpus"), kinds.schemas())
    except ProbeError as error:
        # The positions are in generated JSON, which the user has not written.
        messages = re.sub(r"^corpus:\d+:\d+: ", "", str(error), flags=re.MULTILINE).splitlines()
        raise ProbeError(f"corpus_generator: {'; '.join(messages)}") from None
