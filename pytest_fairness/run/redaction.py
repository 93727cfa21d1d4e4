"""Bundles without texts of answers, or with parts of them hidden, from which all other numbers are measured again."""

from __future__ import annotations

import csv
import hmac
import io
import json
import os
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from pytest_fairness import kinds
from pytest_fairness.answers import reading
from pytest_fairness.asking.store import response_key
from pytest_fairness.baselines.entries import SCHEMA_VERSION, Entry, Row, answer_set_for, write_answers
from pytest_fairness.baselines.files import paths, read_baseline
from pytest_fairness.errors import FairnessError
from pytest_fairness.probes import table
from pytest_fairness.probes.base import Probe, ResponsesSettings
from pytest_fairness.probes.recorded_rows import Rows, text_field
from pytest_fairness.records import Answer, Explanation, Json, Prompt, Response
from pytest_fairness.run.archive import MOST_BYTES, BundleError, json_bytes, unpack, write_archive
from pytest_fairness.run.bundle import (
    ANSWERS,
    REPORT,
    RUN,
    OpenBundle,
    differences,
    is_python_test,
    line_of,
    open_bundle,
    verified,
)
from pytest_fairness.run.items import ProbeItem
from pytest_fairness.run.results import answer_from

REFUSAL = "I'm sorry, but I can't help with that request."
SHORT = 3
"""Largest number of characters of a text that is not hashed, such as `A` or `yes`."""
NUMBERS = ("verdict", "value", "interval", "standard_error", "p_value", "n", "missing", "limit", "tolerance")
"""Keys of an item of a report that must stay the same; its texts may change."""


@dataclass(frozen=True)
class Redaction:
    """Parts of the texts of answers to hide.

    Attributes:
        patterns: regular expressions; what matches is replaced by `[hidden]`.
        salt: secret with which whole texts are hashed, so that nobody can try out texts; `None` to keep texts.
    """

    patterns: Sequence[re.Pattern[str]] = ()
    salt: bytes | None = None

    def of(self, text: str) -> str:
        """Return the text as it is shown: with hidden parts or, if texts are hashed, as a hash."""
        if self.salt is not None:
            return f"hashed {hmac.new(self.salt, text.encode('utf-8', 'surrogatepass'), 'sha256').hexdigest()[:32]}"
        for pattern in self.patterns:
            text = pattern.sub("[hidden]", text)
        return text

    def in_place_of(self, text: str, read: Callable[[str], Answer], choices: Sequence[str] = ()) -> str:
        """Return a text that is read like this one, if there is any that shows no more than what was read.

        A choice or a number stands for itself, a refusal for every refusal; other texts are hidden, see `of`.
        """
        if self.salt is not None and len(text) <= SHORT:
            return text
        hidden = self.of(text)
        if self.salt is None:
            return hidden
        answer, content = read(text), read(hidden).content
        takes_any_text = content == hidden
        plain = answer.content if isinstance(answer.content, str | int | float) and not takes_any_text else None
        said = [] if plain is None else [f"{plain:g}" if isinstance(plain, float) else str(plain)]
        for candidate in (hidden, *said, *(() if takes_any_text else choices), REFUSAL):
            other = read(candidate)
            if other.status is answer.status and (takes_any_text or bool(other.content == answer.content)):
                return str(candidate)
        return hidden


