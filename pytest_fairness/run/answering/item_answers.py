"""Answers of an item: requested or read from a file, parsed, and classified, scored or embedded by models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

from pytest_fairness import kinds
from pytest_fairness.answers import reading
from pytest_fairness.audits.anonymizer import MASK
from pytest_fairness.audits.answer_checks import confounding
from pytest_fairness.audits.answer_checks.confounding import Confounder
from pytest_fairness.audits.text.documents import anonymizer
from pytest_fairness.chunks import chunks_of
from pytest_fairness.errors import AnswersMissing, FairnessError, RequestFailed
from pytest_fairness.languages.language import Language
from pytest_fairness.probes.base import Probe
from pytest_fairness.probes.generation.model import GenerationProbe
from pytest_fairness.records import Answer, Prompt, Response, RowsWithoutGroup
from pytest_fairness.run.answering.embedding import embedded
from pytest_fairness.run.answering.engines import Engines
from pytest_fairness.run.answering.judging import judged
from pytest_fairness.run.answering.open_targets import OpenTargets
from pytest_fairness.run.answering.refusal_classes import classified_by_judge, classified_by_scorer
from pytest_fairness.run.answering.scoring import scored
from pytest_fairness.run.items.probe_items import KEPT_BY_PROMPT, RECENT, ProbeItem
from pytest_fairness.targets.base import Target

READ_AT_ONCE = 4_000
"""Number of responses that are parsed at a time; freeing larger slices would fragment the memory."""


@dataclass(frozen=True)
class AnswerFileContent:
    """Content of a probe's `responses:` files.

    Attributes:
        probe: the probe.
        answers: its answers.
        without_group: the rows that name no group of the probe; `None` without such rows.
        confounders: columns that the probe does not declare, and that predict the group.
    """

    probe: Probe
    answers: list[Answer]
    without_group: RowsWithoutGroup | None
    confounders: Sequence[Confounder]


class ItemAnswers:
    """Source of the answers of a run's items.

    Two kinds of answers are kept in memory for the next item: all answers of the last item, if the next item has the
    same prompts, and up to `KEPT_BY_PROMPT` answers to single prompts of the last item's probe.
    """

    def __init__(self, targets: OpenTargets, engines: Engines) -> None:
        self._targets, self._engines = targets, engines
        self._last_probe: tuple[Probe, Target] | None = None
        self._answers_by_prompt: dict[int, tuple[Prompt, Answer]] = {}
        """Each prompt of the last probe with its answer, by `id(prompt)`; at most `KEPT_BY_PROMPT`."""
        self._recorded: AnswerFileContent | None = None
        self._last: tuple[ProbeItem, Target, list[Answer]] | None = None

    def of_item(self, item: ProbeItem, target: Target | None) -> list[Answer]:
        """Return the answers from which an item is measured; responses that are not recorded are requested.

        Args:
            target: the system under test; `None` if the answers are in the probe's `responses:` file.

        Raises:
            ModelError: the model that scores answers cannot be used; no request was sent.
            TargetError: the embedding model does not exist; no request was sent.
            FairnessError: no answer is available, because no response is recorded for a replay, the run gave up on the
                target, or every request failed.
        """
        item.models.require()
        self._targets.embedder(item)
        if target is None:
            return self.classified(item.probe, list(item.select_own(self.of_file(item.probe).answers)))
        if self._last is not None:
            other, asked, answers = self._last
            if asked is target and _have_same_prompts(item, other):
                return answers
            # Freed before the next answers are read, so that only one item's answers are in memory.
            del answers
            self._last = None
        answers = with_follow_ups(self._first_answers(item, target), item.probe, target, self._engines)
        answers = self.classified(item.probe, item.probe.follow_ups.measured(answers))
        self._last = item, target, answers
        return answers

    def classified(self, probe: Probe, answers: list[Answer]) -> list[Answer]:
        """Return the answers with the choices or refusals that a judge model or scorer finds.

        If the probe uses neither a judge model nor a scorer, the answers are returned unchanged.

        Raises:
            ModelError: the scorer cannot be used.
            FairnessError: no classification is available.
        """
        if probe.reading.judge_votes:
            self._targets.require_judge(probe)
            judge = cast("Target", self._targets.judge)
            if probe.reading.judging is not None:
                return judged(answers, probe.reading.judging, probe.language, judge, self._engines)
            return classified_by_judge(answers, probe, judge, self._engines)
        if probe.reading.refusals.by == "scorer":
            return classified_by_scorer(answers, probe, self._engines.store)
        return answers

    def of_file(self, probe: Probe) -> AnswerFileContent:
        """Return the content of the probe's `responses:` files; the files of the last probe are not read again.

        Raises:
            ProbeError: a file is invalid, or lacks answers that the probe needs.
        """
        if self._recorded is None or self._recorded.probe is not probe:
            self._recorded = None  # freed before the next answers are read
            reader = kinds.reader(probe)
            answers = reader.answers()
            mask = partial(anonymizer(probe).masked, mask=MASK) if isinstance(probe, GenerationProbe) else str
            strata = () if probe.responses is None else probe.responses.strata
            confounders = confounding.confounders(reader.other_columns, strata, mask)
            self._recorded = AnswerFileContent(probe, answers, reader.without_group, confounders)
        return self._recorded

    def prepared(self, item: ProbeItem, answers: Sequence[Answer]) -> Sequence[Answer]:
        """Return the answers prepared for the item's audit: scored, embedded, or unchanged if the audit has no model.

        Raises:
            ModelError: the model that scores answers cannot be loaded.
            FairnessError: the embedding model does not exist, or gave no embedding for a text.
        """
        embedder = self._targets.embedder(item)
        if embedder is not None:
            return embedded(item, answers, embedder, self._engines)
        return scored(item, answers, self._engines.store)

    def forget(self) -> None:
        """Free the answers in memory."""
        self._last = self._last_probe = None
        self._answers_by_prompt.clear()

    def _first_answers(self, item: ProbeItem, target: Target) -> list[Answer]:
        """Return the answers to all prompts except follow-up prompts; responses are parsed in slices to save memory."""
        if self._last_probe is None or self._last_probe[0] is not item.probe or self._last_probe[1] is not target:
            self._last_probe = item.probe, target
            self._answers_by_prompt.clear()
        known = self._answers_by_prompt
        answers: list[Answer] = []
        failures: list[FairnessError] = []
        for prompts in chunks_of(item.prompts(), READ_AT_ONCE):
            if not answers and len(prompts) == READ_AT_ONCE:
                self._engines.plan(target, item.requests())
            unread = [prompt for prompt in prompts if id(prompt) not in known]
            responses = self._engines.ask(target, [prompt.request for prompt in unread]) if unread else []
            found = dict(zip(map(id, unread), read_all(unread, responses, item.probe.language), strict=True))
            answers += [found[id(prompt)] if id(prompt) in found else known[id(prompt)][1] for prompt in prompts]
            failures += [response for response in responses if isinstance(response, FairnessError)]
            for prompt in unread[: KEPT_BY_PROMPT - len(known)]:
                if found[id(prompt)].error is None:  # a failed request may be answered by another process
                    known[id(prompt)] = prompt, found[id(prompt)]
        if failures and len(failures) == len(answers):
            several = f"none of {len(failures)} requests got an answer; the first error"
            single = "the only request got no answer"
            raise AnswersMissing(f"{several if len(failures) > 1 else single}: {failures[0]}")
        return answers


def _have_same_prompts(item: ProbeItem, other: ProbeItem) -> bool:
    """Return whether two items have the same prompts, so that they can share answers."""
    if item.probe is not other.probe or (item.trial_count, item.stage) != (other.trial_count, other.stage):
        return False
    found = RECENT.labels_of(item.probe, item.trial_count)
    if found is None:
        found = [prompt.labels for prompt in RECENT.prompts_of(item.probe, item.trial_count)]
    return all(item.uses(labels) == other.uses(labels) for labels in found)


def with_follow_ups(answers: list[Answer], probe: Probe, target: Target, engines: Engines) -> list[Answer]:
    """Send the follow-up prompts that the answers require; add their answers to the list `answers`, and return it."""
    while more := probe.follow_ups.next_prompts(answers):
        answers += read_all(more, engines.ask(target, [prompt.request for prompt in more]), probe.language)
    return answers


def read_all(
    prompts: Sequence[Prompt], responses: Sequence[Response | FairnessError], language: Language
) -> list[Answer]:
    """Return the answers parsed from responses; the failure of a single request becomes a missing answer.

    Raises:
        FairnessError: an error concerns all requests, not only one.
    """
    for response in responses:
        if isinstance(response, FairnessError) and not isinstance(response, RequestFailed):
            raise response
    return [
        replace(reading.answer(prompt, None, language), error=str(response))
        if isinstance(response, FairnessError)
        else reading.answer(prompt, response, language)
        for prompt, response in zip(prompts, responses, strict=True)
    ]
