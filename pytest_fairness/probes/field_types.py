"""Base model of settings, field types that the models of probe files share, and checks of keys."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, PlainSerializer, Tag, ValidationInfo

from pytest_fairness.options import MAX_TRIALS
from pytest_fairness.probes.diagnostics import Diagnostic, Part, quoted, raise_diagnostics, similar_file, suggestion
from pytest_fairness.records import Json

# Field types that the models of probe files share, and the validation context of the file that is being loaded.

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
IDENTIFIER = r"^[A-Za-z_][A-Za-z0-9_]{0,99}$"
SOMETHING = r"\S"
LINE = r"^[^\x00-\x1f\x7f]*[^\x00-\x20\x7f][^\x00-\x1f\x7f]*$"
# Case names are part of item ids, in which `/`, `=` and brackets have a meaning.
CASE = r"^[^\x00-\x20\x7f/=\[\]]([^\x00-\x1f\x7f/=\[\]]{0,98}[^\x00-\x20\x7f/=\[\]])?$"
EMBEDDER = r"^(openai|transformers):[^\x00-\x20\x7f]([^\x00-\x1f\x7f]*[^\x00-\x20\x7f])?$"
PATTERNS = {
    NAME: "must consist of letters, digits, '.', '_' and '-', and begin with a letter or digit, "
    "to be part of file names",
    IDENTIFIER: "must consist of letters, digits and '_', and not begin with a digit",
    SOMETHING: "must not be empty",
    LINE: "must be one line of text, and not empty",
    EMBEDDER: "must be openai:MODEL or transformers:ID_OR_PATH",
    CASE: "must be one line of at most 100 characters without '/', '=', '[' and ']', to be part of item ids",
}
"""Description of each pattern, for messages."""

Text = Annotated[str, Field(pattern=SOMETHING)]
Line = Annotated[str, Field(pattern=LINE)]
Name = Annotated[str, Field(pattern=NAME)]
Identifier = Annotated[str, Field(pattern=IDENTIFIER)]
CaseName = Annotated[str, Field(pattern=CASE)]


# Settings that every audit has; an audit with more settings derives a class from `AuditSettings`.


class ProbeModel(BaseModel):
    """Base of all pydantic models of a probe file: unknown keys are errors, and objects are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class ExpectedFailure(ProbeModel):
    """Setting `xfail` of an audit, written as a mapping."""

    reason: str = Field(min_length=1, description="Why the failure is accepted for now.")
    groups: tuple[str, ...] | None = Field(
        default=None,
        min_length=1,
        description="Items whose failure is accepted, such as [gender=woman] for the item `jsd[gender=woman]`. "
        "Default: all items of the audit.",
    )
    strict: bool | None = Field(
        default=None,
        description="Whether the run fails if an item with an accepted failure no longer fails. Default: pytest's "
        "`xfail_strict`.",
    )


class AuditSettings(ProbeModel):
    """Settings that every audit has under a probe's key `audits`.

    Class attributes:
        needs: name of an input that the audit requires of the probe, such as `truth`; empty if the audit requires
            nothing. Each kind of probe has its own remedies for missing inputs; see `unmet_needs`.
        item_labels: names of labels that the audit adds to its items; no axis may have these names.
    """

    needs: ClassVar[str] = ""
    item_labels: ClassVar[tuple[str, ...]] = ()

    limit: float | None = Field(
        default=None, description="Worst acceptable value. Without it, the value is only compared with the baseline."
    )
    tolerance: float | None = Field(
        default=None, ge=0, description="Worst acceptable change from the baseline. Default: depends on the audit."
    )
    gate: Literal["significant", "bound", "strict", "point"] = Field(
        default="significant",
        description="Decision rule. significant: fail if the estimated worsening exceeds the tolerance and is "
        "significant; pass if the upper confidence bound of the worsening is within twice the tolerance; otherwise "
        "inconclusive. bound: as `significant`, but fail only if the lower confidence bound exceeds the tolerance. "
        "strict: as `significant`, but pass only if the upper confidence bound of the worsening is within the "
        "tolerance and, with `limit`, the upper confidence bound of the value is within the limit. point: fail if the "
        "estimate exceeds the tolerance or the limit, otherwise pass; without a statistical test.",
    )
    skip: str | None = Field(
        default=None,
        min_length=1,
        description="Reason why this audit is skipped; with this key, the audit does not run.",
    )
    xfail: Annotated[str, Field(min_length=1)] | ExpectedFailure | None = Field(
        default=None,
        description="Accept a failure of this audit for now: the reason, or a mapping with `reason`, `groups` and "
        "`strict`.",
    )

    def expected_failure(self, subject: str | None) -> ExpectedFailure | None:
        """Return the setting `xfail` if it applies to the item with this subject (`gender=woman`), otherwise `None`."""
        mark = ExpectedFailure(reason=self.xfail) if isinstance(self.xfail, str) else self.xfail
        return mark if mark is not None and (mark.groups is None or subject in mark.groups) else None


