"""The frozen things that walk through a run, from the question asked to the verdict: plain data, to and from JSON.

Nothing here knows pytest, a network or a file.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal, Self

Json = Any
"""Any value that `json.dumps` takes as it stands."""

AnswerFormat = Literal["text", "list", "titles", "json", "likelihood", "embedding"]
Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the system under test draws an answer. What is `None` is not sent at all."""

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    seed: int | None = None

    def to_json(self) -> dict[str, float | int]:
        """Only what is set, by its name."""
        return {name: value for name in self.__slots__ if (value := getattr(self, name)) is not None}


@dataclass(frozen=True, slots=True)
class Request:
    """One question, exactly as it is asked: the unit of sending, of paying and of recording.

    Two requests that are equal are asked once. `sampling.seed` is the request's own; see `with_own_seed`.

    A request with the answer format `likelihood` asks for no text of the model's own, but for how likely it finds
    `continuation`, token by token, where `prompt` is what stands before it (possibly nothing). One with the
    answer format `embedding` asks a model of embeddings for the vector of `prompt`.
    """

    prompt: str
    system: str | None = None
    sampling: Sampling = field(default_factory=Sampling)
    trial: int = 0
    answer_format: AnswerFormat = "text"
    continuation: str | None = None

    def with_own_seed(self) -> Self:
        """Return the request with a seed derived from the probe's seed and from all that is asked, if there is one.

        Were two prompts sent the same seed, a server would draw both answers with the same random numbers, and every
        test of a difference between them takes for granted that they are independent.
        """
        if self.sampling.seed is None:
            return self
        return replace(self, sampling=replace(self.sampling, seed=self._derived_seed(self.sampling.seed)))

    @property
    def seed(self) -> int:
        """The seed for a target that always takes one, 0 to 2**31 - 1; reproducible, and another for each request."""
        return self._derived_seed(0) if self.sampling.seed is None else self.sampling.seed

    def _derived_seed(self, seed: int) -> int:
        asked = "\0".join([str(seed), str(self.trial), self.system or "", self.prompt, self.continuation or ""])
        digest = hashlib.sha256(asked.encode("utf-8", "surrogatepass")).digest()
        return int.from_bytes(digest[:4], "big") >> 1


MAX_LINE = 32 * 1024**2
"""Bytes of the longest line of a file of answers or data: an answer of the largest size by default with every character
escaped, and some room."""
TOO_LONG = "too_long"
"""Finish reason of an answer longer than `fairness_max_answer_bytes`; nothing of its text is kept."""


@dataclass(frozen=True, slots=True)
class Response:
    """What came back for one request, as it was recorded.

    Attributes:
        text: the answer as the system under test wrote it; possibly empty. Of a likelihood, JSON: `tokens`, the pieces
            of the continuation, and `log_probabilities`, a natural logarithm for each (`null` where it was not given).
            Of an embedding, JSON: `dimensions`, and `float32`, the vector as little-endian 32-bit numbers in base64.
        finish_reason: `stop`, `length` (cut off by `max_tokens`), `refusal` or `content_filter`, where the target says;
            or `TOO_LONG`.
        prompt_tokens, completion_tokens: as the target counts them; `None` where it does not say.
        created: seconds since the epoch, when the answer arrived.
        model, fingerprint: what the server says it answered with (`model` and `system_fingerprint`), where it does.
    """

    text: str
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    created: float = 0.0
    model: str | None = None
    fingerprint: str | None = None

    @property
    def served(self) -> str | None:
        """Return what answered, as reports show it: `gpt-x-2026-05 (fp_44709d)`; `None` where the server is silent."""
        if self.fingerprint is None:
            return self.model
        return f"{self.model or 'a model'} ({self.fingerprint})"


@dataclass(frozen=True, slots=True)
class Prompt:
    """A request together with what it stands for in its probe.

    `labels` are the probe's own names for the cell: the axes' values, and `prompt` (its number, from `"1"`) where a
    probe holds several prompts. `choices` are what may be answered, where that is one of few words.
    """

    request: Request
    labels: Mapping[str, str]
    trial: int
    choices: tuple[str, ...] = ()


