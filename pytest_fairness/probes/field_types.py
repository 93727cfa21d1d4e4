"""Field types that the models of probe files share, and the validation context of the file that is being loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Discriminator, Field, Tag, ValidationInfo
from pydantic_core import PydanticCustomError

from pytest_fairness.probes.audit_settings import AuditSettings, list_or_other
from pytest_fairness.probes.diagnostics import Diagnostic, quoted, raise_diagnostics, similar_file, suggestion

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


@dataclass(frozen=True, slots=True)
class ProbeSource:
    """File that is being loaded; pydantic passes it to all validators as the validation context.

    Attributes:
        path: the probe file.
        root: folder to which paths in messages are relative, if the paths are inside this folder.
        audits: the validated settings of the probe's audits, in the file's order.
        lines: the line of each audit's name in the file, from 1.
        scorers: the scorers that the probe may name, each with its definition (`python:checks:politeness`); `None` if
            the probe is loaded without the settings of a run, so that names of scorers are not checked.
    """

    path: Path = Path("probe.yaml")
    root: Path | None = None
    audits: Mapping[str, AuditSettings] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)
    scorers: Mapping[str, str] | None = None

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
    quoted_path = quoted(path.as_posix())
    try:
        folder = probe_source(info).path.parent.resolve()
        found = (folder / path).resolve()
        inside = found.is_relative_to(folder) and not path.is_absolute()
        exists = inside and found.is_file()
    except (OSError, ValueError, RuntimeError):
        raise PydanticCustomError("file", "{named} is not a file that can be read", {"named": quoted_path}) from None
    if not inside:
        raise PydanticCustomError(
            "file", "{named} lies outside the probe's folder: put it beside the probe file", {"named": quoted_path}
        )
    if not exists:
        raise PydanticCustomError(
            "file",
            "there is no file {named} in the probe's folder{meant}",
            {"named": quoted_path, "meant": similar_file(folder / path)},
        )
    return found


def matching(path: Path) -> list[Path]:
    """Return the file at an absolute path; if there is no such file, the files that match the path as a pattern."""
    if path.is_file():
        return [path]
    folder = next(parent for parent in path.parents if parent.is_dir())
    return sorted(file for file in folder.glob(path.relative_to(folder).as_posix()) if file.is_file())


def _files_inside_folder(path: Path, info: ValidationInfo) -> Path:
    """Return the absolute path, or the absolute pattern, of files that a probe names.

    Raise an error if there is no such file, or if a file is outside of the probe's folder.
    """
    folder = probe_source(info).path.parent.resolve()
    if not any(mark in part for mark in "*?[" for part in path.parts) or (folder / path).is_file():
        return _inside_folder(path, info)
    if path.is_absolute() or ".." in path.parts:
        raise PydanticCustomError(
            "file",
            "{named} lies outside the probe's folder: put the files beside the probe file",
            {"named": quoted(path.as_posix())},
        )
    found = matching(folder / path)
    if not found:
        elsewhere = next(iter(matching(folder / "**" / path.name)), None)
        hint = ""
        if elsewhere is not None:
            found_path = quoted(elsewhere.relative_to(folder).as_posix())
            hint = f"; {found_path} has such a name: correct the folder in the pattern"
        raise PydanticCustomError(
            "file", "no file in the probe's folder matches {named}", {"named": quoted(path.as_posix()) + hint}
        )
    for file in found:
        _inside_folder(file.relative_to(folder), info)
    return folder / path


def require_suffix(file: Path, suffixes: Sequence[str], holds: str) -> None:
    """Raise an error if the name of a file ends in none of the suffixes; `holds` is a noun for the file's rows."""
    if file.suffix.casefold() not in suffixes:
        raise PydanticCustomError(
            "file",
            "{named} is not a file of {holds}: its name must end in {suffixes}",
            {"named": quoted(file.name), "holds": holds, "suffixes": ", ".join(suffixes)},
        )


ProbeFile = Annotated[Path, AfterValidator(_inside_folder)]
"""A file that a probe names, by a relative path inside the probe's folder; the file must exist."""
ProbeFiles = Annotated[Path, AfterValidator(_files_inside_folder)]
"""One or several files that a probe names, by a relative path or pattern (`answers/*.csv`) inside the probe's folder;
at least one file must exist."""


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
