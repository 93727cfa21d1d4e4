"""What has become of each question of this process so far: a table that threads share, and wait at."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from itertools import islice

from pytest_fairness.errors import FairnessError, short_message
from pytest_fairness.records import Request, Response

PATIENCE = 1.0
"""Seconds after which a waiting thread looks up, so that signals reach it on every platform."""

KEPT_MESSAGES = 10
"""Different messages of failed requests that are told of."""

COUNTED = ("reused", "sent", "retried", "answered", "failed", "prompt_tokens", "completion_tokens", "uncounted")


class Ledger:
    """Questions by their key, from being planned to being settled: answered or failed, each once and for good."""

    def __init__(self) -> None:
        self._news = threading.Condition()
        self._known: dict[bytes, bool] = {}
        """All that was planned, and whether an answer was recorded already. Its bytes take less room than a key."""
        self._told = 0
        self._open: dict[str, Request] = {}
        self._asked: dict[str, Request] = {}
        self._answered: set[str] = set()
        self._failed: dict[str, FairnessError] = {}
        self._messages: Counter[str] = Counter()
        """Of the questions that this process asked in vain, by what is told of them."""
        self._closed: FairnessError | None = None
        self._counts = dict.fromkeys(COUNTED, 0)

    def unknown(self, questions: Mapping[str, Request]) -> dict[str, Request]:
        """Those of the questions that have not been planned yet."""
        with self._news:
            return self._unknown(questions)

    def _unknown(self, questions: Mapping[str, Request]) -> dict[str, Request]:
        return {key: request for key, request in questions.items() if bytes.fromhex(key) not in self._known}

    def add(self, questions: Mapping[str, Request], recorded: Iterable[str]) -> bool:
        """Plan questions, in this order; those recorded are settled at once. Gives whether any are left to be asked."""
        with self._news:
            new = self._unknown(questions)
            answered = new.keys() & set(recorded)
            self._known |= {bytes.fromhex(key): key in answered for key in new}
            self._counts["reused"] += len(answered)
            left = {key: request for key, request in new.items() if key not in answered}
            if self._closed is None:
                self._open |= left
            else:
                self._failed |= dict.fromkeys(left, self._closed)
            self._news.notify_all()
            return bool(self._open)

    def newly_planned(self) -> dict[str, bool]:
        """The questions planned since this was called last, and whether an answer was recorded already."""
        with self._news:
            new = {key.hex(): recorded for key, recorded in islice(self._known.items(), self._told, None)}
            self._told = len(self._known)
            return new

    def next_open(self, count: int) -> list[str]:
        """The first `count` questions that nobody in this process has asked yet."""
        with self._news:
            return list(islice(self._open, count))

    def ask(self, keys: Iterable[str]) -> dict[str, Request]:
        """Take questions for asking; those that were settled meanwhile are left out."""
        with self._news:
            taken = {key: self._open.pop(key) for key in keys if key in self._open}
            self._asked |= taken
            self._counts["sent"] += len(taken)
            return taken

    def ask_again(self, count: int) -> None:
        """Count further tries of questions that are being asked."""
        with self._news:
            self._counts["retried"] += count

    def open_keys(self) -> list[str]:
        """The questions that nobody in this process has asked yet."""
        with self._news:
            return list(self._open)

    def answer(self, key: str, response: Response) -> None:
        """Settle a question that was asked."""
        with self._news:
            if self._asked.pop(key, None) is None and key in self._failed:
                self._counts["failed"] -= 1  # it came after all, when everything was closed
                self._messages[short_message(str(self._failed[key]))] -= 1
            self._answered.add(key)
            self._counts["answered"] += 1
            self._counts["prompt_tokens"] += response.prompt_tokens or 0
            self._counts["completion_tokens"] += response.completion_tokens or 0
            self._counts["uncounted"] += None in (response.prompt_tokens, response.completion_tokens)
            self._news.notify_all()

    def fail(self, key: str, error: FairnessError) -> None:
        """Settle a question that was asked in vain."""
        with self._news:
            if self._asked.pop(key, None) is not None:
                self._counts["failed"] += 1
                self._messages[short_message(str(error))] += 1
            self._failed[key] = error
            self._news.notify_all()

    def settle_elsewhere(self, answered: Iterable[str], failed: Mapping[str, FairnessError]) -> bool:
        """Settle questions that another process asked; gives whether one of them was answered."""
        with self._news:
            found = [key for key in answered if self._take(key)]
            self._answered.update(found)
            self._failed |= {key: error for key, error in failed.items() if self._open.pop(key, None)}
            self._news.notify_all()
            return bool(found)

    def _take(self, key: str) -> bool:
        # One that this process asked, too, may be answered elsewhere, if its claim lapsed.
        return (self._open.pop(key, None) or self._asked.pop(key, None)) is not None

    def close(self, error: FairnessError) -> None:
        """Fail whatever is not settled, now and later."""
        with self._news:
            self._closed = self._closed or error
            self._failed |= dict.fromkeys([*self._open, *self._asked], error)
            self._counts["failed"] += len(self._asked)
            self._messages[short_message(str(error))] += len(self._asked)
            self._open.clear()
            self._asked.clear()
            self._news.notify_all()

    def close_open(self, error: FairnessError) -> None:
        """Fail what has not been asked, now and later; what is in flight may still arrive."""
        with self._news:
            self._closed = self._closed or error
            self._failed |= dict.fromkeys(self._open, error)
            self._open.clear()
            self._news.notify_all()

    @property
    def outstanding(self) -> bool:
        """Whether any question is not settled."""
        with self._news:
            return bool(self._open or self._asked)

    def wait(self, keys: Iterable[str]) -> dict[str, FairnessError]:
        """Block until all these planned questions are settled; gives the failures among them.

        Signals are handled meanwhile: what their handlers raise comes out of here.
        """
        waiting = deque(keys)
        keys = list(waiting)
        with self._news:
            while waiting:
                key = waiting[-1]
                if self._known.get(bytes.fromhex(key)) or key in self._answered or key in self._failed:
                    waiting.pop()
                else:
                    self._news.wait(PATIENCE)
            return {key: self._failed[key] for key in keys if key in self._failed}

    def counts(self) -> dict[str, int]:
        """How many questions are planned, in flight and so on; see `Engine.progress`."""
        with self._news:
            settled = self._counts["reused"] + len(self._answered) + len(self._failed)
            return {"planned": len(self._known), "settled": settled, "in_flight": len(self._asked), **self._counts}

    def failures(self) -> dict[str, int]:
        """Return how many questions this process asked in vain, by message, the most frequent ones."""
        with self._news:
            return {message: count for message, count in self._messages.most_common(KEPT_MESSAGES) if count > 0}
