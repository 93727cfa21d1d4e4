"""Archive of a bundle: a ZIP file with a statement of its digests, read without trust; signatures beside it."""

from __future__ import annotations

import json
import re
import shutil
import struct
import subprocess
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import IO, Any

from pytest_fairness.errors import FairnessError, one_line
from pytest_fairness.probes.field_types import name_problem
from pytest_fairness.records import Json
from pytest_fairness.resources import replace_file

# Writer: equal members make an equal file, because nothing of the machine or of the time is written.

STATEMENT = "statement.json"
"""Member with the digests of all other members: an in-toto Statement, version 1."""
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:pytest-fairness:bundle:1"

_DATE = (1980, 1, 1, 0, 0, 0)
_BLOCK = 1 << 20


def write_archive(path: Path, folder: Path, predicate: Mapping[str, Json]) -> None:
    """Write all files of a folder, and the statement of their digests, as a ZIP file.

    Raises:
        FairnessError: the file cannot be written.
    """
    members = {file.relative_to(folder).as_posix(): file for file in folder.rglob("*") if file.is_file()}
    statement = {
        "_type": STATEMENT_TYPE,
        "subject": [
            {"name": name, "digest": {"sha256": sha256(members[name].read_bytes()).hexdigest()}}
            for name in sorted(members)
        ],
        "predicateType": PREDICATE_TYPE,
        "predicate": dict(predicate),
    }
    content = BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(_member(STATEMENT), json_bytes(statement))
        for name in sorted(members):
            archive.writestr(_member(name), members[name].read_bytes())
    try:
        replace_file(path, content.getvalue())
    except OSError as error:
        raise FairnessError(f"{path}: cannot be written ({error.strerror}). Name another file.") from error


