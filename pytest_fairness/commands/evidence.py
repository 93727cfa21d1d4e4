"""Commands that make and check evidence: `bundle`, `verify` and `profile`."""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import wrap

from pytest_fairness.commands import add_store_argument, project_root, store_of, write
from pytest_fairness.errors import FairnessError, counted, one_line
from pytest_fairness.options import DEFAULT_STORE
from pytest_fairness.records import Json
from pytest_fairness.reports.formatting import printable


def add_verify_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("bundle", type=Path, help="bundle that `pytest --fairness --fairness-bundle FILE` wrote")
    parser.add_argument(
        "--signers",
        type=Path,
        metavar="FILE",
        help="file of allowed signers of ssh-keygen; the bundle must have the signature BUNDLE.sig of one of them",
    )
    parser.add_argument(
        "--max-mib",
        type=_positive,
        default=256,
        metavar="N",
        help="largest size of the content after decompression, in MiB (default: 256)",
    )


def run_verify(arguments: argparse.Namespace) -> int:
    """Check a bundle on any machine, without the project: digests, signature, and every number measured again.

    Exit code 0: all items are the same. 1: something was changed or differs. 3: nothing differs, but some items cannot
    be recomputed. 2: the file is no bundle.
    """
    from pytest_fairness.run.archive import signature_of
    from pytest_fairness.run.bundle import summary, verify

    found = verify(arguments.bundle, arguments.max_mib * 1024**2)
    signed, signature = signature_of(arguments.bundle, arguments.signers)
    report, archive = found.report, found.archive
    lines = [
        f"{arguments.bundle.name}: run of {report['started']} against {report['target']}, by {report['tool']}",
        f"sha256: {archive.digest}",
        f"signature: {signature}",
        *(f"changed: {name} (its digest is not that of the statement)" for name in archive.changed),
        *([] if archive.changed else ["digests: all members as stated"]),
        *(
            [f"versions there (here): {', '.join(f'{name} {there} ({here})' for name, there, here in found.versions)}"]
            if found.versions
            else []
        ),
        *(f"differs: {problem}" for problem in found.problems),
        *(
            f"{check.outcome}: {check.probe} {check.id}{f': {check.what}' if check.what else ''}"
            for check in found.checks
        ),
    ]
    counts = summary(found)
    failed = found.found_changes or not signed
    verdict = "not as its maker stated" if failed else "as stated"
    numbers = ", ".join(f"{number} {outcome}" for outcome, number in counts.items() if number)
    numbers = numbers.replace("differs", "differ") if counts["differs"] > 1 else numbers
    lines.append(f"{verdict}: of {counted(len(found.checks), 'item')}, {numbers or 'none'}")
    width = max(40, shutil.get_terminal_size((100, 24)).columns - 1)
    shown = (part for line in lines for part in wrap(printable(line), width, subsequent_indent="  "))
    write([f"{line}\n" for line in shown], None)
    return 1 if failed else 3 if counts["not recomputable"] or not found.checks else 0


def _positive(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1_000_000:
        raise argparse.ArgumentTypeError(f"must be a whole number of MiB of at least 1, not {text!r}")
    return int(text)


def add_profile_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("report", type=Path, nargs="?", help="JSON report of a run (default: the last run)")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="file to write: .html, .md or .json (default: Markdown to standard output)",
    )
    add_store_argument(parser)


def run_profile(arguments: argparse.Namespace) -> None:
    """Write the profile of a run for a model card or technical documentation: what was tested, and what was found.

    The parts are bias scenarios, results with intervals, counts, methods, what was not tested, and the response.
    """
    from pytest_fairness.reports import files, pages, profile

    output: Path | None = arguments.output
    suffix = ".md" if output is None else output.suffix.lower()
    if suffix not in pages.FORMATS:
        raise FairnessError(f"--output {output}: the name must end in {', '.join(pages.FORMATS)}.")
    document = _last_run(arguments) if arguments.report is None else files.read(arguments.report)
    text = pages.FORMATS[suffix](profile.page(document))
    if output is None:
        write([text], None)
    else:
        files.write_text(output, text, "--output")
        print(f"wrote {output}")


def add_bundle_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source", type=Path, nargs="?", help="bundle to copy (default: a new one of the last run, from its answers)"
    )
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="bundle to write (.zip)")
    parser.add_argument(
        "--hashed", action="store_true", help="replace texts of answers by salted hashes; other numbers stay checkable"
    )
    parser.add_argument(
        "--redact",
        action="append",
        default=[],
        type=_pattern,
        metavar="REGEX",
        help="replace what matches in answers by `[hidden]`; may be repeated",
    )
    parser.add_argument("--sign", type=Path, metavar="KEY", help="sign the bundle with this SSH key (ssh-keygen)")
    add_store_argument(parser)


def run_bundle(arguments: argparse.Namespace) -> None:
    """Write a bundle of the last run, or copy one with hidden texts of answers, and sign it.

    Every copy is checked: items whose numbers need the hidden texts are named.
    """
    from pytest_fairness.run.archive import sign
    from pytest_fairness.run.redaction import Redaction, salt_of, write_redacted

    output: Path = arguments.output
    if output.suffix.lower() != ".zip":
        raise FairnessError(f"--output {output}: the name must end in .zip. Write {output}.zip.")
    source = arguments.source or output
    if arguments.source is None:
        _bundle_of_last_run(arguments, output)
    hidden = []
    if arguments.hashed or arguments.redact:
        salt = salt_of(project_root() / DEFAULT_STORE.parent) if arguments.hashed else None
        hidden = write_redacted(source, output, Redaction(arguments.redact, salt))
    elif arguments.source is not None:
        output.write_bytes(source.read_bytes())
    for name in hidden:
        print(f"not recomputable without its texts: {printable(name)}")
    print(f"wrote {output}")
    if arguments.sign is not None:
        print(f"wrote {sign(output, arguments.sign)}")


def _bundle_of_last_run(arguments: argparse.Namespace, output: Path) -> None:
    """Run pytest on the items of the last run, with their recorded answers, so that it writes their bundle."""
    document = _last_run(arguments)
    measured = all(item["verdict"] in ("measured", "error", "not-measurable") for item in document["items"])
    action = "--fairness-measure" if measured else "--fairness"
    root = project_root()
    nodes = sorted({str(root / item["nodeid"]) for item in document["items"]})
    written = output.absolute()
    before = written.stat().st_mtime_ns if written.exists() else None
    command = [sys.executable, "-m", "pytest", "-q", action, "--fairness-replay", "--fairness-bundle", str(written)]
    done = subprocess.run([*command, *nodes], cwd=root, capture_output=True, text=True, check=False)  # noqa: S603 - pytest
    if not written.exists() or written.stat().st_mtime_ns == before:
        raise FairnessError(f"{output}: was not written. pytest says: {one_line(done.stdout[-600:], 600)}")


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"must be a regular expression, not {text!r} ({error})") from None


def _last_run(arguments: argparse.Namespace) -> dict[str, Json]:
    from pytest_fairness.asking.store import Store
    from pytest_fairness.run.history import last_run

    store, document = store_of(arguments), None
    if store.exists():
        with Store(store) as opened:
            document = last_run(opened)
    if document is None:
        raise FairnessError(f"{store}: this store holds no run. Run `pytest --fairness` first.")
    return document
