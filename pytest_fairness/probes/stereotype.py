"""Probes of kind `stereotype`: cases that show stereotypes in generated texts or in likelihoods of sentences."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Discriminator, Field, Tag, ValidationError, ValidationInfo, field_validator, model_validator

from pytest_fairness.errors import ProbeError
from pytest_fairness.probes import diagnostics, field_types, prompts, table
from pytest_fairness.probes.conversations import FreeTextProbe
from pytest_fairness.probes.diagnostics import Diagnostic, Part, errors_at, quoted, raise_file_errors, suggestion
from pytest_fairness.probes.field_types import AuditSettings, CaseName, Line, ProbeModel, ProbeSource, Text, Texts
from pytest_fairness.probes.loading import row_messages
from pytest_fairness.probes.recorded_rows import TRIAL, Column, Labels, Rows
from pytest_fairness.probes.shared_keys import AnswerReading, Trials, max_trials
from pytest_fairness.probes.table import DataFile, Row, Table
from pytest_fairness.records import Json, Prompt, Request

# Cases of a stereotype probe, written in the probe or in a file in its folder.


class Case(ProbeModel):
    """One case of a stereotype probe.

    An open case has a `prompt`: the model generates texts, and the audit counts the markers in them. A likelihood case
    has sentences and no prompt: the audit compares the sentences' likelihoods for the model.
    """

    name: CaseName = Field(description="Name of the case in item ids and baselines; unique in the probe.")
    category: CaseName | None = Field(
        default=None, description="Subject of the stereotype, such as age; reports show the results of each category."
    )
    prompt: Text | None = Field(
        default=None,
        description="The prompt. {group} stands for one of the case's groups; a literal brace is written {{ or }}. A "
        "case without a prompt has two sentences, whose likelihoods are compared.",
    )
    stereotype: Texts | None = Field(
        default=None,
        description="With a prompt: a list of words, phrases and stems (lead*) that mark the stereotype. Without a "
        "prompt: the stereotyped sentence.",
    )
    anti_stereotype: Texts | None = Field(
        default=None,
        description="With a prompt: a list of words, phrases and stems that mark the opposite. Without a prompt: the "
        "sentence that contradicts the stereotype.",
    )
    opposite: CaseName | None = Field(
        default=None,
        description="Name of the opposite case, which must name this case in return. The scores of the two cases are "
        "averaged, so that a model that gives the same answer in both cases scores 0.5.",
    )
    groups: tuple[Line, ...] = Field(
        default=(), min_length=2, description="Groups that replace {group}; the answers about them are compared."
    )
    context: Text | None = Field(default=None, description="Without a prompt: text that comes before each sentence.")
    unrelated: Text | None = Field(
        default=None, description="Without a prompt: a sentence that is unrelated to the context."
    )
    target: Line | None = Field(
        default=None,
        description="Without a prompt: the term that the stereotype is about; the scores of all cases with the same "
        "term are averaged.",
    )

    direction: Literal["stereo", "antistereo"] | None = Field(
        default=None,
        description="Without a prompt, as in CrowS-Pairs: stereo if the pair of sentences shows a stereotype of a "
        "disadvantaged group, antistereo if the pair contradicts such a stereotype. Reports show the two kinds of "
        "pairs separately; the key has no other effect.",
    )

    @property
    def open(self) -> bool:
        """Return whether the answers are texts; otherwise, the answers are likelihoods of sentences."""
        return self.prompt is not None or not isinstance(self.stereotype, str)

    @property
    def markers(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The markers of the stereotype, and those of its opposite; two empty tuples if the case has no markers."""
        first, second = (marks if isinstance(marks, tuple) else () for marks in (self.stereotype, self.anti_stereotype))
        return first, second


class CasesFile(DataFile):
    """Cases in a file, whose rows have the keys of `Case`."""

    @field_validator("file")
    @classmethod
    def _holds_cases(cls, file: Path, info: ValidationInfo) -> Path:
        with errors_at():
            read(file, field_types.display_path(file, field_types.probe_source(info).root))
        return file


