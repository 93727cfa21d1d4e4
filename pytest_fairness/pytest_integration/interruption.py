"""The end of a run that is cut short: SIGTERM ends it as Ctrl-C does, and a line says what is kept."""

from __future__ import annotations

import signal
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fairness.asking.request_counts import total_counts
from pytest_fairness.errors import FairnessError
from pytest_fairness.reports.text_layout import wrap
from pytest_fairness.run import Run

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter


class Ending:
    """Hooks for a run that may be cut short; in every process of it.

    Args:
        config: pytest's.
        run: the run in this process.
    """

    def __init__(self, config: pytest.Config, run: Run) -> None:
        self._run = run
        self._is_worker = hasattr(config, "workerinput")
        self._handled = False

    def pytest_sessionstart(self) -> None:
        """Handle SIGTERM, unless somebody else does."""
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            # A handler that does nothing, and not SIG_IGN, which processes that a test starts would inherit.
            signal.signal(signal.SIGTERM, _ignore if self._is_worker else _interrupt)
            self._handled = True

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Leave out of the traceback what pytest fails at: Python gives some places no line where a signal arrives."""
        excinfo.traceback = excinfo.traceback.filter(_has_line)

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: TerminalReporter, exitstatus: int) -> None:
        """Say how many answers are recorded, and whether the next run takes them."""
        if exitstatus == pytest.ExitCode.INTERRUPTED and (text := self._kept()):
            for line in wrap(text, terminalreporter._tw.fullwidth, hanging="  "):
                terminalreporter.write_line(line, bold=True)

    def pytest_unconfigure(self) -> None:
        """Give SIGTERM back."""
        if self._handled:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _kept(self) -> str | None:
        """Return the line on the answers of this run, or `None` where nothing was asked."""
        total: dict[str, float] = {}
        with suppress(FairnessError):  # a broken store: whoever wanted something of it has said so
            if self._run.settings.store.exists():
                total = total_counts(self._run.store.runs.request_counts(self._run.id))
        recorded = int(total.get("reused", 0) + total.get("answered", 0))
        if not total.get("planned"):
            return None
        plural = "answer is" if recorded == 1 else "answers are"
        text = f"{recorded:,} {plural} recorded"
        again = int(total.get("asked_again", 0))
        if not again:
            return f"{text}: run again to go on."
        which = "all of them are" if again >= recorded else f"{again:,} of them are"
        return (
            f"{text}, but {which} asked again by the next run: answers of python: and http: targets without a "
            "fairness_target_version, and those under --fairness-fresh, are not reused."
        )


def _has_line(entry: Any) -> bool:
    try:
        return entry.lineno is not None
    except TypeError:
        return False


def _interrupt(*_: Any) -> None:
    # A second signal, as of a parent process that passes its own on, must not interrupt the end of the run.
    signal.signal(signal.SIGTERM, _ignore)
    raise KeyboardInterrupt("ended by SIGTERM")


def _ignore(*_: Any) -> None:
    """Do nothing: a worker goes on until the controller ends it, so that what is in flight is still recorded."""
