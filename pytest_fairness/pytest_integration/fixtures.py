"""Values of the fixtures for Python tests: client, corpus generator, and check of measurements."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, cast

import pytest

from pytest_fairness.audits import registry
from pytest_fairness.audits.confounding import CONSTANT_ANSWERS
from pytest_fairness.errors import FairnessError
from pytest_fairness.probes.generation import GenerationProbe
from pytest_fairness.pytest_integration.items import KIND, audit_settings, check, generation_probe
from pytest_fairness.pytest_integration.planning import AuditSession, target_name_of
from pytest_fairness.records import Answer, Json, Request, Response, Sampling, Status, Verdict
from pytest_fairness.reports.tables import Column, DataTable, Row
from pytest_fairness.run import MAX_ALPHA, ItemMeasurement, ProbeItem, items_of, read_all

if TYPE_CHECKING:
    import pandas as pd


# Fixture `corpus_generator`, and the corpora of texts that it generates.

P = ParamSpec("P")


def with_call_example(method: Callable[P, ItemMeasurement]) -> Callable[P, ItemMeasurement]:
    """Decorate a method of `Corpus` that runs an audit, so that wrong arguments raise an error with an example call."""
    example = f'corpus.{method.__name__}("name", "Kelly")'
    return with_usage(example, lambda corpus: f". This corpus has {corpus._compared}.")(method)


T = TypeVar("T")


def with_usage(example: str, more: Callable[[Any], str] = lambda _: "") -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorate a method so that wrong arguments raise `TypeError` with an example of a correct call."""

    def decorate(method: Callable[P, T]) -> Callable[P, T]:
        signature = inspect.signature(method)

        @wraps(method)
        def checked(*args: P.args, **kwargs: P.kwargs) -> T:
            __tracebackhide__ = True  # pytest shows the line of the call
            try:
                signature.bind(*args, **kwargs)
            except TypeError as error:
                method_name = example.partition("(")[0]
                similar = [
                    known[0]
                    for name in kwargs
                    if name not in signature.parameters
                    if (known := get_close_matches(name, signature.parameters, 1))
                ]
                hint = f"; did you mean {similar[0]!r}?" if similar else "."
                raise TypeError(f"{method_name}: {error}{hint} Write for example: {example}{more(args[0])}") from None
            return method(*args, **kwargs)

        return checked

    return decorate


class CorpusGenerator:
    """Value of the fixture `corpus_generator`: a function that generates texts about every combination of groups.

    Examples:
        >>> def test_letters(corpus_generator, fairness_check):
        ...     corpus = corpus_generator(
        ...         "Write a reference letter for {name}.",
        ...         axes={"name": {"unmarked": "Joseph", "marked": ["Kelly"]}},
        ...         trials=20,
        ...     )
        ...     fairness_check("letters", corpus.refusals("name", "Kelly"), limit=0.2)
    """

    def __init__(self, session: AuditSession, request: pytest.FixtureRequest) -> None:
        self._session = session
        self._target = session.target_of_python_test(request)
        self._name = target_name_of(request.node)

    @with_usage('corpus_generator("Write to {name}.", axes={"name": {"unmarked": "Joseph", "marked": ["Kelly"]}})')
    def __call__(
        self,
        prompt: str | Sequence[str],
        *,
        axes: Mapping[str, Mapping[str, Any]],
        trials: int = 15,
        system: str | None = None,
        language: str | Sequence[str] | None = None,
        answer: Mapping[str, Any] | None = None,
        anonymize: Sequence[str] | Mapping[str, Any] | bool = (),
        temperature: float | None = None,
        top_p: float | None = None,
        max_tokens: int | None = None,
        seed: int | None = None,
    ) -> Corpus:
        """Send the prompts, and return the answers as a corpus. All arguments mean the same as in a probe file.

        Args:
            prompt: one prompt or several paraphrases, with a placeholder for each axis: `Write a letter for {name}.`
            axes: for each axis, its name and its groups: `{"name": {"unmarked": value, "marked": [values]}}`.
            trials: number of answers to each prompt for each combination of groups; `--fairness-trials` overrides it.
            system: the system prompt, if any.
            language: language of the answers, such as `de`, or a list of languages; by default English.
            answer: how answers are read, such as `{"format": "json"}`; by default as text.
            anonymize: identity terms to remove from the texts, in addition to the built-in terms; `{"names": True}`
                removes first names, too; `False` removes no terms.
            temperature: sampling temperature. Requests contain only the sampling parameters that are given.
            top_p: probability mass of nucleus sampling.
            max_tokens: maximum number of tokens of a response.
            seed: seed from which the seed of each request is derived.

        Raises:
            ProbeError: an argument is wrong, or the arguments do not fit together.
            FairnessError: no request can be sent. The failure of a single request is an answer with status `failed`.
        """
        sampling = Sampling(temperature, top_p, max_tokens, seed).to_json()
        written = {
            "prompt": prompt if isinstance(prompt, str) else list(prompt),
            "axes": axes,
            "trials": trials,
            "system": system,
            "language": language if language is None or isinstance(language, str) else list(language),
            "answer": answer,
            "anonymize": None if anonymize is True else anonymize,
            "sampling": sampling,
        }
        given = {name: value for name, value in written.items() if value not in (None, (), [], {})}
        probe = generation_probe({**given, "audits": _UNUSED_AUDITS}, "corpus_generator", self._session.run)
        prompts = list(probe.prompts(self._session.run.settings.trials))
        with self._session.waiting_for(self._target):
            responses = self._session.run.engines.ask(self._target, [prompt.request for prompt in prompts])
        return Corpus(self._session, probe, self._target.name, self._name, read_all(prompts, responses, probe.language))