def salt_of(folder: Path) -> bytes:
    """Return the salt of a project, a file that must stay secret; make it if there is none."""
    path = folder / "salt"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError), open(path, "xb", opener=_private) as file:
            file.write(secrets.token_bytes(32))
        return path.read_bytes()
    except OSError as error:
        raise FairnessError(f"{path}: the salt cannot be read or written ({error.strerror}).") from error


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def write_redacted(source: Path, output: Path, redaction: Redaction, most_bytes: int = MOST_BYTES) -> list[str]:
    """Write a bundle with hidden texts; return the items that cannot be measured again without the texts.

    Raises:
        FairnessError: the source is no bundle, or not as its maker stated; or the output cannot be written.
    """
    with TemporaryDirectory() as temporary:
        folder, place = Path(temporary).resolve() / "bundle", Path(temporary).resolve()
        folder.mkdir()
        archive = unpack(source, folder, most_bytes)
        (folder / "statement.json").unlink()
        if archive.changed or verified(archive, folder, place / "before.sqlite").found_changes:
            raise BundleError(f"{source}: is not as its maker stated (see `verify`), so that nothing of it is hidden.")
        with open_bundle(folder, place / "reading.sqlite") as bundle:
            report, described = dict(bundle.report), dict(bundle.described)
            answers, copies = _hidden_content(bundle, redaction)
        for copy, write in copies:
            write(copy)
        with (folder / ANSWERS).open("w", encoding="utf-8", newline="\n") as lines:
            lines.writelines(line_of(key, answers[key]) for key in sorted(answers))
        found = verified(archive, folder, place / "after.sqlite").found
        items: list[Json] = []
        hidden: list[list[str]] = list(described.get("hidden", ()))
        for plain in report["items"]:
            key = plain["nodeid"], plain["id"]
            same = key in found and not [*differences(_numbers(plain), _numbers(found[key]), "", loose=False)]
            items.append(dict(found[key]) if same else _without_texts(plain, redaction))
            if not same and plain["verdict"] != "error" and not is_python_test(plain["nodeid"]):
                hidden.append(list(key))
            if same and items[-1]["reason"].count("\0"):
                items[-1]["reason"] = items[-1]["reason"].replace("\0command\0", "pytest --fairness-rebaseline")
        (folder / REPORT).write_bytes(json_bytes({**report, "items": items}))
        (folder / RUN).write_bytes(json_bytes({**described, "hidden": hidden}))
        write_archive(output, folder, {**archive.predicate, "hidden": "all texts" if redaction.salt else "parts"})
        return [name for _, name in hidden]


def _numbers(item: Mapping[str, Json]) -> Json:
    change = {name: value for name, value in (item["change"] or {}).items() if isinstance(value, int | float | list)}
    return {**{name: item[name] for name in NUMBERS}, "change": change}


def _without_texts(item: Mapping[str, Json], redaction: Redaction) -> dict[str, Json]:
    """Return an item of a report without its texts, or with hidden parts of them."""
    if redaction.salt is None:
        hidden: dict[str, Json] = json.loads(redaction.of(json.dumps(item, ensure_ascii=False)))
        return hidden
    effect = item["effect"] and {**item["effect"], "description": ""}
    texts: dict[str, Json] = {
        "reason": "",
        "contributors": [],
        "concerns": [],
        "undecided": None,
        "details": {},
        "effect": effect,
    }
    return {**item, **texts, "explanation": Explanation().to_json()}


Copies = list[tuple[Path, Callable[[Path], None]]]


def _hidden_content(bundle: OpenBundle, redaction: Redaction) -> tuple[dict[str, Response | str], Copies]:
    """Return the answers with hidden texts by key, and the files to write anew with functions that write them."""
    known: Mapping[str, Response | str] = getattr(bundle.run.engines, "known", None) or {}
    answers: dict[str, Response | str] = {}
    copies: Copies = []
    seen: set[Path] = set()
    labels = {(item["nodeid"], item["id"]): item["labels"] for item in bundle.report["items"]}
    for (nodeid, name), target in bundle.targets.items():
        if is_python_test(nodeid):
            continue
        item = bundle.items.find(nodeid, name, labels[nodeid, name])
        for prompt in item.prompts() if item.asks else ():
            key = response_key("" if target is None else target.identity, prompt.request)
            if key in known and key not in answers:
                answers[key] = _hidden_response(known[key], prompt, item.probe, redaction)
        copies += [copy for copy in _hidden_files(bundle, item, redaction) if copy[0] not in seen]
        seen |= {path for path, _ in copies}
    if redaction.salt is None:  # answers to follow-up prompts, of judges and of embedding models
        rest = {key: found for key, found in known.items() if key not in answers}
        answers |= {key: _with_text(found, redaction.of) for key, found in rest.items()}
    return answers, copies


