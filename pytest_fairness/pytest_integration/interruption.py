"""Interruption of a run: SIGTERM ends the run like Ctrl-C, and the summary says how many answers are recorded."""

from __future__ import annotations

import signal
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fairness.asking.request_counts import total_counts
from pytest_fairness.errors import FairnessError
from pytest_fairness.plurals import counted
from pytest_fairness.reports.text_layout import wrap
from pytest_fairness.run import Run

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter


class Interruption:
    """Hooks for a run that may be interrupted; registered in every process of the run.

    Args:
        config: pytest's configuration.
        run: the run in this process.
    """

    def __init__(self, config: pytest.Config, run: Run) -> None:
        self._run = run
        self._is_worker = hasattr(config, "workerinput")
        self._handled = False

    def pytest_sessionstart(self) -> None:
        """Install the handler of SIGTERM, unless another handler is set."""
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            # Not SIG_IGN, which processes that a test starts would inherit.
            signal.signal(signal.SIGTERM, _ignore if self._is_worker else _interrupt)
            self._handled = True

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Remove traceback entries without a line number, which a signal can cause and pytest cannot show."""
        excinfo.traceback = excinfo.traceback.filter(_has_line)

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: TerminalReporter, exitstatus: int) -> None:
        """Show the number of recorded answers, and whether the next run reuses them."""
        if exitstatus == pytest.ExitCode.INTERRUPTED and (text := self._text()):
            for line in wrap(text, terminalreporter._tw.fullwidth, hanging="  "):
                terminalreporter.write_line(line, bold=True)

    def pytest_unconfigure(self) -> None:
        """Restore the default handling of SIGTERM."""
        if self._handled:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _text(self) -> str | None:
        """Return a sentence on the number of recorded answers and their reuse; `None` if no request was planned."""
        total: dict[str, float] = {}
        with suppress(FairnessError):  # the items that need the store have reported the error
            if self._run.settings.store.exists():
                total = total_counts(self._run.store.runs.request_counts(self._run.id))
        recorded = int(total.get("reused", 0) + total.get("answered", 0))
        if not total.get("planned"):
            return None
        text = f"{counted(recorded, 'answer')} recorded"
        again = int(total.get("asked_again", 0))
        if not again:
            return f"{text}; run again to continue."
        which = ("it" if recorded == 1 else "them") if again >= recorded else f"{again:,} of them"
        why = "because of --fairness-fresh" if self._run.settings.fresh else "because the target's code may change"
        cure = "" if self._run.settings.fresh else ". To reuse answers, set `fairness_target_version`"
        return f"{text}; the next run requests {which} again, {why}{cure}."


def _has_line(entry: Any) -> bool:
    try:
        return entry.lineno is not None
    except TypeError:
        return False


def _interrupt(*_: Any) -> None:
    # A second signal, for example passed on by a parent process, must not interrupt the end of the run.
    signal.signal(signal.SIGTERM, _ignore)
    raise KeyboardInterrupt("ended by SIGTERM")


def _ignore(*_: Any) -> None:
    """Ignore the signal; the controller ends the workers itself, after their last answers are recorded."""