@dataclass(frozen=True, slots=True)
class ProbeSource:
    """File that is being loaded; pydantic passes it to all validators as the validation context.

    Attributes:
        root: folder to which paths in messages are relative, if the paths are inside this folder.
        lines: the line of each audit's name in the file, from 1.
        scorers: the scorers that the probe may name, each with its definition (`python:checks:politeness`); `None` if
            the probe is loaded without the settings of a run, so that names of scorers are not checked.
        files: the files that the probe names; loading adds them.
    """

    path: Path = Path("probe.yaml")
    root: Path | None = None
    audits: Mapping[str, AuditSettings] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)
    scorers: Mapping[str, str] | None = None
    files: set[Path] = field(default_factory=set)

    def line_of(self, audit: str) -> int:
        """Return the number of the line that names an audit; 1 for a probe without a file."""
        return self.lines.get(audit, 1)


def display_path(path: Path, root: Path | None) -> str:
    """Return a path for messages: with forward slashes, and relative to `root` if the path is inside of `root`."""
    if root is not None and path.is_absolute() and path.is_relative_to(root):
        path = path.relative_to(root)
    return path.as_posix()


def probe_source(info: ValidationInfo) -> ProbeSource:
    """Return the file that is being loaded; the default `ProbeSource` if a model is validated without a file."""
    return info.context if isinstance(info.context, ProbeSource) else ProbeSource()


def _known_scorer(name: str, info: ValidationInfo) -> str:
    """Return the name of a scorer; raise an error if the run has no such scorer."""
    scorers = probe_source(info).scorers
    if scorers is not None and name not in scorers:
        cure = suggestion(name, scorers)
        message = f"there is no scorer {quoted(name)}, neither in `fairness_scorers` (ini file) nor built in{cure}"
        raise_diagnostics([Diagnostic((), message)])
    return name


ScorerName = Annotated[Line, AfterValidator(_known_scorer)]
"""Name of a scorer that the run knows."""


def _inside_folder(path: Path, info: ValidationInfo) -> Path:
    """Return the absolute path of a file that a probe names; raise an error if the probe's folder does not hold it."""
    named = quoted(path.as_posix())
    try:
        folder = probe_source(info).path.parent.resolve()
        found = (folder / path).resolve()
        inside = found.is_relative_to(folder) and not path.is_absolute()
        exists = inside and found.is_file()
    except (OSError, ValueError, RuntimeError):
        raise ValueError(f"{named} is not a file that can be read") from None
    if not inside:
        raise ValueError(f"{named} lies outside the probe's folder: put it beside the probe file")
    if not exists:
        raise ValueError(f"there is no file {named} in the probe's folder{similar_file(folder / path)}")
    probe_source(info).files.add(probe_source(info).path.parent / path)
    return found


def matching(path: Path) -> list[Path]:
    """Return the file at an absolute path or, without such a file, the files that match it as a pattern."""
    if path.is_file():
        return [path]
    folder = next(parent for parent in path.parents if parent.is_dir())
    return sorted(file for file in folder.glob(path.relative_to(folder).as_posix()) if file.is_file())