Cases = Annotated[
    Annotated[tuple[Case, ...], Tag("other"), Field(min_length=1)] | Annotated[CasesFile, Tag("mapping")],
    Discriminator(field_types.mapping_or_other),
]
"""Type of the key `cases`: a list of cases, or a file."""


class StereotypeProbe(FreeTextProbe):
    """Probe of stereotypes; the `prompt` of a case gets `trials` answers for each of the case's groups."""

    prompts_key: ClassVar[str] = "cases"

    units = "cases"

    kind: Literal["stereotype"] = Field(
        description="Kind of the probe: measures stereotypes in answers, or in the likelihoods of sentences."
    )
    trials: Trials = Field(
        default=20,
        description="Number of answers to each prompt for each of its groups. With {start: 20, max: 80}, the number "
        "begins at 20, and grows up to 80 while a verdict is inconclusive.",
    )
    written_cases: Cases = Field(
        alias="cases", description="The cases as a list, or a file of cases with the same keys: `{file: cases.jsonl}`."
    )

    @classmethod
    def faults(cls, data: Part, audits: Mapping[str, type[AuditSettings]]) -> Iterator[Diagnostic]:
        """Yield diagnostics for contradictory keys; cases in a file are checked when the file is read."""
        recorded = field_types.is_recorded(data)
        cases = data["cases"] if isinstance(data["cases"].value, list) else Part([])
        opened = [case for case in cases.mappings if is_open(case, recorded=recorded)]
        missing = missing_case_types(
            markers=any("stereotype" in case for case in opened),
            texts=bool(opened),
            groups=any("groups" in case for case in opened),
            likelihoods=len(opened) < len(cases.mappings),
        )
        columns = ("case", "group", "text", "trial")
        yield from cls._shared_faults(data, audits, columns, missing if cases.mappings else {})
        yield from case_faults(cases, recorded=recorded)
        groups = [case["groups"].value for case in cases.mappings]
        asked = sum(len(names) if isinstance(names, list) else 1 for names in groups)
        count = field_types.most_trials(data, 20) * asked
        yield from field_types.too_many_prompts(data, count, "cases, groups and trials", "cases")

    @model_validator(mode="after")
    def _has_needed_cases(self) -> Self:
        """Check that a file of cases has a case of each type that the audits need.

        For cases that are written in the probe, `faults` checks this.
        """
        if isinstance(self.written_cases, CasesFile):
            missing = missing_case_types(
                markers=any(all(case.markers) for case in self.open_cases),
                texts=bool(self.open_cases),
                groups=any(case.groups for case in self.open_cases),
                likelihoods=bool(self.likelihood_cases),
            )
            diagnostics.raise_diagnostics(field_types.unmet_needs(self.audits, missing))
        return self

    @cached_property
    def cases(self) -> tuple[Case, ...]:
        return cases_of(self.written_cases)

    @cached_property
    def by_name(self) -> dict[str, Case]:
        return {case.name: case for case in self.cases}

    @property
    def open_cases(self) -> tuple[Case, ...]:
        return tuple(case for case in self.cases if case.open)

    @property
    def likelihood_cases(self) -> tuple[Case, ...]:
        return tuple(case for case in self.cases if not case.open)

    def cases_of(self, labels: Mapping[str, str]) -> tuple[Case, ...]:
        """Return the cases of an item.

        The labels of the item name a case (`{"case": "nurse"}`), two opposite cases (`{"case": "ceo/nurse"}`) or a
        category.
        """
        if "case" in labels:
            return tuple(self.by_name[name] for name in labels["case"].split("/") if name in self.by_name)
        return tuple(case for case in self.cases if case.category == labels.get("category"))

    @cached_property
    def reading(self) -> AnswerReading:
        return replace(super().reading, likelihood_label="sentence")

    def unit_of(self, labels: Mapping[str, str]) -> str:
        return labels["case"]

    def _written_prompts(self, trials: int | None) -> Iterator[Prompt]:
        """Yield the prompts of the cases that have a `prompt`, ordered by case, group and trial."""
        yield from self._open_prompts(max_trials(self.trials, trials))
        if any(settings.needs == LIKELIHOODS for settings in self.audits.values()):
            for case in self.likelihood_cases:
                yield from likelihood_prompts(case)

    def _open_prompts(self, trials: int) -> Iterator[Prompt]:
        for case in self.open_cases:
            prompt = field_types.block_text(case.prompt)
            for group in case.groups or (None,):
                text = prompts.fill(prompt, {} if group is None else {"group": group})
                labels = self.labels(case, group)
                for trial in range(trials):
                    yield Prompt(self._request(text, trial), labels, trial)

    @staticmethod
    def labels(case: Case, group: str | None = None) -> dict[str, str]:
        """Return the labels of the answers to a case: `case` and, if present, `category` and `group`."""
        return (
            {"case": case.name}
            | ({} if case.category is None else {"category": case.category})
            | ({} if group is None else {"group": group})
        )

    def fingerprint(self, labels: Mapping[str, str]) -> dict[str, str]:
        """Return the texts that determine an item: its cases and the system prompt; see `Probe.fingerprint`.

        For recorded answers, the columns and strata take the place of the system prompt.
        """
        parts = self._source_fingerprint()
        for case in self.cases_of(labels):
            content: list[Json] = [field_types.block_text(case.prompt), sorted(case.groups)]
            if not case.open:
                content = [case.context, case.stereotype, case.anti_stereotype, case.unrelated, case.target]
            parts[f"case {case.name}"] = field_types.canonical(content)
        return parts


