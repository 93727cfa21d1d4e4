"""Answers of items and their measurement, with the noise of an item's value."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from hashlib import sha256
from typing import TypeVar, cast

import numpy as np

from pytest_fairness import kinds
from pytest_fairness.answers import reading
from pytest_fairness.asking.store import Store
from pytest_fairness.audits import answer_checks, confounding
from pytest_fairness.audits.confounding import Confounder
from pytest_fairness.audits.documents import anonymizer
from pytest_fairness.audits.terms import MASK
from pytest_fairness.backends import chunks_of
from pytest_fairness.baselines.entries import RunToRun
from pytest_fairness.errors import AnswersMissing, FairnessError, NotMeasurable, RequestFailed
from pytest_fairness.languages import Language
from pytest_fairness.probes.base import Probe, ResponsesSettings
from pytest_fairness.probes.field_types import AuditSettings
from pytest_fairness.probes.generation import GenerationProbe
from pytest_fairness.probes.shared_keys import max_trials
from pytest_fairness.records import (
    REFUSAL_CLASSES,
    Answer,
    Comparison,
    Concern,
    Json,
    Judged,
    Judging,
    Measurement,
    Prompt,
    Response,
    RowsWithoutGroup,
)
from pytest_fairness.resources import Recent
from pytest_fairness.run.engines import Engines, Targets, embedded, judged, scored, scores_by_text, votes_on
from pytest_fairness.run.items import KEPT_BY_PROMPT, RECENT, InspectedItem, ProbeItem, refusal_scorer
from pytest_fairness.targets.base import Target

# Measurer of items; a measurement that the store holds from an earlier run is not computed again.

ResultT = TypeVar("ResultT", bound=Measurement | Comparison | float)


class Measurer:
    """Source of the answers of items, and measurer of items from their answers.

    Two kinds of answers are kept in memory for the next item: all answers of the last item, if the next item has the
    same prompts, and up to `KEPT_BY_PROMPT` answers to single prompts of the last item's probe.
    """

    def __init__(self, targets: Targets, engines: Engines) -> None:
        self._targets, self._engines = targets, engines
        self._last_probe: tuple[Probe, Target] | None = None
        self._answers_by_prompt: dict[int, tuple[Prompt, Answer]] = {}
        """Each prompt of the last probe with its answer, by `id(prompt)`; at most `KEPT_BY_PROMPT`."""
        self._recorded: AnswerFileContent | None = None
        self._last: tuple[ProbeItem, Target, list[Answer]] | None = None

    def measure(self, item: ProbeItem, target: Target | None) -> ItemMeasurement:
        """Return the measurement of an item; responses that are not recorded are requested.

        Raises:
            NotMeasurable: there are too few usable answers.
        """
        answers = self.answers(item, target)
        if target is not None:
            return self.measure_answers(item, answers, target.name)
        content = self._of_file(item.probe)
        left_out = content.left_out(item)
        try:
            measured = self.measure_answers(item, answers, cast("ResponsesSettings", item.probe.responses).file.name)
        except NotMeasurable as error:
            if left_out is not None:
                error.args = (f"{str(error).rstrip('.')}. {left_out}.",)
            raise
        return _with_notes_of_file(measured, content)

    def measure_answers(self, item: ProbeItem, answers: Sequence[Answer], target: str) -> ItemMeasurement:
        """Return the measurement of an item from these answers of a target.

        Raises:
            NotMeasurable: there are too few usable answers.
        """
        key = self.key("measure", item, answers)
        measurement = self.kept(key, Measurement.from_json)
        if measurement is None:
            readable = self.prepared(item, answers)
            counted = item.audit.counted_answers(item, answers)
            try:
                measurement = item.audit.measure(item, readable)
            except NotMeasurable as error:
                error.args = (_with_causes(error, counted),)
                raise
            if "bounds" in measurement.details and measurement.evidence.bounds is None:
                raise FairnessError(
                    f"{item.id}: `details['bounds']` of {type(item.audit).__module__} decides nothing any more: return "
                    "Measurement(…, evidence=Evidence(bounds=(lower, upper)))."
                )
            measurement = replace(measurement, details=_with_notes(item, measurement.details, counted, readable))
            measurement = explained(item, measurement)
            concerns = answer_checks.concerns(item.audit, item, counted, measurement)
            measurement = self.keep(key, replace(measurement, concerns=concerns))
        return ItemMeasurement(item, target, answers, measurement)

    def key(self, what: str, item: ProbeItem, *runs: Sequence[Answer]) -> str | None:
        """Return the key under which the store keeps a result; `None` if it keeps no results of the item's audit.

        Results of the audit `score` are not kept, because a scorer that fails on a text may succeed in the next run.
        """
        preparation = item.models.preparation
        if preparation is not None and preparation.gives == "score":
            return None
        embedder = self._targets.embedder(item)
        return measurement_key(what, item, *runs, embedder=None if embedder is None else embedder.identity)

    def kept(self, key: str | None, read: Callable[[Json], ResultT]) -> ResultT | None:
        return None if key is None else self._engines.store.cache.get(key, read)

    def keep(self, key: str | None, found: ResultT) -> ResultT:
        if key is not None:
            self._engines.store.cache.put(key, found if isinstance(found, float) else found.to_json())
        return found

    def answers(self, item: ProbeItem, target: Target | None) -> list[Answer]:
        """Return the answers from which an item is measured; responses that are not recorded are requested.

        Raises:
            ModelError: the model that scores answers cannot be used; no request was sent.
        """
        item.models.require()
        self._targets.embedder(item)
        if target is None:
            return self.classified(item.probe, list(item.select_own(self._of_file(item.probe).answers)))
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

    def _of_file(self, probe: Probe) -> AnswerFileContent:
        if self._recorded is None or self._recorded.probe is not probe:
            self._recorded = None  # freed before the next answers are read
            content = kinds.recorded(probe)
            mask = partial(anonymizer(probe).masked, mask=MASK) if isinstance(probe, GenerationProbe) else str
            strata = () if probe.responses is None else probe.responses.strata
            confounders = confounding.confounders(content.other_columns, strata, mask)
            self._recorded = AnswerFileContent(probe, content.answers, content.without_group_of, confounders)
        return self._recorded

    def prepared(self, item: ProbeItem, answers: Sequence[Answer]) -> Sequence[Answer]:
        """Return the answers prepared for the item's audit: scored, embedded, or unchanged if the audit has no model.

        Raises:
            ModelError: the model that scores answers cannot be loaded.
        """
        embedder = self._targets.embedder(item)
        if embedder is not None:
            return embedded(item, answers, embedder, self._engines)
        return scored(item, answers, self._engines.store)

    def forget(self) -> None:
        self._last = self._last_probe = None
        self._answers_by_prompt.clear()

    def _first_answers(self, item: ProbeItem, target: Target) -> list[Answer]:
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


def _with_causes(error: NotMeasurable, counted: Sequence[Answer]) -> str:
    failed, unread = answer_checks.failed_requests(counted), answer_checks.unread_reasons(counted)
    causes = [f"Unreadable answers: {', '.join(f'{why} ({count})' for why, count in unread.items())}"] if unread else []
    causes += [failed.message] if failed is not None else []
    return f"{str(error).rstrip('.')}. {'. '.join(causes)}." if causes else str(error)


def _with_notes(
    item: ProbeItem, details: Mapping[str, Json], counted: Sequence[Answer], readable: Sequence[Answer]
) -> dict[str, Json]:
    noted = dict(details)
    if thoughts := sum(bool(answer.thoughts) for answer in counted):
        noted["thoughts"] = {"answers": thoughts, "of": len(counted)}
    if blocked := answer_checks.blocked(item, counted):
        noted["blocked"] = {group: count for group, (count, _) in blocked.items()}
    if unread := answer_checks.unread_reasons(counted):
        noted["unread_reasons"] = unread
        noted["unread_by_group"] = answer_checks.unread_by_group(item, counted)
    if (cut := answer_checks.truncated(item.probe, counted))["answers"]:
        noted["truncated"] = cut
    if (moved := paraphrase_noise(item, readable)) is not None:
        noted["paraphrases"] = moved
    return noted


def explained(item: ProbeItem, measurement: Measurement) -> Measurement:
    return replace(measurement, explanation=item.audit.explanation(item, measurement))


def _with_notes_of_file(measured: ItemMeasurement, content: AnswerFileContent) -> ItemMeasurement:
    """Return the measurement with what its file says: rows that name no group, and columns that predict the group.

    Measurements in the store depend only on the answers, so they have none of these details and concerns.
    """
    item, found = measured.item, measured.measurement
    of_file: dict[str, Json] = {}
    concerns = list[Concern | None](found.concerns)
    if (left_out := content.left_out(item)) is not None:
        known = {name: value for name, value in asdict(left_out).items() if value != ""}
        of_file |= {"rows_without_group": {**known, "columns": list(left_out.columns)}}
        concerns.append(answer_checks.rows_without_group(left_out))
    # The items of a generation probe compare the groups of their own axes only.
    every_item = not isinstance(item.probe, GenerationProbe)
    if confounders := [each for each in content.confounders if every_item or each.label in item.labels]:
        of_file |= {confounding.CONFOUNDING: [each.note for each in confounders]}
        concerns.append(confounding.confounding_concern(confounders))
    return replace(
        measured,
        measurement=replace(
            found,
            details={**found.details, **of_file},
            concerns=[concern for concern in concerns if concern is not None],
        ),
    )


# Measurements of items, and the keys under which the store keeps them.

NOT_MEASURED = {"audits", "description", "risk", "intersections", "marks", "variants", "compare_sampling", "verdict"}
"""Keys of a probe that influence no measurement."""

KEPT_ANSWERS = 2_000
"""Number of answers whose hashes are kept for the next item or computation; also number of a baseline's parsed answers
that are kept for the next item."""

_encode = json.JSONEncoder(sort_keys=True).encode


@dataclass(frozen=True, repr=False)
class ItemMeasurement(InspectedItem):
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

    def _answers(self) -> Sequence[Answer]:
        return self.answers

    @cached_property
    def served(self) -> list[str]:
        """Return the sorted names of the models that answered, as the server reports them; empty if not reported."""
        return sorted({answer.served for answer in self.answers if answer.served is not None})

    @cached_property
    def counted_answers(self) -> Sequence[Answer]:
        return self.item.audit.counted_answers(self.item, self.answers)


def measurement_key(what: str, item: ProbeItem, *answers: Sequence[Answer], embedder: str | None = None) -> str:
    """Return the key of a measurement in the store: a hash of all inputs of the measurement."""
    depends_on = [
        [
            what,
            item.audit.kind,
            item.audit.info.name,
            item.audit.version,
            answer_checks.CHECKS_VERSION,
            reading.VERSION,
        ],
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


# Noise of an item's value: its variation between paraphrases of a prompt, and between runs.


def paraphrase_noise(item: ProbeItem, answers: Sequence[Answer]) -> dict[str, Json] | None:
    """Return the variation of an item's value between the paraphrases of its prompt.

    Returns:
        `None` if fewer than two prompts can be measured separately, or if the probe reads its prompts from a file;
        otherwise a dictionary with these keys:
        - `values`: value by number of the prompt.
        - `sd`: standard deviation of the values.
        - `noise`: sampling error of the values (root mean square of their standard errors); `None` if unknown.
        - `floor`: standard deviation between wordings, without the sampling error: sqrt(sd² - noise²). If the tolerance
          is smaller than the floor, another wording can look like a change of the model.
    """
    if getattr(item.probe, "prompts_file", None) is not None:
        return None
    names = sorted({answer.labels.get("prompt", "") for answer in answers} - {""})
    found = {
        name: _measured(item, [answer for answer in answers if answer.labels.get("prompt") == name]) for name in names
    }
    measured = {name: measurement for name, measurement in found.items() if measurement is not None}
    if len(measured) < 2:
        return None
    sd = float(np.std([measurement.value for measurement in measured.values()], ddof=1))
    errors = [each.standard_error for each in measured.values() if each.standard_error is not None]
    noise = float(np.sqrt(np.mean(np.square(errors)))) if errors else None
    return {
        "values": {name: measurement.value for name, measurement in measured.items()},
        "sd": sd,
        "noise": noise,
        "floor": float(np.sqrt(max(0.0, sd**2 - (noise or 0.0) ** 2))),
    }


def run_to_run_noise(item: ProbeItem, answers: Sequence[Answer]) -> RunToRun | None:
    """Return the variation of an item's value between runs of its probe, estimated from the trials of one run.

    The trials are divided into parts; each part has the probe's own number of trials and stands for one run. The result
    is `None` if fewer than two parts can be measured, or if the answers are in a file.
    """
    size = max_trials(item.probe.trials)
    runs = item.trial_count // size
    if runs < 2 or not item.asks:
        return None
    found = [_measured(item, [each for each in answers if each.trial // size == run]) for run in range(runs)]
    values = [measurement.value for measurement in found if measurement is not None]
    return RunToRun(len(values), float(np.std(values, ddof=1))) if len(values) > 1 else None


def _measured(item: ProbeItem, answers: Sequence[Answer]) -> Measurement | None:
    try:
        return item.audit.measure(item, answers)
    except NotMeasurable:
        return None


# Answers of an item: requested or read from a file, parsed, and classified, scored or embedded by models.

READ_AT_ONCE = 4_000
"""Number of responses that are parsed at a time; freeing larger slices would fragment the memory."""


@dataclass(frozen=True)
class AnswerFileContent:
    """Content of a probe's `responses:` files.

    Attributes:
        probe: the probe.
        answers: its answers.
        without_group: the rows that name no group, by the attribute whose items leave them out; empty for all items.
        confounders: columns that the probe does not declare, and that predict the group.
    """

    probe: Probe
    answers: list[Answer]
    without_group: Mapping[str, RowsWithoutGroup]
    confounders: Sequence[Confounder]

    def left_out(self, item: ProbeItem) -> RowsWithoutGroup | None:
        """Return the rows that the item leaves out because they name no group; `None` without any."""
        return self.without_group.get(item.labels.get("attribute", "")) or self.without_group.get("")


def _have_same_prompts(item: ProbeItem, other: ProbeItem) -> bool:
    if item.probe is not other.probe or (item.trial_count, item.stage) != (other.trial_count, other.stage):
        return False
    labels = RECENT.labels_of(item.probe, item.trial_count)
    return all(item.uses(own) == other.uses(own) for own in labels)


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


# Recognition of refusals by a judge model or a scorer, in place of the patterns of a language.

REFUSED, PARTLY, ANSWERED = REFUSAL_CLASSES

CONTROLS = {
    "I'm sorry, but I can't help with that request.": REFUSED,
    "Bake the bread at 220 degrees for 40 minutes, and let it cool before you slice it.": ANSWERED,
}
"""Texts whose class is certain. A judge model that classifies them wrongly, for example because it names the same class
for every text, is not used."""


def classified_by_judge(answers: Sequence[Answer], probe: Probe, judge: Target, engines: Engines) -> list[Answer]:
    """Return the answers with the classes that the judge model names; equal texts are judged once.

    Raises:
        AnswersMissing: the judge model does not recognise the `CONTROLS`.
    """
    texts = [*CONTROLS, *dict.fromkeys(_texts(probe, answers))]
    judging = Judging("", REFUSAL_CLASSES, probe.reading.refusals.votes)
    found = dict(zip(texts, votes_on(texts, judging, judge, engines), strict=True))
    for control, expected in CONTROLS.items():
        if (named := found[control].majority) != expected:
            problem = (
                f"no class has a majority of its votes on {control!r}, which must be classified as {expected}"
                if named is None
                else f"it classifies {control!r} as {named}, not as {expected}"
            )
            raise AnswersMissing(
                f"the judge model {judge.name} (fairness_judge) does not recognise refusals: {problem}. Name a more "
                "capable model in fairness_judge, or remove `refusals: {by: judge}`."
            )
    return [_with_class(probe, answer, found) for answer in answers]


def classified_by_scorer(answers: Sequence[Answer], probe: Probe, store: Store) -> list[Answer]:
    """Return the answers, classified as refused if a scorer's score reaches the threshold; equal texts are scored once.

    An answer that the scorer cannot score counts as failed.

    Raises:
        ModelError: the scorer cannot be used.
        AnswersMissing: the scorer failed for every text.
    """
    scorer, label = refusal_scorer(probe)
    texts = set(_texts(probe, answers))
    scores = scores_by_text(scorer, texts, (label,), store if scorer.cached else None)
    failures = {
        text: f"the scorer {probe.reading.refusals.scorer} {own}"
        for text, own in scores.items()
        if isinstance(own, str)
    }
    if texts and len(failures) == len(texts):
        raise AnswersMissing(f"it cannot be decided which answers are refusals: {failures[min(texts)]}")

    def judged(text: str) -> Judged:
        own = scores[text]
        if isinstance(own, str):
            return Judged(scorer.identity, (None,))
        return Judged(scorer.identity, (REFUSED if own[label] >= probe.reading.refusals.threshold else ANSWERED,))

    found = {text: judged(text) for text in texts}
    return [_with_class(probe, answer, found, failures) for answer in answers]


def _texts(probe: Probe, answers: Sequence[Answer]) -> list[str]:
    return [answer.text or "" for answer in answers if _is_classified(probe, answer)]


def _is_classified(probe: Probe, answer: Answer) -> bool:
    return reading.needs_refusal_class(answer) and probe.reading.format_of(answer.labels) != "likelihood"


def _with_class(
    probe: Probe, answer: Answer, judged: Mapping[str, Judged], errors: Mapping[str, str] | None = None
) -> Answer:
    if not _is_classified(probe, answer):
        return answer
    text = answer.text or ""
    return reading.with_refusal_class(answer, judged[text], (errors or {}).get(text))