def _files_inside_folder(path: Path, info: ValidationInfo) -> Path:
    """Return the absolute path, or pattern, of files that must exist inside the probe's folder."""
    folder = probe_source(info).path.parent.resolve()
    if not any(mark in part for mark in "*?[" for part in path.parts) or (folder / path).is_file():
        return _inside_folder(path, info)
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(
            f"{quoted(path.as_posix())} lies outside the probe's folder: put the files beside the probe file"
        )
    found = matching(folder / path)
    if not found:
        elsewhere = next(iter(matching(folder / "**" / path.name)), None)
        hint = ""
        if elsewhere is not None:
            found_path = quoted(elsewhere.relative_to(folder).as_posix())
            hint = f"; {found_path} has such a name: correct the folder in the pattern"
        raise ValueError(f"no file in the probe's folder matches {quoted(path.as_posix())}{hint}")
    for file in found:
        _inside_folder(file.relative_to(folder), info)
    return folder / path


def require_suffix(file: Path, suffixes: Sequence[str], holds: str) -> None:
    """Raise an error if the name of a file ends in none of the suffixes; `holds` is a noun for the file's rows."""
    if file.suffix.casefold() not in suffixes:
        raise ValueError(f"{quoted(file.name)} is not a file of {holds}: its name must end in {', '.join(suffixes)}")


def digest(file: Path) -> str:
    """Return a digest of a file's content, on which stored measurements depend, in place of its path."""
    return sha256(file.read_bytes()).hexdigest()


ProbeFile = Annotated[Path, AfterValidator(_inside_folder), PlainSerializer(digest)]
"""A file that a probe names, by a relative path inside the probe's folder; the file must exist."""
ProbeFiles = Annotated[Path, AfterValidator(_files_inside_folder)]
"""One or several files that a probe names, by a relative path or pattern (`answers/*.csv`) inside the probe's folder;
at least one file must exist."""


def list_or_other(value: object) -> str:
    return "list" if isinstance(value, Sequence) and not isinstance(value, str) else "other"


Texts = Annotated[
    Annotated[Text, Tag("other")] | Annotated[tuple[Text, ...], Tag("list"), Field(min_length=1)],
    Discriminator(list_or_other),
]
"""Type of one text or a list of texts."""