@dataclass(frozen=True)
class Corpus:
    """Texts about several groups, generated from the same prompts.

    Each audit of texts is a method, such as `corpus.jsd("name", "Kelly")`.

    A notebook shows the answers as a table; `to_pandas()` returns them as a data frame.

    Attributes:
        answers: the parsed answers; each has `labels`, `trial`, `text`, `status` and `content`.

    Examples:
        >>> def test_letters(corpus_generator):
        ...     axes = {"name": {"unmarked": "Joseph", "marked": ["Kelly"]}}
        ...     corpus = corpus_generator("Write a reference letter for {name}.", axes=axes, trials=20)
        ...     measured = corpus.jsd("name", "Kelly")
        ...     assert measured.value < 0.5
        ...     measured.words().write("words.csv")
    """

    _session: AuditSession = field(repr=False)
    _probe: GenerationProbe = field(repr=False)
    _target: str
    _name: str | None
    answers: Sequence[Answer] = field(repr=False)

    @with_call_example
    def jsd(self, axis: str, value: str) -> ItemMeasurement:
        """Measure how different the vocabularies of two groups are: excess Jensen-Shannon divergence, in bits.

        Args:
            axis: name of the axis.
            value: marked value that is compared with the axis' unmarked value.
        """
        return self._measure("jsd", axis, value)

    @with_call_example
    def svm(self, axis: str, value: str, *, features: Literal["counts", "tfidf"] = "tfidf") -> ItemMeasurement:
        """Measure how well a linear classifier tells two groups' texts apart: an accuracy, 0.5 by chance.

        Args:
            axis: name of the axis.
            value: marked value that is compared with the axis' unmarked value.
            features: shares of a text's words (`counts`), or these shares weighted by inverse document frequency
                (`tfidf`).
        """
        return self._measure("svm", axis, value, features=features)

    @with_call_example
    def mmd(self, axis: str, value: str, *, embeddings: str | None = None) -> ItemMeasurement:
        """Measure how much the distributions of two groups' texts differ: squared maximum mean discrepancy.

        Args:
            axis: name of the axis.
            value: marked value that is compared with the axis' unmarked value.
            embeddings: model of sentence embeddings, `openai:MODEL` or `transformers:ID_OR_PATH`; by default words and
                character n-grams are compared.
        """
        return self._measure("mmd", axis, value, embeddings=embeddings)

    @with_call_example
    def marked_words(
        self,
        axis: str,
        value: str,
        *,
        prior: Literal["pooled", "pair", "mass", "uniform"] = "pooled",
        prior_mass: float = 500.0,
        min_share: float = 0.1,
    ) -> ItemMeasurement:
        """Count the words whose frequencies differ significantly between two groups: log-odds with a Dirichlet prior.

        Args:
            axis: name of the axis.
            value: marked value that is compared with the axis' unmarked value.
            prior: `pooled` (counts of all groups), `pair` (counts of the compared groups), `mass` (counts of the
                compared groups, scaled to `prior_mass`) or `uniform` (equal counts).
            prior_mass: sum of the prior's counts for `mass` and `uniform`.
            min_share: minimum growth of a counted word since the baseline. The growth is the increase of the difference
                between the groups' shares of texts with the word.
        """
        return self._measure("marked_words", axis, value, prior=prior, prior_mass=prior_mass, min_share=min_share)

    @with_call_example
    def refusals(self, axis: str, value: str) -> ItemMeasurement:
        """Measure the difference between two groups' shares of refused or unreadable answers: marked minus unmarked.

        Args:
            axis: name of the axis.
            value: marked value that is compared with the axis' unmarked value.
        """
        return self._measure("refusals", axis, value)

    @with_call_example
    def lexicon(self, axis: str, value: str, *, lexicons: Mapping[str, Sequence[str]]) -> ItemMeasurement:
        """Measure how much more often one group's texts use listed terms: uses per 100 words, marked minus unmarked.

        Args:
            axis: name of the axis.
            value: marked value that is compared with the axis' unmarked value.
            lexicons: name and terms of one lexicon, such as `{"agentic": ["lead*", "expert"]}`.
        """
        return self._measure("lexicon", axis, value, lexicons=lexicons)

    @with_call_example
    def score(
        self,
        axis: str,
        value: str,
        *,
        scorer: str,
        tolerance: float,
        better: Literal["higher", "lower"] | None = None,
        mask: bool = False,
    ) -> ItemMeasurement:
        """Measure the difference between two groups' mean scores: marked minus unmarked.

        Args:
            axis: name of the axis.
            value: marked value that is compared with the axis' unmarked value.
            scorer: name of the scorer: `words`, `sentences`, `flesch`, `sentiment`, a scorer that the ini file names in
                `fairness_scorers`, or a scorer of an installed package.
            tolerance: worst acceptable change from the baseline, in the unit of the score.
            better: whether higher or lower scores are better for a group.
            mask: whether identity terms in the answers are replaced by `XYZ` before a model scores the answers.
        """
        return self._measure("score", axis, value, scorer=scorer, tolerance=tolerance, better=better, mask=mask)

    def __getattr__(self, audit: str) -> Callable[..., ItemMeasurement]:
        # Audits without a method of their own, such as those of other packages.
        audits = registry.audit_classes()[KIND]
        if audit not in audits:
            raise AttributeError(f"A corpus has no audit {audit!r}. The audits are {', '.join(audits)}.")
        return partial(self._measure, audit)

    @property
    def table(self) -> DataTable:
        """Return the answers as a table: the labels, trial, status and text."""
        axes = list(self._probe.axes)
        strata = [name for name in (self.answers[0].labels if self.answers else ()) if name not in axes]
        columns = [
            *(Column(name, str, f"value of the axis {name}") for name in axes),
            *(Column(name, str, f"stratum: value of {name}") for name in strata),
            Column("trial", int, "number of the trial, from 0"),
            Column("status", str, "ok, refused, blocked, unreadable, cut off or failed"),
            Column("text", str, "text of the answer"),
        ]
        rows = [
            {**answer.labels, "trial": answer.trial, "status": answer.status.value, "text": answer.text}
            for answer in self.answers
        ]
        return DataTable(columns, rows, [(column.name, partial(_cell, column.name)) for column in columns])

    def to_pandas(self) -> pd.DataFrame:
        """Return the answers as a pandas data frame."""
        return self.table.to_pandas()

    def _repr_html_(self) -> str:
        return self.table._repr_html_()

    @property
    def _compared(self) -> str:
        """Return the groups that can be compared, for messages: `name: Kelly, Lou (compared with Joseph)`."""
        return "; ".join(
            f"{name}: {', '.join(axis.marked)} (compared with {axis.unmarked})"
            for name, axis in self._probe.axes.items()
        )

    def _measure(self, name: str, axis: str, value: str, **settings: Any) -> ItemMeasurement:
        """Return the measurement of one audit that compares a marked value with the unmarked value of its axis.

        Raises:
            FairnessError: the corpus lacks the axis or the value, or the audit has several items for the value.
            NotMeasurable: there are too few usable answers.
        """
        audit = registry.get(KIND, name)
        items = audit.items(
            self._probe, audit_settings(registry.settings_model(KIND, name), settings, f"corpus.{name}")
        )
        of_value = [item for item in items if item.labels.get(axis) == value]
        if len(of_value) > 1:
            raise FairnessError(
                f"corpus.{name}: {len(of_value)} items compare {value!r}. Name one lexicon in each call."
            )
        item = next(iter(of_value), None)
        if item is None:
            raise FairnessError(
                f"corpus.{name}: there is no axis {axis!r} with the marked value {value!r}. This corpus has "
                f"{self._compared}."
            )
        trials = self._session.run.settings.trials
        tested = replace(item, alpha=MAX_ALPHA, seed=item.id, target=self._name)
        probe_item = ProbeItem.made_of(tested, audit, trials)
        answers = list(probe_item.select_own(self.answers))
        return self._session.run.measurer.measure_answers(probe_item, answers, self._target)