def json_bytes(value: Json) -> bytes:
    return (json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode(
        "utf-8", "backslashreplace"
    )


def _member(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _DATE)
    info.create_system, info.external_attr, info.compress_type = 3, 0o100644 << 16, zipfile.ZIP_DEFLATED
    return info


# Reader. The file may come from anybody: sizes, names and kinds of members are checked before anything is decompressed,
# and each byte outside of the members' data must be as the writer would write it.

MOST_MEMBERS = 10_000
MOST_BYTES = 256 * 1024**2
"""Default for the largest sum of the sizes of all members after decompression, gzip files among them included."""
MOST_PARSED = 64 * 1024**2
"""Largest size of a member, or of a line of a member, that is parsed as JSON at once."""
MOST_VALUES = 1_500_000
"""Largest number of values in such a JSON text; each takes memory, however short its text is."""
_LONGEST_NAME = 240
_AS_WRITTEN = (
    *("date_time", "create_system", "create_version", "extract_version", "compress_type", "extra", "comment"),
    *("internal_attr", "external_attr", "volume", "reserved"),
)
"""Fields of the table of members in which the writer's members are equal."""
_END = struct.Struct("<4s4H2LH")
_LENGTHS = struct.Struct("<3H")
_HEADER, _ENTRY = 30, 46
_NAMES = re.compile(r"(?:run\.json|report\.json|answers\.jsonl|project/.+)")
_SUFFIXES = (
    *(".yaml", ".yml", ".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".txt", ".md"),
    *(".data", ".test", ".toml", ".xlsx", ".parquet", ".gz"),
)


class BundleError(FairnessError):
    """Error of a file that is no bundle, or a damaged or a dangerous one; nothing of its content was used."""


@dataclass(frozen=True)
class Archive:
    """Content of a bundle, unpacked into a folder.

    Attributes:
        predicate: what the statement says of the run.
        changed: names of the members whose digest is not that of the statement, or that are in only one of both.
        digest: SHA-256 of the bundle's file.
    """

    predicate: Mapping[str, Json]
    changed: list[str]
    digest: str


def unpack(path: Path, folder: Path, most_bytes: int = MOST_BYTES) -> Archive:
    """Unpack a bundle into an empty folder, and compare the digests of its members with its statement.

    Raises:
        BundleError: the file is no bundle, is damaged, or is larger after decompression than `most_bytes`.
    """
    digests: dict[str, str] = {}
    try:
        with path.open("rb") as file:
            digest = sha256()
            while block := file.read(_BLOCK):
                digest.update(block)
            entries = _entries(path, file)
            members = _checked_members(path, file, entries, most_bytes)
            left = most_bytes
            for info in members:
                target = folder / info.filename
                target.parent.mkdir(parents=True, exist_ok=True)
                with entries.open(info) as source, target.open("xb") as unpacked:
                    digests[info.filename] = _copied(source, unpacked)
                left -= info.file_size
                if info.filename.endswith(".gz"):
                    left -= _size_of_gzip(target, left)
                if left < 0:
                    raise BundleError(_too_large(path, most_bytes))
    except OSError as error:
        raise BundleError(f"{path}: cannot be read ({error.strerror or one_line(error)}).") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, struct.error) as error:
        raise BundleError(f"{path}: is damaged, or no bundle ({one_line(error)}).") from error
    stated, predicate = _statement(path, folder / STATEMENT)
    del digests[STATEMENT]
    names = sorted({*stated, *digests})
    changed = [name for name in names if stated.get(name) != digests.get(name)]
    return Archive(predicate, changed, digest.hexdigest())


def parsed(path: Path, content: bytes) -> Json:
    """Return the value of a JSON text, whose size and number of values are checked before.

    Raises:
        BundleError: the text is no JSON or too large; the message names the file.
    """
    if len(content) > MOST_PARSED or sum(map(content.count, (b",", b"[", b"{"))) > MOST_VALUES:
        raise BundleError(f"{path.name}: is too large to be read at once.")
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{path.name}: is not JSON ({one_line(error)}).") from error


def parsed_lines(path: Path) -> Iterator[Json]:
    """Yield the values of a file with one JSON text in each line; raise `BundleError` as `parsed` does."""
    with path.open("rb") as file:
        while line := file.readline(MOST_PARSED + 1):
            yield parsed(path, line)


def _entries(path: Path, file: IO[bytes]) -> zipfile.ZipFile:
    """Return the table of a ZIP file, after a check that it is small enough to be read."""
    size = file.seek(0, 2)
    if size < _END.size:
        raise BundleError(f"{path}: is no bundle, which is a ZIP file.")
    file.seek(size - _END.size)
    mark, disk, first_disk, here, total, table_size, start, comment = _END.unpack(file.read(_END.size))
    if mark != b"PK\5\6":
        raise BundleError(f"{path}: is no bundle: it is no ZIP file, or something follows its end.")
    if total > MOST_MEMBERS or table_size > MOST_MEMBERS * (_ENTRY + _LONGEST_NAME):
        raise BundleError(f"{path}: has more than {MOST_MEMBERS:,} members.")
    if (disk, first_disk, here, comment) != (0, 0, total, 0) or start + table_size + _END.size != size:
        raise BundleError(f"{path}: something was added to it, or it is damaged at its end.")
    entries = zipfile.ZipFile(file)
    file.seek(start)
    table, place = file.read(table_size), 0
    for info in entries.infolist():
        lengths = len(info.filename.encode()), 0, 0
        if table[place + 28 : place + 34] != _LENGTHS.pack(
            *lengths
        ):  # `zipfile` forgives wrong lengths of the last one
            break
        place += _ENTRY + lengths[0]
    if len(entries.infolist()) != total or place != table_size:
        raise BundleError(f"{path}: its table of members is damaged.")
    return entries


def _checked_members(path: Path, file: IO[bytes], entries: zipfile.ZipFile, most_bytes: int) -> list[zipfile.ZipInfo]:
    members, seen, position = entries.infolist(), set[str](), 0
    for info in members:
        name = info.filename
        shown = one_line(repr(name), 80)
        if (problem := _problem_of_name(name)) is not None:
            raise BundleError(f"{path}: the member {shown} {problem}.")
        key = unicodedata.normalize("NFC", name).casefold()
        if key in seen:
            raise BundleError(f"{path}: the member {shown} occurs twice.")
        seen.add(key)
        expected = _member(name)
        if info.external_attr >> 16 != expected.external_attr >> 16:
            raise BundleError(f"{path}: the member {shown} is no plain file, such as a symbolic link.")
        for field in ("compress_size", "file_size", "CRC", "header_offset", "flag_bits"):
            setattr(expected, field, getattr(info, field))
        file.seek(info.header_offset)
        header = file.read(_HEADER + len(name.encode()))
        if (
            any(getattr(info, field) != getattr(expected, field) for field in _AS_WRITTEN)
            or info.flag_bits & ~0x800
            or info.header_offset != position
            or header != expected.FileHeader(zip64=False)
        ):
            raise BundleError(f"{path}: the header of the member {shown} is damaged, or another program wrote it.")
        position += len(header) + info.compress_size
    if position != entries.start_dir:
        raise BundleError(f"{path}: holds data that belong to no member.")
    if sum(info.file_size for info in members) > most_bytes:
        raise BundleError(_too_large(path, most_bytes))
    if STATEMENT not in seen:
        raise BundleError(f"{path}: is no bundle: it has no {STATEMENT}.")
    return members


def _problem_of_name(name: str) -> str | None:
    """Return what is wrong with the name of a member; `None` if a bundle may have it."""
    if name == STATEMENT:
        return None
    parts = name.split("/")
    if len(name) > _LONGEST_NAME or len(parts) > 30:
        return "has too long a name"
    if any(name_problem(part.lstrip(".")) for part in parts):
        return "has a name that leads out of the bundle, or that not every system allows"
    if not _NAMES.fullmatch(name) or Path(name).suffix.lower() not in _SUFFIXES:
        return "does not belong in a bundle"
    return None


def _copied(source: IO[bytes], target: IO[bytes]) -> str:
    digest = sha256()
    while block := source.read(_BLOCK):
        digest.update(block)
        target.write(block)
    return digest.hexdigest()


def _size_of_gzip(path: Path, most: int) -> int:
    """Return the size of a file's content after decompression; after more than `most` bytes, the number so far.

    A damaged file counts up to its damage, which its reader reports.
    """
    size, expander = 0, zlib.decompressobj(31)
    with path.open("rb") as file:
        while size <= most and not expander.eof and (block := file.read(_BLOCK)):
            while block and size <= most and not expander.eof:
                try:
                    size += len(expander.decompress(block, _BLOCK))
                except zlib.error:
                    return size
                block = expander.unconsumed_tail
        if expander.eof and (expander.unused_data or file.read(1)):
            return most + 1  # several streams in one file: the writer of baselines makes one
    return size


def _too_large(path: Path, most_bytes: int) -> str:
    return (
        f"{path}: holds more than {most_bytes // 1024**2:,} MiB after decompression. If you trust its maker, give a "
        "larger --max-mib."
    )


def _statement(path: Path, file: Path) -> tuple[dict[str, str], Mapping[str, Json]]:
    statement = parsed(file, file.read_bytes())
    try:
        stated = {str(each["name"]): str(each["digest"]["sha256"]) for each in statement["subject"]}
        kinds, predicate = (statement["_type"], statement["predicateType"]), statement["predicate"]
    except (KeyError, TypeError) as error:
        raise BundleError(f"{path}: its {STATEMENT} is no in-toto statement ({one_line(error)}).") from error
    if kinds != (STATEMENT_TYPE, PREDICATE_TYPE) or not isinstance(predicate, Mapping):
        raise BundleError(f"{path}: its {STATEMENT} is not that of a bundle which this version can read.")
    return stated, predicate


# Signatures beside a bundle, made by `ssh-keygen -Y sign`.

NAMESPACE = "pytest-fairness"
"""Namespace of signatures, so that a signature of something else cannot be taken for one of a bundle."""


def sign(path: Path, key: Path) -> Path:
    """Sign a bundle with an SSH key, and return the file of the signature, `BUNDLE.sig`.

    Raises:
        FairnessError: there is no `ssh-keygen`, or it cannot use the key.
    """
    signature = path.with_name(f"{path.name}.sig")
    signature.unlink(missing_ok=True)  # ssh-keygen would ask whether to replace it
    failed = _ssh_keygen("sign", "-f", str(key), str(path))[1]
    if failed or not signature.is_file():
        raise FairnessError(f"{path}: cannot be signed with {key} ({one_line(failed)}). Name another key with --sign.")
    return signature


def signature_of(path: Path, signers: Path | None) -> tuple[bool, str]:
    """Return whether a bundle's signature is as wanted, and what is known of it.

    Args:
        path: the bundle, beside whose file `BUNDLE.sig` may be.
        signers: file of allowed signers (`man ssh-keygen`), of whom one must have signed; `None` if nobody must.
    """
    signature = path.with_name(f"{path.name}.sig")
    if not signature.is_file():
        return signers is None, f"none ({signature.name} does not exist), so that anybody may have made this bundle"
    check = ("-s", str(signature))
    if signers is None:
        found, failed = _ssh_keygen("check-novalidate", *check, content=path)
        if failed:
            return False, f"not valid for this file ({one_line(failed)})"
        return True, f"{one_line(found)}; --signers FILE checks whose key this is"
    found, failed = _ssh_keygen("find-principals", *check, "-f", str(signers), content=None)
    if failed or not found.strip():
        return False, f"made by nobody in {signers} ({one_line(failed)})"
    signer = found.splitlines()[0].strip()
    found, failed = _ssh_keygen("verify", *check, "-f", str(signers), "-I", signer, content=path)
    return (False, f"not valid for this file ({one_line(failed)})") if failed else (True, one_line(found))


def _ssh_keygen(action: str, *arguments: str, content: Path | None = None) -> tuple[str, str]:
    """Return the output of `ssh-keygen -Y`, and its error; the error is empty if the command succeeded."""
    program = shutil.which("ssh-keygen")
    if program is None:
        raise FairnessError("ssh-keygen is not installed, which makes and checks signatures. Install OpenSSH.")
    namespace = () if action == "find-principals" else ("-n", NAMESPACE)
    options: dict[str, Any] = {"capture_output": True, "text": True, "errors": "replace", "timeout": 60, "check": False}
    command = [program, "-Y", action, *namespace, *arguments]
    if content is None:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, **options)  # noqa: S603 - a known program, no shell
    else:
        with content.open("rb") as file:
            done = subprocess.run(command, stdin=file, **options)  # noqa: S603 - as above
    return done.stdout, "" if done.returncode == 0 else (done.stderr or done.stdout or "failed")
