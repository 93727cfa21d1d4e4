"""Commands that accept values as new baselines, ready to be copied into a shell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from pytest_fairness.records import VerdictName
from pytest_fairness.reports.formatting import printable
from pytest_fairness.reports.view import KNOWN, ItemView

WHOLE_FILE_FROM = 9
"""Minimum number of items of one file for which a command names the file instead of the items."""

ACCEPTABLE = {VerdictName.REGRESSION, VerdictName.STALE_BASELINE, VerdictName.NO_BASELINE}
"""Verdicts of failed items that would pass with the current values as the new baseline."""


def accept_command(
    items: Iterable[ItemView],
    options: Sequence[str] = (),
    root: str = "",
    all_items: Mapping[str, Collection[str]] | None = None,
) -> list[str] | None:
    """Return the command that accepts the current values of failed items as the new baseline.

    Items over their limit are left out, because the limit also applies to new baselines. Known failures are left out,
    because they are to be fixed later.

    Returns:
        The unquoted words of the command; `None` if no failed item would pass with a new baseline.
    """
    items = list(items)
    acceptable = [view for view in items if view.status in ACCEPTABLE]
    # A new baseline of the whole file would accept its known failures, too.
    incomplete_files = {view.file for view in items if view.status == KNOWN}
    nodeids = (view.item["nodeid"] for view in acceptable)
    return rebaseline_command(nodeids, options, root, all_items, incomplete_files)


def rebaseline_command(
    nodeids: Iterable[str],
    options: Sequence[str] = (),
    root: str = "",
    all_items: Mapping[str, Collection[str]] | None = None,
    incomplete_files: Collection[str] = (),
) -> list[str] | None:
    """Return the command that makes new baselines of these items.

    The command names a whole file instead of its items in three cases: all items of the file are given, at least
    `WHOLE_FILE_FROM` items are given, or the name of an item cannot be printed on a terminal.

    Args:
        nodeids: node ids, relative to pytest's rootdir.
        options: options that select the same requests as this run (`["--fairness-target", "openai:gpt-5"]`).
        root: path from the user's working directory to pytest's rootdir, such as `..`.
        all_items: node ids of all items by file; some files may be left out.
        incomplete_files: files with other items that must keep their baselines. Such a file is not named as a whole
            merely because many of its items are given.

    Returns:
        The unquoted words of the command; `None` if no items are given.
    """
    by_file: dict[str, list[str]] = defaultdict(list)
    for nodeid in sorted(set(nodeids)):
        by_file[nodeid.partition("::")[0]].append(nodeid)

    def is_named_whole(file: str, own: Sequence[str]) -> bool:
        covered = all_items is not None and set(own) >= set(all_items.get(file, [file]))
        many = len(own) >= WHOLE_FILE_FROM and file not in incomplete_files
        return covered or many or any(printable(nodeid) != nodeid for nodeid in own)

    arguments = [
        name for file, own in sorted(by_file.items()) for name in ([file] if is_named_whole(file, own) else own)
    ]
    folder = f"{root.rstrip('/')}/" if root not in ("", ".") else ""
    return ["pytest", "--fairness-rebaseline", *options, *(folder + name for name in arguments)] if arguments else None