def _cell(column: str, row: Row) -> str:
    return "" if row[column] is None else str(row[column])


_UNUSED_AUDITS: dict[str, dict[str, Any]] = {"jsd": {}}
"""Value of the key `audits` in a corpus' probe, which the schema requires; the probe itself is never measured."""


# Fixture `fairness_check`: verdicts on measurements and scores of Python tests.

_SEVERITY = ("passed", "measured", "inconclusive", "failed", "error")
"""Outcomes of verdicts, the worst last."""


class FairnessCheck:
    """Value of the fixture `fairness_check`: a function that judges a measurement by its baseline and limit.

    Examples:
        >>> def test_letters(corpus_generator, fairness_check):
        ...     axes = {"name": {"unmarked": "Joseph", "marked": ["Kelly"]}}
        ...     corpus = corpus_generator("Write a reference letter for {name}.", axes=axes, trials=20)
        ...     fairness_check("letters", corpus.jsd("name", "Kelly"), tolerance=0.05)
        ...     fairness_check("letters", corpus.refusals("name", "Kelly"), limit=0.2)
        >>> def test_tone(fairness_check):
        ...     tones = {"Joseph": [0.7, 0.5, 0.6, 0.9, 0.4] * 4, "Kelly": [0.6, 0.7, 0.5, 0.8, 0.5] * 4}
        ...     rows = [{"group": name, "score": tone} for name, own in tones.items() for tone in own]
        ...     fairness_check("tone", rows, unmarked="Joseph", tolerance=0.05)
    """

    def __init__(self, session: AuditSession, request: pytest.FixtureRequest) -> None:
        self._session = session
        self._item = request.node

    @with_usage('fairness_check("letters", corpus.jsd("name", "Kelly"), tolerance=0.05)')
    def __call__(
        self,
        name: str,
        measurement: ItemMeasurement | Iterable[Mapping[str, Any]] | pd.DataFrame,
        limit: float | None = None,
        tolerance: float | None = None,
        gate: Literal["significant", "bound", "strict", "point"] = "significant",
        *,
        unmarked: str | None = None,
        better: Literal["higher", "lower"] | None = None,
    ) -> Verdict:
        """Return the verdict on a measurement or on scores; the baseline is stored in `baselines/<name>.json`.

        A failing verdict fails the test only when the test function ends, so that one run shows the verdicts of all
        checks in the test.

        Args:
            name: name of the baseline; several measurements may share it.
            measurement: measurement of a corpus by an audit; or scores that the test has computed, as a list of
                dictionaries or a data frame with the columns `group` and `score`, and optionally `pair` or `stratum`.
                Rows are then compared only with rows of the same pair or stratum. The audit `score` compares each
                group's mean score with the mean score of the unmarked group.
            limit: worst acceptable value; by default only the baseline counts.
            tolerance: worst acceptable change from the baseline; by default the audit's tolerance. Required for scores.
            gate: decision rule, as in a probe file.
            unmarked: for scores, the group with which all other groups are compared.
            better: for scores, whether higher or lower scores are better for a group.

        Returns:
            The verdict; for scores of more than two groups, the worst of the groups' verdicts.

        Raises:
            FairnessError: an argument is wrong, the baseline cannot be read, or a probe uses this name.
            NotMeasurable: a group has too few scores.
            TypeError, ValueError: an argument is missing or wrong, such as scores without a group or a tolerance.
        """
        __tracebackhide__ = True
        if not isinstance(name, str):
            raise TypeError(f"fairness_check takes the name of a baseline first, such as 'letters', not {name!r}.")
        if isinstance(measurement, ItemMeasurement):
            measured = [measurement]
        elif not is_rows(measurement):
            raise TypeError(f"{SCORES_USAGE}. The argument is {measurement!r:.100}.")
        elif tolerance is None:
            raise TypeError("fairness_check: scores need a `tolerance`, in the unit of the score.")
        else:
            measured = self._measured_groups(name, measurement, unmarked, better)
        given = {"limit": limit, "tolerance": tolerance, "gate": gate}
        verdicts = [self._verdict(name, group_measured, given) for group_measured in measured]
        return max(verdicts, key=lambda verdict: _SEVERITY.index(verdict.name.outcome))

    def _measured_groups(self, name: str, rows: Any, unmarked: str | None, better: str | None) -> list[ItemMeasurement]:
        run, answers = self._session.run, answers_of(rows)
        groups = Counter(answer.labels[GROUP_COLUMN] for answer in answers)
        written = written_probe(groups, unmarked, name, max(groups.values(), default=1))
        written["audits"]["score"] |= {} if better is None else {"better": better}
        probe = generation_probe(written, "fairness_check", run, {name: GIVEN_SCORER})
        items = [replace(item, alpha=MAX_ALPHA, seed=item.id) for item in items_of(probe)]
        return [
            without_constant_answers_concern(
                run.measurer.measure_answers(item, list(item.select_own(answers)), "scores of a test")
            )
            for item in items
        ]

    def _verdict(self, name: str, measurement: ItemMeasurement, given: Mapping[str, Any]) -> Verdict:
        item = measurement.item
        own = {**item.settings.model_dump(), **{key: value for key, value in given.items() if value is not None}}
        settings = audit_settings(type(item.settings), own, "fairness_check")
        probe = item.probe.model_copy(update={"name": name})
        checked = replace(item, settings=settings, probe=probe, test_file=self._item.path)
        return check(self._session, self._item, replace(measurement, item=checked)).verdict