def _hidden_response(found: Response | str, prompt: Prompt, probe: Probe, redaction: Redaction) -> Response | str:
    if isinstance(found, str) or prompt.request.answer_format == "likelihood":
        return found
    without_calls = found if redaction.salt is None else replace(found, tool_calls=None)

    def read(text: str) -> Answer:
        own = found if text == found.text else without_calls
        return reading.answer(prompt, replace(own, text=text), probe.language)

    return _with_text(without_calls, lambda text: redaction.in_place_of(text, read, prompt.choices))


def _with_text(found: Response | str, hide: Callable[[str], str]) -> Response | str:
    if isinstance(found, str):
        return found
    return replace(found, text=hide(found.text), tool_calls=found.tool_calls and hide(found.tool_calls))


def _hidden_files(bundle: OpenBundle, item: ProbeItem, redaction: Redaction) -> Copies:
    """Return the files of an item that hold answers: its baseline, and its recorded answers."""
    copies: Copies = []
    folder, probe = bundle.run.settings.baselines, item.probe
    baseline = read_baseline(folder, item.baseline_name)
    if baseline is not None:
        summary, answers, packed = paths(folder, item.baseline_name)
        sets = {
            name: [_hidden_row(row, probe, redaction) for row in rows]
            for name, rows in (baseline.answer_sets or {}).items()
        }
        ids = {name: answer_set_for(rows, {}) for name, rows in sets.items()}
        entries = {name: _hidden_entry(entry, ids).to_json() for name, entry in baseline.items.items()}
        content = {"schema": SCHEMA_VERSION, "probe": item.baseline_name, "items": entries}
        new_sets = {ids[name] or "": rows for name, rows in sets.items()}

        def write(path: Path) -> None:
            path.write_bytes(json_bytes(content))
            answers.unlink(missing_ok=True)
            packed.unlink(missing_ok=True)
            write_answers(answers, new_sets)

        copies.append((summary, write))
    if probe.responses is not None:
        files = [(path, _hidden_table(path, probe, redaction)) for path in probe.responses.files]
        copies += [(path, write_bytes(content)) for path, content in files]
    return copies


def write_bytes(content: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(content)

    return write


def _hidden_table(path: Path, probe: Probe, redaction: Redaction) -> bytes:
    """Return a file of recorded answers with hidden texts; empty for Excel and Parquet, which are left out.

    With hashed texts, cells of columns that the probe does not use are hashed, too.
    """
    rows = cast("type[Rows[Probe]]", kinds.kind_of(probe).rows)(probe, cast("ResponsesSettings", probe.responses))
    content, used = rows.columns[rows.content_column], {*rows.columns.values()}
    texts: dict[str, str] = {}
    for answer in kinds.recorded_answers(probe):
        read = partial(_recorded, probe.reading.recorded_prompt(answer.labels, answer.trial), probe)
        text = answer.text or ""
        texts[text] = texts.get(text) or redaction.in_place_of(text, read)

    def hidden(column: str, value: Json) -> Json:
        if value is None or value == "" or (redaction.salt is not None and column in used and column != content):
            return value
        written = text_field(value)
        return texts.get(written, redaction.of(written)) if column == content else redaction.of(written)

    found = table.read(path, path.name)
    plain = [{name: hidden(name, value) for name, value in row.fields.items()} for row in found.rows]
    match path.suffix.casefold():
        case ".xlsx" | ".parquet":
            return b""
        case ".csv":
            written = io.StringIO()
            writer = csv.DictWriter(written, found.columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows(plain)
            return written.getvalue().encode()
        case ".json":
            return json_bytes(plain)
    return b"".join(json.dumps(row).encode() + b"\n" for row in plain)


def _recorded(prompt: Prompt, probe: Probe, text: str) -> Answer:
    return reading.recorded(prompt, text, probe.language)


def _hidden_row(row: Row, probe: Probe, redaction: Redaction) -> Row:
    if row.text is None:
        return row
    return replace(row, text=redaction.in_place_of(row.text, lambda text: answer_from(replace(row, text=text), probe)))


def _hidden_entry(entry: Entry, ids: Mapping[str, str | None]) -> Entry:
    new = ids.get(entry.answer_set or "")
    hidden = replace(entry, answer_set=new, reason=None, contributions=None)
    return hidden.sealed(new) if new is not None else hidden
