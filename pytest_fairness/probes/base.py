"""Base model of all kinds of probe, and the keys that all kinds share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    Field,
    PlainValidator,
    PrivateAttr,
    ValidationInfo,
    field_serializer,
    model_validator,
)

from pytest_fairness import records
from pytest_fairness.errors import FairnessError, counted
from pytest_fairness.languages import Language
from pytest_fairness.options import MAX_TRIALS
from pytest_fairness.probes import field_types, shared_keys
from pytest_fairness.probes.diagnostics import Diagnostic, Part, quoted, raise_diagnostics, suggestion
from pytest_fairness.probes.field_types import AuditSettings, Identifier, Line, Name, ProbeModel, ProbeSource, Text
from pytest_fairness.probes.prompts import FollowUps
from pytest_fairness.probes.shared_keys import AnswerReading, GrowingTrials, Languages, Stage, Trials, growing
from pytest_fairness.probes.table import DataFile
from pytest_fairness.records import SAMPLING_PARAMETERS, AnswerFormat, Json, Message, Prompt, Request

ProbeT = TypeVar("ProbeT", bound="Probe")

TABLE_SUFFIXES = (".csv", ".jsonl", ".ndjson", ".xlsx", ".parquet")


def _existing_tables(path: Path) -> Path:
    files = field_types.matching(path)
    for file in files:
        field_types.require_suffix(file, TABLE_SUFFIXES, "answers")
    suffixes = sorted({file.suffix.casefold() for file in files})
    if len(suffixes) > 1:
        formats = f"{quoted(path.name)} matches files of several formats ({', '.join(suffixes)})"
        raise ValueError(f"{formats}: write a pattern that ends in one of them")
    return path


RESERVED_FIELDS = frozenset(
    {"model", "messages", "prompt", "system", "input", "tools", "functions", "chat_template", "extra_body", "n"}
)
"""Fields of a request's body that the probe or the target determines, or that would replace the prompt."""
CONNECTION_FIELDS = frozenset({"api_key", "api_base", "base_url", "timeout", "headers", "extra_headers"})
"""Arguments of clients that determine where and how a request is sent."""


def _free_field(name: str) -> str:
    if name in SAMPLING_PARAMETERS:
        cure = "write it directly under `sampling`"
    elif name in RESERVED_FIELDS:
        cure = "this field is determined by the probe and the target, so remove it"
    elif name in CONNECTION_FIELDS | {"num_retries", "max_retries"}:
        cure = "connections are set in the ini, so remove it"
    else:
        return name
    raise ValueError(f"cannot be a further field of the request: {cure}")


class SamplingSettings(ProbeModel):
    """Sampling parameters of the requests; a parameter that is not set here is not sent."""

    temperature: float | None = Field(
        default=None,
        ge=0,
        description="Randomness of the answers; with 0 the model always takes the most likely token.",
    )
    top_p: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Sample only from the most likely tokens that together have this probability.",
    )
    max_tokens: int | None = Field(
        default=None,
        ge=1,
        le=10_000_000,
        description="Maximum number of tokens in an answer; a longer answer is cut off.",
    )
    seed: int | None = Field(
        default=None,
        ge=0,
        le=2**31 - 1,
        description="Seed of the probe. The seed of each request is derived from this seed, the request's texts and "
        "the trial number.",
    )
    extra: dict[Annotated[Line, AfterValidator(_free_field)], Any] = Field(
        default_factory=dict,
        description="Further fields of the request's JSON body, such as {reasoning_effort: low, top_k: 20}. Targets "
        "behind an API and http: targets send them unchanged.",
    )