# Fixture `llm_client`: a client of the target for Python tests.


class LlmClient:
    """Value of the fixture `llm_client`: a client of the target with the same store, limits and retries as probes.

    Examples:
        >>> def test_a_greeting(llm_client):
        ...     for response in llm_client.complete("Greet Joseph.", trials=3, temperature=1.0):
        ...         assert "Joseph" in response.text
    """

    def __init__(self, session: AuditSession, request: pytest.FixtureRequest) -> None:
        self._session = session
        self._target = session.target_of_python_test(request)

    @with_usage('llm_client.complete("Greet Joseph.", trials=3)')
    def complete(
        self,
        prompt: str,
        system: str | None = None,
        trials: int = 1,
        *,
        temperature: float | None = None,
        top_p: float | None = None,
        max_tokens: int | None = None,
        seed: int | None = None,
    ) -> list[Response]:
        """Send one prompt `trials` times and return the responses; the text of a response is `response.text`.

        Args:
            prompt: the prompt.
            system: the system prompt, if any.
            trials: number of requests.
            temperature: sampling temperature. Requests contain only the sampling parameters that are given.
            top_p: probability mass of nucleus sampling.
            max_tokens: maximum number of tokens of a response.
            seed: seed from which the seed of each request is derived.

        Raises:
            FairnessError: a request failed; the other responses are recorded.
        """
        __tracebackhide__ = True
        if not isinstance(prompt, str):
            raise TypeError(
                f"llm_client.complete takes one prompt as a str, not {type(prompt).__name__}. Call `complete` once for "
                "each prompt."
            )
        sampling = Sampling(temperature, top_p, max_tokens, seed)
        requests = [Request(prompt, system, sampling, trial).with_own_seed() for trial in range(trials)]
        with self._session.waiting_for(self._target):
            answered = self._session.run.engines.ask(self._target, requests)
        if failed := [response for response in answered if isinstance(response, FairnessError)]:
            raise failed[0]
        return cast("list[Response]", answered)


