"""Commands that messages hold, so that they can be pasted into a shell where pytest was started."""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Sequence

from pytest_fairness.records import VerdictName
from pytest_fairness.reports.formatting import escaped, printable
from pytest_fairness.reports.report_items import Item
from pytest_fairness.reports.terminal.layout import width_of, wrap

WHOLE_FILE_FROM = 9
"""So many items of one file to accept are named by their file."""

_ACCEPTABLE = {VerdictName.REGRESSION, VerdictName.STALE_BASELINE, VerdictName.NO_BASELINE}
_AT_THE_END = re.compile(r": (?P<command>(?:pytest --fairness-rebaseline|python -m pytest_fairness) .*)$")


def accept_command(items: Iterable[Item], options: Sequence[str] = (), root: str = "") -> list[str] | None:
    """The command that makes what was measured the new baseline of the items that need one, word by word.

    Items that are over their limit are not among them: limits hold for new baselines too.

    Args:
        items: of the report document.
        options, root: as in `accepting`.

    Returns:
        The words, not quoted; `None` where nothing is to be accepted.
    """
    return accepting((item["nodeid"] for item in items if item["verdict"] in _ACCEPTABLE), options, root)


def accepting(nodeids: Iterable[str], options: Sequence[str] = (), root: str = "") -> list[str] | None:
    """The command that makes new baselines of these items, word by word.

    A file with many of them is named as a whole, and so is one whose items no terminal can show as they are.

    Args:
        nodeids: relative to pytest's rootdir.
        options: that chose what was asked of whom (`["--fairness-target", "openai:gpt-5"]`).
        root: pytest's rootdir, seen from where the command will be typed; `..` for one that is a folder higher.

    Returns:
        The words, not quoted; `None` without items.
    """
    by_file: dict[str, list[str]] = defaultdict(list)
    for nodeid in sorted(set(nodeids)):
        by_file[nodeid.partition("::")[0]].append(nodeid)
    named = [
        name
        for file, own in sorted(by_file.items())
        for name in ([file] if len(own) >= WHOLE_FILE_FROM or not all(map(_shown_as_it_is, own)) else own)
    ]
    folder = f"{root.rstrip('/')}/" if root not in ("", ".") else ""
    return ["pytest", "--fairness-rebaseline", *options, *(folder + name for name in named)] if named else None


def _shown_as_it_is(nodeid: str) -> bool:
    return printable(nodeid) == nodeid


def shell_lines(command: Sequence[str], width: int) -> list[str]:
    """A command to paste, broken where the shell joins it again."""
    lines: list[str] = []
    for word in (escaped(shlex.quote(word)) for word in command):
        longer = f"{lines[-1]} {word}" if lines else word
        # Room for the backslash.
        if not lines or width_of(longer) <= width - 2:
            lines[-1:] = [longer]
        else:
            lines.append(f"  {word}")
    return [*(f"{line} \\" for line in lines[:-1]), lines[-1]]


def reason_lines(reason: str, width: int) -> list[str]:
    """A reason in lines of at most `width` columns; the command that it may end with is a line of its own, unbroken."""
    text = printable(reason)
    found = _AT_THE_END.search(text)
    if found is None:
        return wrap(text, width, hanging="  ")
    return [*wrap(text[: found.start() + 1], width, hanging="  "), found["command"]]