_LISTS = ("stereotype", "anti_stereotype", "groups")


def cases_of(written: Cases) -> tuple[Case, ...]:
    return read(written.file, written.file.name) if isinstance(written, CasesFile) else written


def read(path: Path, name: str) -> tuple[Case, ...]:
    """Return the cases in a file, in the file's order.

    The file is JSON Lines, a JSON list of objects, or CSV in which lists are written as JSON; or a published file of
    StereoSet (JSON) or CrowS-Pairs (CSV), without changes.
    """
    rows = [(row.line, _nonempty_fields(row.fields)) for row in _rows(path, name)]
    cases: list[Case] = []
    errors: list[str] = []
    for line, fields in rows:
        try:
            cases.append(Case.model_validate_json(json.dumps(fields), strict=True, context=ProbeSource(path)))
        except ValidationError as error:
            errors += [f"{name}:{line}: {message}" for message in row_messages(error, fields, Case)]
    for diagnostic in case_faults(Part([fields for _, fields in rows])):
        line, _ = rows[int(diagnostic.location[0])]
        errors.append(f"{name}:{line}: {diagnostic.message}")
    raise_file_errors(errors, name)
    return tuple(cases)


def _rows(path: Path, name: str) -> tuple[Row, ...]:
    if path.suffix.casefold() == ".json" and (found := stereoset(path, name)) is not None:
        return found
    content = table.read(path, name, "cases")
    return crows_pairs(content, name) or content.rows


def _nonempty_fields(fields: Mapping[str, Json]) -> dict[str, Json]:
    """Return the non-empty fields of a row; a text with a JSON list in a field of `_LISTS` becomes a list."""
    given = {name: value for name, value in fields.items() if value not in (None, "")}
    for name in _LISTS:
        written = given.get(name)
        if isinstance(written, str) and written.lstrip().startswith("["):
            try:
                given[name] = json.loads(written)
            except (ValueError, RecursionError):
                continue
    return given


# Readers that convert the published files of StereoSet (JSON) and CrowS-Pairs (CSV) to cases.

CROWS_PAIRS = ("sent_more", "sent_less", "stereo_antistereo", "bias_type")
_DIRECTIONS = ("stereo", "antistereo")
_GOLD = {"stereotype": "stereotype", "anti-stereotype": "anti_stereotype", "unrelated": "unrelated"}
_TASKS = ("intersentence", "intrasentence")