class ResponsesSettings(ProbeModel):
    """Settings of recorded answers, which the probe audits without sending requests."""

    file: Annotated[field_types.ProbeFiles, AfterValidator(_existing_tables)] = Field(
        description="CSV (.csv), JSON Lines (.jsonl, .ndjson), Excel (.xlsx) or Parquet (.parquet) file in the probe's "
        "folder, with one answer per row. A pattern such as answers/*.parquet names several files of one format."
    )
    columns: dict[str, Line] = Field(
        default_factory=dict,
        description="Columns of the file whose names differ from the expected names: with {text: reply, trial: run}, "
        "the column reply is read as `text`, and run as `trial`.",
    )
    strata: tuple[Line, ...] = Field(
        default=(),
        min_length=1,
        description="Further columns of the file, such as [topic]. Answers are compared only with answers that have "
        "the same values in these columns.",
    )
    ignore: tuple[Line, ...] = Field(
        default=(),
        min_length=1,
        description="Groups in the file that the probe does not compare, such as [unknown, other]; `*` stands for all "
        "such groups. Their rows are left out without a note. Rows of groups that neither the probe nor this list "
        "names are left out, too, but reported; if they are more than 10 % of all rows, no verdict is `pass`.",
    )

    @property
    def files(self) -> list[Path]:
        return field_types.matching(self.file) or [self.file]


Mark = Annotated[Line, Field(min_length=2)]


class AnswerSettings(ProbeModel):
    """Settings of how answers are read that probes of all kinds have."""

    thoughts: tuple[tuple[Mark, Mark], ...] = Field(
        default=(),
        min_length=1,
        description="Marks between which the model thinks, such as [[<plan>, </plan>]], in addition to the known marks "
        "of reasoning models. Thoughts are no part of an answer.",
    )


class Variant(ProbeModel):
    """Alternative prompt or system prompt of a probe, such as one that may reduce the bias."""

    system: Text | None = Field(default=None, description="System prompt of this variant.")
    prompt: field_types.Texts | None = Field(default=None, description="Prompt or prompts of this variant.")

    @model_validator(mode="after")
    def _differs(self) -> Self:
        if not {"system", "prompt"} & self.model_fields_set:
            message = "a variant must change `system` or `prompt`, and this variant changes neither"
            raise_diagnostics([Diagnostic((), message)])
        return self