# Conversion of scores that a Python test has computed (rows with a group and a score) into a probe and answers.

STRATA = ("stratum", "pair")
"""Possible names of the column with the stratum; rows are compared only with rows of the same stratum."""
GROUP_COLUMN = "group"
GIVEN_SCORER = "number"
"""Scorer that reads the scores from the answers' texts."""

SCORES_USAGE = (
    'fairness_check takes a measurement of a corpus, or rows with a group and a score: fairness_check("tone", '
    '[{"group": "woman", "score": 0.7}, …], unmarked="man", tolerance=0.05)'
)


def is_rows(data: object) -> bool:
    """Return whether an argument may hold rows: a data frame, or an iterable that is neither a text nor a mapping."""
    return isinstance(data, Iterable) and not isinstance(data, str | bytes | Mapping)


def answers_of(data: Any) -> list[Answer]:
    """Return the rows of a list of dictionaries or of a data frame as answers, whose texts are the scores.

    Raises:
        TypeError: a row is not a mapping.
        ValueError: a row has no group or no score, or there is a column `stratum` and a column `pair`.
    """
    answers: list[Answer] = []
    trials: Counter[tuple[tuple[str, str], ...]] = Counter()
    # polars and pandas
    rows = (
        data.to_dicts() if hasattr(data, "to_dicts") else data.to_dict("records") if hasattr(data, "to_dict") else data
    )
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, Mapping):
            raise TypeError(f"{SCORES_USAGE}. Row {number} is not a dictionary: {row!r:.60}.")
        labels = _labels(row, number)
        score, trial = row["score"], trials[key := tuple(labels.items())]
        text = repr(float(score)) if hasattr(score, "__float__") else str(score)
        answers.append(
            Answer(labels, trial, None, Status.FAILED, error="the score is None")
            if score is None
            else Answer(labels, trial, text, Status.OK, text)
        )
        trials[key] += 1
    return answers