def crows_pairs(table: Table, name: str) -> tuple[Row, ...] | None:
    """Return the rows of CrowS-Pairs (Nangia et al. 2020) as cases, in the file's order; `None` for another table.

    The column `sent_more` always has the stereotyped sentence, whatever the column `stereo_antistereo` says. The name
    of a case is `pair-N`; N is the number in the first, unnamed column, or else the row's position from 0. The cases
    have no `target`.
    """
    if not {"sent_more", "sent_less"} <= {*table.columns}:
        return None
    missing = [column for column in CROWS_PAIRS if column not in table.columns]
    if missing:
        cure = suggestion(missing[0], table.columns)
        raise ProbeError(f"{name}:1: the column {missing[0]!r} of CrowS-Pairs is missing{cure}")
    rows, errors = [], []
    for place, row in enumerate(table.rows):
        fields = row.fields
        if fields["stereo_antistereo"] not in _DIRECTIONS:
            written = str(fields["stereo_antistereo"])[:40]
            errors.append(f"{name}:{row.line}: 'stereo_antistereo' must be stereo or antistereo, not {written!r}")
        case: dict[str, Json] = {
            "name": f"pair-{fields.get('') or place}",
            "category": fields["bias_type"],
            "stereotype": fields["sent_more"],
            "anti_stereotype": fields["sent_less"],
            "direction": fields["stereo_antistereo"],
        }
        rows.append(Row(row.line, case))
    raise_file_errors(errors, name)
    return tuple(rows)