class Status(StrEnum):
    """What became of one answer. Only `OK` is measured; everything else is missing, and counted by group."""

    OK = "ok"
    REFUSED = "refused"
    UNREADABLE = "unreadable"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Judging:
    """How a judge model is to read free answers.

    Attributes:
        question: what was asked, without what was said of anybody, for the judge to be blind to it.
        choices: one of which an answer may state.
        votes: how often the judge is asked about each answer; odd.
    """

    question: str
    choices: tuple[str, ...]
    votes: int


@dataclass(frozen=True, slots=True)
class Judged:
    """What a judge model read from an answer: its name, and vote by vote the choice, or `None` where it saw none."""

    by: str
    votes: tuple[str | None, ...]

    @property
    def majority(self) -> str | None:
        """The choice that more than half of the votes are for."""
        return next((vote for vote in self.votes if vote and 2 * self.votes.count(vote) > len(self.votes)), None)

    def to_json(self) -> dict[str, Json]:
        """Plain JSON, from which `from_json` makes an equal one."""
        return {"by": self.by, "votes": list(self.votes)}

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> Self:
        """What `to_json` wrote."""
        return cls(data["by"], tuple(data["votes"]))


@dataclass(frozen=True, slots=True)
class Answer:
    """One response, read: the unit of every text audit.

    Attributes:
        labels: as in `Prompt`.
        trial: number of the draw within its cell, from 0.
        text: what was written, or `None` where nothing came back.
        status: whether it can be measured.
        content: what was read from the text: a string for `text` and `json` (keys and values joined), a list of strings
            for `list` and `titles`, one of the choices where there are such, the known log-probabilities for
            `likelihood`; `None` unless `status` is `OK`.
        judged: what a judge model read, where one was asked; `content` is its majority then.
        truncated: whether the target cut the text off at `max_tokens` (finish reason `length`).
        error: of an answer that never came, why its request failed.
        served: which model the server says it answered with; see `Response.served`.
        embedding: vector of the text that the item's audit has embedded, as little-endian 32-bit numbers; `None` where
            the audit takes none, or no word is left to be embedded.
    """

    labels: Mapping[str, str]
    trial: int
    text: str | None
    status: Status
    content: Json = None
    judged: Judged | None = None
    truncated: bool = False
    error: str | None = None
    served: str | None = None
    embedding: bytes | None = field(default=None, repr=False)

    @property
    def usable(self) -> bool:
        """Whether the answer can be measured."""
        return self.status is Status.OK


@dataclass(frozen=True, slots=True)
class Concern:
    """A reason to doubt what was measured, found by a check of the answers themselves.

    Attributes:
        name: of the check, as reports group by it (`constant_answers`, `missing_answers`).
        message: a phrase for the verdict's reason, with the numbers and the cure.
        withholds: what cannot be given: a `pass`; a verdict that rests on a statistical `test`, as all do but those of
            `gate: point`; any `verdict` on the item, nor a baseline; or `nothing` for a note.
    """

    name: str
    message: str
    withholds: Literal["nothing", "pass", "test", "verdict"] = "pass"