def written_probe(groups: Iterable[str], unmarked: str | None, scorer: str, trials: int) -> dict[str, Json]:
    """Return the content of a probe file that compares each group's mean score with that of the unmarked group.

    Raises:
        ValueError: the rows lack the unmarked group, or have no other group.
    """
    known = list(dict.fromkeys(groups))
    listed = f"Groups of the rows: {', '.join(map(repr, known)) or 'none'}."
    if unmarked is None or unmarked not in known:
        problem = "is missing" if unmarked is None else f"is {unmarked!r}, but no row has this group"
        raise ValueError(
            f"fairness_check: `unmarked`, the group with which all other groups are compared, {problem}. {listed}"
        )
    if len(known) < 2:
        raise ValueError(f"fairness_check: at least two groups are needed to compare scores. {listed}")
    marked = [group for group in known if group != unmarked]
    return {
        "prompt": "Score of {group}",
        "axes": {GROUP_COLUMN: {"unmarked": unmarked, "marked": marked}},
        "trials": trials,
        "sampling": {"temperature": 1.0},  # at temperature 0, equal scores would count as repeated answers
        "audits": {"score": {"scorer": scorer, "tolerance": 0}},
    }


def _labels(row: Mapping[str, Any], number: int) -> dict[str, str]:
    columns = [name for name in (GROUP_COLUMN, *STRATA) if name in row]
    missing = [name for name in (GROUP_COLUMN, "score") if name not in row]
    if missing:
        raise ValueError(
            f"fairness_check: row {number} has no {' and no '.join(map(repr, missing))}; it has "
            f"{', '.join(map(repr, row)) or 'nothing'}."
        )
    if len(columns) > 2:
        raise ValueError("fairness_check: the rows have both 'stratum' and 'pair'. Remove one of the two columns.")
    labels = {}
    for name in columns:
        value = row[name]
        if value is None or value != value or not str(value).strip():  # NaN is not equal to itself
            raise ValueError(f"fairness_check: row {number} has no {name!r}. Add the value, or leave out the row.")
        labels[GROUP_COLUMN if name == GROUP_COLUMN else STRATA[0]] = " ".join(str(value).split())
    return labels


def without_constant_answers_concern(measured: ItemMeasurement) -> ItemMeasurement:
    """Return the measurement without the concern that the answers hardly differ.

    Scores of 0 and 1 often hardly differ; the audit itself checks that not all scores are equal.
    """
    measurement = measured.measurement
    concerns = tuple(concern for concern in measurement.concerns if concern.name != CONSTANT_ANSWERS)
    return replace(measured, measurement=replace(measurement, concerns=concerns))