def stereoset(path: Path, name: str) -> tuple[Row, ...] | None:
    """Return StereoSet's examples as cases (Nadeem, Bethke and Reddy 2021); `None` if the file is not StereoSet."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
        content = json.loads(text)
    except (OSError, ValueError, RecursionError):
        return None  # the reader of other tables reports the error
    data = content.get("data") if isinstance(content, Mapping) else None
    if not isinstance(data, Mapping) or not any(task in data for task in _TASKS):
        return None
    rows, errors = [], []
    at, line = 0, 1
    for task in _TASKS:
        examples = data.get(task, [])
        for place, example in enumerate(examples if isinstance(examples, list) else [examples]):
            # JSON readers give no positions: an example without an id has the line of the previous one.
            identifier = Part(example)["id"]
            found = text.find(json.dumps(identifier.text), at) if identifier.is_text else -1
            if found >= 0:
                line += text.count("\n", at, found)
                at = found + 1
            try:
                rows.append(Row(line, _example(Part(example), task)))
            except ValueError as error:
                errors.append(f"{name}:{line}: data.{task}[{place}]: {error}")
    raise_file_errors(errors, name)
    return tuple(rows)


def _example(example: Part, task: str) -> dict[str, Json]:
    """Return an example as the fields of a case; raise `ValueError` for an invalid example."""
    if not isinstance(example.value, Mapping):
        raise ValueError("an example must be a JSON object")  # noqa: TRY004 - all errors of the file are reported alike
    for key in ("id", "target", "bias_type", "sentences"):
        if key not in example:
            raise ValueError(f"`{key}` is missing")
    # The context of an intrasentence example is left out: it only shows the gap that the complete sentences fill.
    context = {"context": example["context"].text} if task == "intersentence" else {}
    if context and not example["context"].is_text:
        raise ValueError("`context` is missing: an intersentence example must have one")
    found: dict[str, Json] = {}
    for sentence in example["sentences"]:
        gold, text = sentence["gold_label"].text, sentence["sentence"]
        if gold not in _GOLD:
            raise ValueError(f"unknown gold_label {gold[:40]!r} (valid: {', '.join(_GOLD)})")
        if not text.is_text:
            raise ValueError(f"the sentence with the gold_label {gold!r} has no text")
        if _GOLD[gold] in found:
            raise ValueError(
                f"two sentences have the gold_label {gold!r}; each example must have one sentence for each gold_label"
            )
        found[_GOLD[gold]] = text.text
    missing = [gold for gold, kind in _GOLD.items() if kind not in found]
    if missing:
        raise ValueError(f"no sentence has the gold_label {missing[0]!r}")
    named = {"name": example["id"].value, "category": example["bias_type"].value, "target": example["target"].value}
    return {**named, **context, **found}


# Prompts that request the likelihood of the sentences of a case.

SENTENCES = ("stereotype", "anti_stereotype", "unrelated")
"""Kinds of sentence: the values of the label `sentence`."""


def likelihood_prompts(case: Case) -> Iterator[Prompt]:
    """Yield a prompt for each sentence of a case: a request for the sentence's likelihood after the case's context.

    There is one trial, because a likelihood is not sampled.
    """
    context = field_types.block_text(case.context)
    labels = {"case": case.name} | ({} if case.category is None else {"category": case.category})
    for sentence in SENTENCES:
        written = getattr(case, sentence)
        if isinstance(written, str):
            text = field_types.block_text(written)
            continuation = f" {text}" if context else text
            request = Request(context, answer_format="likelihood", continuation=continuation)
            yield Prompt(request, {**labels, "sentence": sentence}, 0)


# Checks that the keys of a stereotype probe and the keys of its cases fit together.

LIKELIHOODS = "likelihoods"
"""Value of `AuditSettings.needs` in audits that compare likelihoods of sentences; without such an audit, no likelihoods
are requested."""

_SIDES = ("stereotype", "anti_stereotype")
_ONLY_OPEN = ("opposite", "groups")
_ONLY_LIKELIHOOD = ("context", "unrelated", "target", "direction")


def missing_case_types(*, markers: bool, texts: bool, groups: bool, likelihoods: bool) -> dict[str, str]:
    """Return the missing types of cases, by their name in `AuditSettings.needs`, each with its remedy."""
    types = {
        "markers": (markers, "a case with a `prompt` and two lists of markers (`stereotype` and `anti_stereotype`)"),
        "texts": (texts, "a case with a `prompt`"),
        "groups": (groups, "a case with a `prompt` and `groups`"),
        LIKELIHOODS: (likelihoods, "a case without `prompt`, whose `stereotype` and `anti_stereotype` are sentences"),
    }
    return {name: remedy for name, (exists, remedy) in types.items() if not exists}


def case_faults(cases: Part, *, recorded: bool = False) -> Iterator[Diagnostic]:
    yield from field_types.repeats((case["name"] for case in cases.mappings), "each case needs a different name")
    yield from _opposite_faults(cases.mappings)
    for case in cases.mappings:
        yield from _open_case(case) if is_open(case, recorded=recorded) else _likelihood_case(case)


def is_open(case: Part, *, recorded: bool = False) -> bool:
    """Return whether the answers to a case are texts; otherwise, they are likelihoods of sentences.

    A case with neither `prompt` nor `stereotype` has texts if the answers are recorded.
    """
    markers = isinstance(case["stereotype"].value, list)
    return "prompt" in case or markers or (recorded and "stereotype" not in case)


def _opposite_faults(cases: Sequence[Part]) -> Iterator[Diagnostic]:
    named = {case["name"].text: case for case in cases if case["name"].is_text}
    for case in cases:
        name, opposite = case["name"].text, case["opposite"]
        if not case["name"].is_text or not opposite.is_text:
            continue
        back = named[opposite.text]["opposite"].value if opposite.text in named else None
        if opposite.text == name:
            yield opposite.fault(f"{quoted(name)} cannot be its own opposite: name another case")
        elif opposite.text not in named:
            near = suggestion(opposite.text, [other for other in named if other != name])
            yield opposite.fault(f"there is no case {opposite.quoted}{near}")
        elif back is None:
            yield opposite.fault(f"{opposite.quoted} does not name this case: write `opposite: {name}` there")
        elif back != name:
            yield opposite.fault(
                f"the opposite of {opposite.quoted} is {quoted(str(back))}: two opposite cases must name each other"
            )


def _open_case(case: Part) -> Iterator[Diagnostic]:
    for key in _ONLY_LIKELIHOOD:
        if key in case:
            yield case[key].key_fault(f"`{key}` is possible only in a case without `prompt`: remove `{key}`")
    yield from field_types.repeats(case["groups"], "write each group once", field_types.normalized_term)
    prompt, names = case["prompt"], ["group"] if "groups" in case else []
    for diagnostic in prompts.template_diagnostics(prompt.text, names, prompt.location):
        piece, message = diagnostic.piece or "", diagnostic.message
        if piece == "{group}":
            message = "{group} stands for one of the case's groups, but the case has none: add `groups: [women, men]`"
        elif not names and piece.startswith("{") and len(piece) > 1:
            message = f"unknown placeholder {quoted(piece)}: the only placeholder is {{group}}, which needs `groups`"
        yield replace(diagnostic, message=message)
    if names and prompt.is_text and "group" not in prompts.intended_placeholders(prompt.text, names):
        yield prompt.fault("this prompt does not use the case's groups: write {group} where they belong")
    sides = [key for key in _SIDES if key in case]
    if len(sides) == 1:
        yield case.fault(f"`{_SIDES[1 - _SIDES.index(sides[0])]}` is missing: write both lists of markers")
    seen: dict[str, str] = {}
    for key in sides:
        if case[key].is_text:
            message = f"`{key}` of a case with a prompt must be a list of markers: write [{case[key].text}]"
            yield case[key].fault(message)
            continue
        for marker in case[key].texts:
            form = field_types.normalized_term(marker.text)
            if not marker.text.strip():
                continue
            if (error := field_types.term_error(marker.text, "marker")) is not None:
                yield marker.fault(error)
            elif seen.get(form) == key:
                yield marker.fault(f"{marker.quoted} is repeated: write each marker once")
            elif form in seen:
                yield marker.fault(f"{marker.quoted} is in both lists: remove it from one of them")
            seen.setdefault(form, key)


def _likelihood_case(case: Part) -> Iterator[Diagnostic]:
    if not any(key in case for key in _SIDES):
        yield case.fault(
            "`prompt` is missing: write a question, or two sentences to compare (`stereotype` and `anti_stereotype`)"
        )
        return
    for key in _SIDES:
        if key not in case:
            yield case.fault(f"`{key}` is missing: write both sentences")
        elif isinstance(case[key].value, list):
            yield case[key].fault(
                f"`{key}` must be one sentence, because this case has no `prompt`. If the list contains markers, add a "
                "`prompt`"
            )
    for key in _ONLY_OPEN:
        if key in case:
            yield case[key].key_fault(f"`{key}` is possible only in a case with a `prompt`: remove `{key}`")


# Rows of a file of recorded answers.


class CaseRows(Rows[StereotypeProbe]):
    """Rows that name the case and, if cases have groups, the group; rows of other cases and groups are left out."""

    complete = True

    @property
    def group_labels(self) -> tuple[str, ...]:
        return ("group",)

    @cached_property
    def _cases(self) -> dict[tuple[str, str], Labels]:
        return {
            (field_types.folded(case.name), field_types.folded(group)): self.probe.labels(case, group or None)
            for case in self.probe.open_cases
            for group in case.groups or ("",)
        }

    def rules(self) -> list[Column]:
        group = [Column("group")] if any(case.groups for case in self.probe.open_cases) else []
        return [Column("case"), *group, Column("text", is_label=False), TRIAL]

    def labels_of(self, row: Row, labels: Labels) -> Labels | None:
        case, group = (field_types.folded(labels.get(name, "")) for name in ("case", "group"))
        found = self._cases.get((case, group)) or self._cases.get((case, ""))
        if found is None:
            is_known = any(case == name for name, _ in self._cases)
            self.leave_out(row, "group" if is_known else "case", of_group=is_known)
            return None
        return found | {name: labels[name] for name in self.responses.strata}

    def check(self, existing: Sequence[Labels]) -> None:
        """Raise `ProbeError` if no case has answers; for a single case without answers, its item reports it."""
        if not existing:
            written = list(dict.fromkeys(self.cell(row, "case") for row in self.rows()))
            near = suggestion(written[0], [case.name for case in self.probe.open_cases])
            raise ProbeError(
                f"{self.name}:1: no row has a case of the probe. Correct the names in the file or in the probe; the "
                f"file has the cases {', '.join(map(repr, written[:10]))}{near}"
            )