@dataclass(frozen=True, slots=True)
class Measurement:
    """What an audit item measured in one run.

    Attributes:
        value: in the audit's unit (see the audit's own page).
        interval: two-sided 95 % interval of `value`, or `None` where the audit's value has none.
        standard_error: of `value`, same unit.
        p_value: of the hypothesis that the groups are alike, one-sided where the audit has a direction.
        degrees_of_freedom: of `standard_error`; `None` where it comes from so many units that the normal distribution
            holds.
        n: usable answers, by group.
        missing: answers that are refused, unreadable or failed, by group.
        details: everything else the report shows, plain JSON.
        concerns: reasons to doubt the measurement; see `audit.answer_checks`.
    """

    value: float
    interval: Interval | None
    standard_error: float | None
    p_value: float | None
    n: Mapping[str, int]
    missing: Mapping[str, int]
    details: Mapping[str, Json] = field(default_factory=dict)
    concerns: Sequence[Concern] = ()
    degrees_of_freedom: float | None = None

    @property
    def judgeable(self) -> bool:
        """Return whether a verdict can rest on the measurement; if not, it does not become a baseline either."""
        return all(concern.withholds != "verdict" for concern in self.concerns)

    def to_json(self) -> dict[str, Json]:
        """Plain JSON, from which `from_json` makes an equal measurement."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> Self:
        """The measurement that `to_json` wrote."""
        concerns = tuple(Concern(**concern) for concern in data["concerns"])
        known = {**data, **_numbers(data), "interval": _interval(data["interval"]), "concerns": concerns}
        return cls(**known)


@dataclass(frozen=True, slots=True)
class Reversal:
    """A disadvantage that changed sides: the group that is worse off now was better off in the baseline.

    The size of a gap does not show it: refusals of 40 and 10 % that become 10 and 40 % leave a gap of 0.3.

    Attributes:
        value: size of the gap now, in the audit's unit.
        p_value: of the hypothesis that nothing changed, two-sided.
        description: both gaps as a phrase for the verdict's reason.
    """

    value: float
    p_value: float
    description: str

    @classmethod
    def tested(cls, value: float, p_value: float, description: str) -> Self:
        """Return a reversal with twice the p-value of its test: it is a second test beside that of the change."""
        return cls(value, min(1.0, 2 * p_value), description)


@dataclass(frozen=True, slots=True)
class Comparison:
    """How far an audit item moved from its baseline, in the direction in which the audit gets worse.

    Attributes:
        value: change since the baseline; positive is worse.
        interval: two-sided 95 %.
        standard_error: of `value`.
        p_value: one-sided, of the hypothesis that nothing changed.
        paired: whether the baseline's own answers were at hand; if not, only its stored value and standard error were.
        details: what the report shows of the change, plain JSON.
        degrees_of_freedom: of `standard_error`; `None` for the normal distribution.
        reversal: a gap that now favours another group; `None` where the same group is worse off, or none is.
    """

    value: float
    interval: Interval | None
    standard_error: float | None
    p_value: float | None
    paired: bool = True
    details: Mapping[str, Json] = field(default_factory=dict)
    degrees_of_freedom: float | None = None
    reversal: Reversal | None = None

    def to_json(self) -> dict[str, Json]:
        """Plain JSON, from which `from_json` makes an equal comparison."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> Self:
        """The comparison that `to_json` wrote."""
        reversal = None if data["reversal"] is None else Reversal(**data["reversal"])
        return cls(**{**data, **_numbers(data), "interval": _interval(data["interval"]), "reversal": reversal})


def _numbers(data: Mapping[str, Json]) -> dict[str, float | None]:
    """Return the numbers of a measurement or comparison; raise `TypeError` where one is something else."""
    optional = {name: data[name] for name in ("standard_error", "p_value", "degrees_of_freedom")}
    return {"value": data["value"] + 0, **{name: None if one is None else one + 0 for name, one in optional.items()}}


def _interval(pair: Json) -> Interval | None:
    return None if pair is None else (float(pair[0]), float(pair[1]))