def texts(value: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the texts of a field (one text, a list or nothing), without the final line ends of YAML's block style."""
    written = () if value is None else (value,) if isinstance(value, str) else value
    return tuple(map(block_text, written))


def block_text(text: str | None) -> str:
    """Return a text without the final line end that YAML's block style adds; an empty text for `None`."""
    return (text or "").rstrip("\n")


def mapping_or_other(value: object) -> str:
    # When a model is serialised, pydantic passes the model instead of a mapping.
    return "mapping" if isinstance(value, Mapping | ProbeModel) else "other"


def text_or_other(value: object) -> str:
    return "text" if isinstance(value, str) else "other"


# Checks that keys of a probe file fit together; several kinds of probe share these checks. See `Part`.

MAX_PROMPTS = 1_000_000
"""Maximum number of prompts of one probe; a larger number is more likely a typing error than intended."""


def folded(text: str) -> str:
    """Return the text in the form in which names are compared: composed (NFC), in lower case, with single blanks."""
    composed = text if text.isascii() else unicodedata.normalize("NFC", text)
    return " ".join(composed.casefold().split())


def is_recorded(data: Part) -> bool:
    return data["responses"].value is not None


def repeats(parts: Iterable[Part], rule: str, form: Callable[[str], str] = folded) -> Iterator[Diagnostic]:
    seen: set[str] = set()
    for part in parts:
        if part.is_text:
            if form(part.text) in seen:
                yield part.fault(f"{part.quoted} is repeated: {rule}")
            seen.add(form(part.text))


def unmet_needs(
    audits: Mapping[str, AuditSettings | type[AuditSettings]], missing: Mapping[str, str]
) -> Iterator[Diagnostic]:
    for name, settings in audits.items():
        if settings.needs in missing:
            yield Diagnostic(("audits", name), f"`{name}` needs {missing[settings.needs]}", at_key=True)


def most_trials(data: Part, default: int) -> int:
    """Return the (largest) number of trials under a file's key `trials`; 0 if its value is invalid."""
    trials = data["trials"]
    most = trials["max"].value if "max" in trials else trials.value if "trials" in data else default
    return most if isinstance(most, int) and most <= MAX_TRIALS else 0


def capped_product(sizes: Iterable[int]) -> int:
    """Return the product of the sizes, but at most `MAX_PROMPTS` + 1."""
    product = 1
    for size in sizes:
        # Stop early: in a hostile file, the product could have so many digits that it fills the memory.
        product = min(product * size, MAX_PROMPTS + 1)
    return product


def too_many_prompts(data: Part, count: int, factors: str, key: str) -> Iterator[Diagnostic]:
    """Yield a diagnostic at a key if the probe would send more than a million prompts."""
    if count > MAX_PROMPTS and not is_recorded(data):
        yield data[key].key_fault(f"the {factors} make more than {MAX_PROMPTS:,} prompts: reduce one of them")


def canonical(value: Json) -> str:
    """Return the JSON text of a value; equal values give equal texts."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


# Search terms: words, phrases, and stems such as `lead*`.

STEM = "*"
"""Mark at the end of a stem; a stem matches every word that begins with the stem."""
SHORTEST_STEM = 2
"""Minimum number of letters of a stem: a shorter stem would match too many words."""


def normalized_term(text: str) -> str:
    """Return a text in the form in which search terms are compared.

    The form is in lower case and in the Unicode form NFKC, with straight apostrophes; each run of blanks and hyphens
    is replaced by a single blank.
    """
    plain = unicodedata.normalize("NFKC", text).casefold().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    return " ".join(part for part in re.split(r"[\s-]+", plain) if part)


def term_error(term: str, noun: str = "term") -> str | None:
    """Return the error message for an invalid term; `None` if the term is valid."""
    parts = normalized_term(term).split(" ")
    if not any(character.isalnum() for character in "".join(parts)):
        return f"{quoted(term)}: a {noun} must contain a letter or digit"
    for part in parts:
        stem = part.removesuffix(STEM)
        if STEM in stem:
            return f"{quoted(term)}: `*` is allowed only at the end of a word, as in lead*"
        if stem != part and sum(character.isalnum() for character in stem) < SHORTEST_STEM:
            return f"{quoted(term)}: a stem must have at least {SHORTEST_STEM} letters before its `*`, as in lead*"
    return None


def term_errors(terms: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield the index and the error message of each term that is invalid or repeats an earlier term."""
    seen: set[str] = set()
    for place, term in enumerate(terms):
        if (message := term_error(term)) is not None:
            yield place, message
        elif (form := normalized_term(term)) in seen:
            yield place, f"{quoted(term)} is repeated: write each term once"
        else:
            seen.add(form)


# Checks that names are valid file names, and name different files, on every operating system.

_RESERVED = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?", re.IGNORECASE | re.DOTALL)
_FORBIDDEN = re.compile(r'^\.|[/\\:*?"<>|]')


def name_problem(name: str) -> str | None:
    """Return the reason why a name is not valid as a file name on every operating system; `None` if it is valid."""
    if not name.strip() or not name.isprintable() or _FORBIDDEN.search(name):
        return 'a file name must not be blank, begin with a dot, or have / \\ : * ? " < > | or invisible characters'
    if _RESERVED.fullmatch(name):
        return "Windows reserves this name"
    if name.endswith((" ", ".")):
        return "Windows drops a dot or a blank at the end of a name"
    return None


def name_key(name: str) -> str:
    """Return a key that is equal for names of the same file on systems that ignore letter case (Windows, macOS)."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