def _day(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise ValueError(f"{quoted(text)} is no day: write it as 2027-01-31") from None


class RiskSettings(ProbeModel):
    """The risk that a probe watches, for people who answer for it; nothing of it is sent or measured."""

    hazard: Text = Field(description="What the system may do wrong: rank women lower than men with equal papers.")
    harm: Text | None = Field(default=None, description="What happens to people then: no invitation to an interview.")
    groups: tuple[Line, ...] = Field(default=(), min_length=1, description="Who is at risk.")
    owner: Line | None = Field(default=None, description="Who decides about this risk: a team or a role.")
    threshold_because: Text | None = Field(
        default=None, description="Why the limits and tolerances of the probe are what they are."
    )
    mitigation: Text | None = Field(default=None, description="What was done, or is done after a finding.")
    review_by: Annotated[str, AfterValidator(_day)] | None = Field(
        default=None, description="Day until which somebody must look at this block again: 2027-01-31."
    )


def _valid_file_name(name: str) -> str:
    if (problem := field_types.name_problem(name)) is not None:
        raise ValueError(f"{quoted(name)} cannot be the name of baseline files: {problem}; choose another name")
    return name


def _validated_audits(value: Json, info: ValidationInfo) -> Mapping[str, AuditSettings]:
    """Return the settings of the audits, which the loader has validated with the model of each audit."""
    if not isinstance(value, Mapping):
        raise ValueError("must be a mapping of audits to their settings")  # noqa: TRY004 - pydantic reports no TypeError
    if not value:
        raise ValueError("must name at least one audit")
    return dict(field_types.probe_source(info).audits)


FIRST_PROMPTS = 2_000
"""Largest number of prompts that checks of answers compare with them."""
SEPARATE_TRIALS = 1_000 * MAX_TRIALS
"""Difference between the trial numbers of two equal prompts, above the numbers of all trials and repetitions."""


ASKED = "asked"
"""Label of recorded answers with a digest of their prompt, if the file has a column `prompt`."""


@dataclass(frozen=True)
class EqualPrompts:
    """The prompts of a probe that are equal to an earlier prompt.

    Attributes:
        copies: for each prompt that is equal to an earlier prompt, the number of earlier equal prompts; the key is a
            hash of the prompt's labels.
        numbers: for each prompt that is equal to another prompt, a number that only equal prompts share; keys as in
            `copies`.
        units: number of units of the probe; see `Probe.units`.
        different: number of different prompts; repetitions and trials of a prompt are not counted.
    """

    copies: Mapping[int, int]
    numbers: Mapping[int, int]
    units: int
    different: int


def asked_text(request: Request) -> int:
    """Return a hash of everything that a request says to the target, without its sampling parameters and trial."""
    return hash((request.system, request.history, request.prompt, request.continuation))


def _hash_of(labels: Mapping[str, str]) -> int:
    return hash(frozenset(labels.items()))


class Probe(ProbeModel):
    """One validated probe file: its prompts, its groups, and the audits of the answers.

    Each kind of probe is a subclass, and an entry of `kinds.KINDS`.

    Class attributes:
        several_prompts: whether `prompt` may be a list of prompts.
        prompts_key: the key that contains the prompts; empty if it is one of `prompt_keys`.
        prompt_keys: the keys of which one contains the prompts; variants can only replace the first of them.
        request_keys: keys that only a probe without recorded answers may have.
        units: what the probe asks about, such as `records`; one or several prompts belong to each of these units.
        sent_keys: keys that a probe needs to send requests, each with what to write.
        no_strata: reason why recorded answers of the kind have no strata; empty if they may have strata.
    """

    several_prompts: ClassVar[bool] = False
    prompts_key: ClassVar[str] = ""
    prompt_keys: ClassVar[tuple[str, ...]] = ("prompt",)
    request_keys: ClassVar[tuple[str, ...]] = ("variants",)
    units: ClassVar[str]
    sent_keys: ClassVar[Mapping[str, str]] = MappingProxyType({})
    no_strata: ClassVar[str] = ""

    kind: str = Field(description="Kind of the probe, which determines the other keys.")
    name: Annotated[Name, AfterValidator(_valid_file_name)] = Field(
        default_factory=str,
        description="Name of the probe in item ids and baseline files, unique in a run. "
        "Default: the file's name without its suffix.",
    )
    description: Text | None = Field(default=None, description="Purpose of the probe, which reports show.")
    risk: RiskSettings | None = Field(default=None, description="The risk that the probe watches, for reports.")
    system: Text | None = Field(default=None, description="System prompt, sent unchanged with every prompt.")
    sampling_settings: SamplingSettings = Field(
        default_factory=SamplingSettings,
        alias="sampling",
        description="Sampling parameters of the requests; a parameter that is not set here is not sent.",
    )
    language_settings: Languages = Field(
        default="en",
        alias="language",
        description="Language of the answers, as ISO 639 code: de. Several: [en, de]. {code: pl, terms: pl.toml} "
        "declares the words of a language. The language determines which refusals are recognised and which identity "
        "terms are removed.",
    )
    compare_sampling: bool = Field(
        default=True,
        description="Whether a baseline with other sampling parameters (temperature, top_p, max_tokens) is stale.",
    )
    trials: Trials = Field(
        default=1,
        description="Number of answers to each prompt. With {start: 8, max: 60}, the number begins at 8, and grows up "
        "to 60 while a verdict is inconclusive.",
    )
    audits: Annotated[
        Mapping[str, AuditSettings], PlainValidator(_validated_audits, json_schema_input_type=dict[str, Any])
    ] = Field(
        description="The audits of the answers by name, each with its settings; {} or an empty value means the default "
        "settings."
    )
    answer: AnswerSettings = Field(default_factory=AnswerSettings, description="How answers are read.")
    responses: ResponsesSettings | None = Field(
        default=None, description="File with recorded answers. The probe audits these answers and sends no requests."
    )
    alpha: float = Field(
        default=0.05,
        gt=0,
        lt=1,
        description="Probability of at least one false alarm in this probe (family-wise alpha); it is divided among "
        "the probe's items.",
    )
    verdict: Literal["accumulate", "single"] | None = Field(
        default=None,
        description="Runs on which verdicts are based where `fairness_history` names a history. accumulate: all runs "
        "since the baseline. single: this run. Default: the ini option `fairness_verdict`.",
    )
    variants: dict[Name, Variant] = Field(
        default_factory=dict,
        min_length=1,
        description="Alternative prompts or system prompts by name, such as mitigations of a bias. Each variant is "
        "sent and measured like the probe itself, and reports compare the results.",
    )
    marks: tuple[Identifier, ...] = Field(
        default=(), min_length=1, description="pytest marks of the probe's items, such as [slow]."
    )

    _loaded: ProbeSource = PrivateAttr(default_factory=ProbeSource)

    def model_post_init(self, context: Any, /) -> None:
        """Store the file from which the probe is loaded; pydantic calls this method after validation."""
        if isinstance(context, ProbeSource):
            self._loaded = context

    @property
    def source(self) -> ProbeSource:
        return self._loaded

    @cached_property
    def sampling(self) -> records.Sampling:
        """The sampling parameters, with the probe's seed; the seed of each request is derived from the probe's seed."""
        settings = self.sampling_settings.model_dump(exclude={"extra"}, exclude_none=True)
        return records.Sampling.from_json({**settings, **self.sampling_settings.extra})

    @property
    def data_files(self) -> list[Path]:
        """Files in the probe's folder whose rows the probe reads."""
        values = (getattr(self, name) for name in type(self).model_fields)
        named = [value.file for value in values if isinstance(value, DataFile)]
        return [*named, *(self.responses.files if self.responses is not None else ())]

    @cached_property
    def language(self) -> Language:
        """The language, or the languages, of the answers, with the marks of thoughts that the probe declares."""
        language = shared_keys.to_language(self.language_settings)
        return replace(language, thoughts=self.answer.thoughts) if self.answer.thoughts else language

    @field_serializer("language_settings")
    def _digest_of_words(self, _: object) -> str:
        """Serialize the language as a digest, because stored measurements depend on its words."""
        return self.language.digest

    @cached_property
    def reading(self) -> AnswerReading:
        return AnswerReading()

    def stages(self) -> list[Stage]:
        """Return one stage for each interim analysis; a single stage if the number of trials does not grow."""
        if isinstance(self.trials, GrowingTrials):
            return [Stage(trials=trials) for trials in growing(self.trials.start, self.trials.max)]
        return [Stage()]

    @cached_property
    def reworded(self) -> Mapping[str, Self]:
        """One copy of the probe for each variant, with the variant's `system` or `prompt`; by the variant's name."""
        return {
            name: with_fields(self, **{key: text for key, text in wording if text is not None}, variants={})
            for name, wording in self.variants.items()
        }

    def placebo(self, labels: Mapping[str, str]) -> tuple[Self, Mapping[str, str]] | None:
        """Return a probe that compares two wordings of one group in place of two groups, and an item's labels in it.

        The value of an item there is the noise floor of its value here. Repeated calls return the same probe; `None` if
        this probe has no placebo.
        """
        return None

    @cached_property
    def follow_ups(self) -> FollowUps:
        return FollowUps()

    @cached_property
    def _system_prompt(self) -> str | None:
        """The system prompt in the form that is sent."""
        return None if self.system is None else field_types.block_text(self.system)

    def _request(
        self,
        text: str,
        trial: int,
        answer_format: AnswerFormat = "text",
        history: tuple[Message, ...] = (),
        tools: str = "",
    ) -> Request:
        """Return a request with the probe's system prompt and sampling; `trial` tells equal texts apart."""
        system, sampling = self._system_prompt, self.sampling
        return Request(text, system, sampling, trial, answer_format, history=history, tools=tools).with_own_seed()

    def prompts(self, trials: int | None = None) -> Iterator[Prompt]:
        """Return every prompt of the probe in the order of sending; nothing if the probe reads recorded answers.

        Equal prompts of several records, entities, cases or questions have requests of their own, so that each of them
        has an own answer; see `_asked_separately`. `trials` overrides the probe's own number.
        """
        return map(self._asked_separately, () if self.responses is not None else self._written_prompts(trials))

    def prompts_with(self, uses: Callable[[Mapping[str, str]], bool], trials: int | None = None) -> Iterator[Prompt]:
        """Return the prompts whose labels are used; kinds that may have many labels do not make the others."""
        return (prompt for prompt in self.prompts(trials) if uses(prompt.labels))

    @abstractmethod
    def _written_prompts(self, trials: int | None) -> Iterable[Prompt]:
        """Return the prompts in the order of sending; equal prompts with the same trial number have equal requests."""

    @property
    def shares_answers(self) -> bool:
        """True if equal prompts share one answer: at temperature 0, the model would give the same answer again."""
        return self.sampling.temperature == 0

    def _owner(self, labels: Mapping[str, str]) -> Mapping[str, str]:
        """Return the labels that distinguish equal prompts; prompts whose owners are equal share their answers."""
        return labels

    def _asked_separately(self, prompt: Prompt, first: Mapping[str, str] | None = None) -> Prompt:
        """Return the prompt with a trial number that no equal prompt of the probe has; see `SEPARATE_TRIALS`.

        The first of equal prompts keeps its request. If equal prompts share answers, all keep their requests. `first`
        are the labels of the prompt that `prompt` follows up.
        """
        if self.shares_answers or prompt.request.answer_format == "likelihood":
            return prompt
        copy = self.equal_prompts.copies.get(_hash_of(first or prompt.labels), 0)
        if not copy:
            return prompt
        request = replace(prompt.request, trial=prompt.request.trial + SEPARATE_TRIALS * copy, sampling=self.sampling)
        return replace(prompt, request=request.with_own_seed())

    @cached_property
    def equal_prompts(self) -> EqualPrompts:
        """The prompts that are equal to an earlier prompt of the probe, and the number of different prompts."""
        # Hashes, because there may be millions of prompts.
        owners: dict[int, int] = {}
        further: dict[int, dict[int, int]] = {}
        copies: dict[int, int] = {}
        units, texts = set[int](), set[int]()

        def first_trials() -> Iterator[Prompt]:
            prompts = self._written_prompts(1) if self.responses is None else ()
            return (prompt for prompt in prompts if not prompt.trial)

        for prompt in first_trials():
            request, owner = prompt.request, _hash_of(self._owner(prompt.labels))
            units.add(hash(self.unit_of(prompt.labels)))
            texts.add(asked_text(request))
            if owners.setdefault(hash(request), owner) != owner:
                numbers = further.setdefault(hash(request), {})
                copies[_hash_of(prompt.labels)] = numbers.setdefault(owner, 1 + len(numbers))
        numbers = {
            _hash_of(prompt.labels): hash(prompt.request)
            for prompt in (first_trials() if further else ())
            if hash(prompt.request) in further
        }
        return EqualPrompts(copies, numbers, len(units), len(texts))

    @cached_property
    def first_prompts(self) -> dict[frozenset[tuple[str, str]], str]:
        """The text of the first `FIRST_PROMPTS` prompts by their labels; empty for recorded answers."""
        try:
            prompts = islice(self.prompts(1), FIRST_PROMPTS)
            return {frozenset(prompt.labels.items()): prompt.request.prompt for prompt in prompts}
        except FairnessError:
            return {}

    @property
    def equal_prompts_text(self) -> str:
        """A phrase such as `1,000 records, 40 different prompts`; empty if all prompts of different units differ."""
        equal = self.equal_prompts
        if not equal.copies:
            return ""
        prompts = counted(equal.different, "different prompt")
        if equal.units <= equal.different:
            prompts = f"{prompts}, {len(equal.copies):,} equal to an earlier one"
        return f"{equal.units:,} {self.units}, {prompts}"

    def shared_prompt(self, labels: Mapping[str, str]) -> int | str | None:
        """Return a key that only answers to equal prompts of several units share; `None` if no other prompt is equal.

        The prompts of recorded answers are known only if the file has a column with them.
        """
        if self.responses is not None:
            return labels.get(ASKED)
        return self.equal_prompts.numbers.get(_hash_of(labels)) if self.equal_prompts.copies else None

    @property
    def asks_all_units(self) -> bool:
        """Return whether the probe asks all units that its files have, such as all templates of a published file."""
        return False

    @classmethod
    def faults(cls, data: Part, audits: Mapping[str, type[AuditSettings]]) -> Iterator[Diagnostic]:
        """Yield diagnostics for keys that contradict each other; the model checks each key alone.

        Args:
            data: the content of the file.
            audits: the settings models of the probe's audits, by audit.
        """
        yield from cls._shared_faults(data, audits)

    @classmethod
    def _shared_faults(
        cls,
        data: Part,
        audits: Mapping[str, type[AuditSettings]],
        columns: Collection[str] = ("text", "trial"),
        missing: Mapping[str, str] | None = None,
    ) -> Iterator[Diagnostic]:
        """Yield the diagnostics that all kinds share.

        Args:
            columns: names of the columns of files of answers that the probe reads.
            missing: the inputs that the probe lacks (see `AuditSettings.needs`), each with its remedy.
        """
        yield from field_types.unmet_needs(audits, missing or {})
        recorded, responses = field_types.is_recorded(data), data["responses"]
        for key, remedy in cls.sent_keys.items():
            if key not in data and not recorded:
                yield data.fault(f"`{key}` is missing: write {remedy}")
        for key in cls.request_keys:
            if key in data and recorded:
                yield data[key].key_fault(f"a probe with `responses` sends no requests: remove `{key}` or `responses`")
        elsewhere = cls.prompts_key or next((key for key in cls.prompt_keys[1:] if key in data), "")
        for variant in data["variants"].mappings:
            if elsewhere and "prompt" in variant:
                yield variant["prompt"].key_fault(
                    f"a variant of this probe can change only `system`, because the prompts are under `{elsewhere}`: "
                    "remove `prompt`"
                )
            elif isinstance(variant["prompt"].value, list) and not cls.several_prompts:
                yield variant["prompt"].fault("a probe of this kind has one prompt, not a list: write one text")
        for column in responses["columns"]:
            if isinstance(responses["columns"].value, Mapping) and column.name not in columns:
                near = suggestion(column.name, columns)
                yield column.key_fault(f"{quoted(column.name)} is not a column that this probe reads{near}")
        if cls.no_strata and "strata" in responses:
            yield responses["strata"].key_fault(f"{cls.no_strata}: remove `strata`")
        taken = {*columns, "category"}
        for stratum in () if cls.no_strata else responses["strata"].texts:
            if stratum.text in taken:
                yield stratum.fault(f"the probe already uses the column {stratum.quoted}: remove it from `strata`")
            taken.add(stratum.text)

    @abstractmethod
    def unit_of(self, labels: Mapping[str, str]) -> str:
        """Return the name of the unit (see `units`) to which a prompt or answer with these labels belongs."""

    def _source_fingerprint(self, **texts: str) -> dict[str, str]:
        """Return the part of the fingerprint that says where answers come from.

        It has the texts of the prompts and the system prompt or, for recorded answers, the columns and strata.
        """
        if self.responses is None:
            return {**texts, "system": field_types.block_text(self.system)}
        strata = {} if self.no_strata else {"strata": field_types.canonical(sorted(self.responses.strata))}
        return {"columns": field_types.canonical(self.responses.columns), **strata}

    @abstractmethod
    def fingerprint(self, labels: Mapping[str, str]) -> dict[str, str]:
        """Return the texts on which an item's prompts and the parsing of its answers depend, by readable name."""


def with_fields(probe: ProbeT, **fields: object) -> ProbeT:
    """Return a copy of a probe with new values of some fields; the new values are not validated."""
    copy = probe.model_copy(update=fields)
    # Remove cached properties, which were computed from the probe's own fields.
    for key in copy.__dict__.keys() - type(probe).model_fields.keys():
        del copy.__dict__[key]
    return copy