class VerdictName(StrEnum):
    """The eight verdicts of an item."""

    PASS = "pass"  # noqa: S105 - a verdict, not a password
    REGRESSION = "regression"
    OVER_LIMIT = "over-limit"
    INCONCLUSIVE = "inconclusive"
    NO_BASELINE = "no-baseline"
    STALE_BASELINE = "stale-baseline"
    NOT_MEASURABLE = "not-measurable"
    ERROR = "error"

    @property
    def outcome(self) -> Literal["passed", "failed", "inconclusive", "error"]:
        """How pytest counts it."""
        match self:
            case VerdictName.PASS:
                return "passed"
            case VerdictName.INCONCLUSIVE:
                return "inconclusive"
            case VerdictName.NOT_MEASURABLE | VerdictName.ERROR:
                return "error"
            case _:
                return "failed"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision on one item.

    Attributes:
        name: of the verdict.
        reason: one line, with the numbers.
        minimum_detectable: smallest true worsening that a run of this size finds with 80 % power.
        significant: whether the change is significantly worse than none at the item's alpha, within tolerance or not.
        upper_bound: one-sided 95 % upper bound of the change; `None` where there is none.
    """

    name: VerdictName
    reason: str
    minimum_detectable: float | None = None
    significant: bool = False
    upper_bound: float | None = None


@dataclass(frozen=True, slots=True)
class ItemResult:
    """Everything known of one audit item at its end.

    Attributes:
        baseline: `{"value", "target", "date"}` or `None`.
        examples: answers to be read side by side; see `run.examples`.
        system: the probe's own system prompt.
        method: description of the audit; see `AuditInfo.to_json`.
        finding: what a failed item found, in words, as plain JSON; see `audits.findings.Finding`.
    """

    nodeid: str
    probe: str
    id: str
    audit: str
    labels: Mapping[str, str]
    verdict: Verdict
    measurement: Measurement | None = None
    comparison: Comparison | None = None
    limit: float | None = None
    tolerance: float | None = None
    baseline: Mapping[str, Json] | None = None
    category: str | None = None
    examples: Sequence[Mapping[str, Json]] = ()
    system: str | None = None
    method: Mapping[str, Json] = field(default_factory=dict)
    finding: Mapping[str, Json] | None = None

    def to_plain(self) -> dict[str, Json]:
        """Plain JSON with everything in it, from which `from_plain` makes an equal result."""
        return asdict(self)

    @classmethod
    def from_plain(cls, data: Mapping[str, Json]) -> Self:
        """The result that `to_plain` wrote."""
        verdict, measurement, comparison = data["verdict"], data["measurement"], data["comparison"]
        return cls(
            **{
                **data,
                "verdict": Verdict(**{**verdict, "name": VerdictName(verdict["name"])}),
                "measurement": None if measurement is None else Measurement.from_json(measurement),
                "comparison": None if comparison is None else Comparison.from_json(comparison),
            }
        )

    def to_json(self) -> dict[str, Json]:
        """The item as the JSON report's schema 1 has it; plain JSON, non-finite numbers as `null`."""
        measurement, comparison = self.measurement, self.comparison
        plain: dict[str, Json] = without_nonfinite(
            {
                "nodeid": self.nodeid,
                "probe": self.probe,
                "id": self.id,
                "audit": self.audit,
                "labels": dict(self.labels),
                "verdict": self.verdict.name.value,
                "reason": self.verdict.reason,
                "value": measurement and measurement.value,
                "interval": measurement and measurement.interval and list(measurement.interval),
                "standard_error": measurement and measurement.standard_error,
                "p_value": measurement and measurement.p_value,
                "n": dict(measurement.n) if measurement else {},
                "missing": dict(measurement.missing) if measurement else {},
                "concerns": [asdict(concern) for concern in measurement.concerns] if measurement else [],
                "minimum_detectable": self.verdict.minimum_detectable,
                "limit": self.limit,
                "tolerance": self.tolerance,
                "baseline": dict(self.baseline) if self.baseline else None,
                "change": comparison
                and {
                    "value": comparison.value,
                    "interval": comparison.interval and list(comparison.interval),
                    "p_value": comparison.p_value,
                    "significant": self.verdict.significant,
                    "upper_bound": self.verdict.upper_bound,
                },
                "details": {
                    **(measurement.details if measurement else {}),
                    **(comparison.details if comparison else {}),
                    **({"examples": list(self.examples)} if self.examples else {}),
                },
            }
        )
        return plain


def without_nonfinite(value: Json) -> Json:
    """The same JSON with NaN and infinities as `None`, which JSON can hold."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): without_nonfinite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_nonfinite(item) for item in value]
    return value
