"""Command on bundles: `verify`."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from textwrap import wrap

from pytest_fairness.commands import write
from pytest_fairness.errors import counted
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
