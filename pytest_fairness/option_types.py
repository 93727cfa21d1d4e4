"""Types of option values; each type checks and converts the written value.

For an invalid value, `OptionType.parse` raises `ValueError`. The message continues a sentence that begins with the
option's name: `must be warn or fail, not 'maybe'.`
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

LONGEST_LINE = 500
MOST_SHARDS = 10_000
IniType = Literal["string", "args", "linelist", "bool", "int", "float"]


@dataclass(frozen=True, slots=True)
class OptionType:
    """Type of an option's value.

    Attributes:
        takes: description of valid values for error messages, such as `a number above 0`.
        parse: function that converts a text from the command line, or the ini value as returned by pytest. An empty
            text or list becomes `None` or `()` if the type allows that. An invalid value raises `ValueError`.
    """

    takes: str
    parse: Callable[[Any], Any]
    ini: IniType = "string"


@dataclass(frozen=True, slots=True)
class Price:
    """Price of a million prompt and completion tokens of a model, in the user's currency.

    `model` is the target's name, with or without the part before the first colon (`openai:`).
    """

    model: str
    prompt: float
    completion: float


@dataclass(frozen=True, slots=True)
class DatabaseUrl:
    """Address of a PostgreSQL database, without a password."""

    address: str

    def __str__(self) -> str:
        return self.address

    def exists(self) -> bool:
        """Return true: a store in a database, unlike a file, can be read before a run has created it."""
        return True


StoreAddress = Path | DatabaseUrl
"""Path of a SQLite file, or address of a PostgreSQL database."""


def in_folder(folder: Path, store: StoreAddress) -> StoreAddress:
    """Return the address of a store; a relative path is joined to `folder`."""
    return folder / store if isinstance(store, Path) else store


def _store(written: str | Path) -> StoreAddress | None:
    text = str(written).strip()
    if not text.startswith(("postgresql://", "postgres://")):
        if "://" in text or text.startswith(("postgres:", "postgresql:")):
            raise ValueError(f"must be {STORE_TAKES}, not {text.partition(':')[0]}:….")
        return Path(text) if text else None
    # pytest imports this module at every start, and from Python 3.13 nothing else has imported `urllib.parse` then.
    from urllib.parse import parse_qs, urlsplit

    try:
        parts = urlsplit(text)
        password = parts.password or set(parse_qs(parts.query)) & {"password", "sslpassword", "passfile"}
        valid = parts.port != 0
    except ValueError:
        valid, password = False, None
    if not valid:
        raise ValueError("is not a valid address: write postgresql://user@host:5432/database.")
    if password:
        raise ValueError(
            "holds a password or the path of a password file. Remove it from the address, and set the environment "
            "variable PGPASSWORD or PGPASSFILE instead."
        )
    return DatabaseUrl(text)


@dataclass(frozen=True, slots=True)
class Shard:
    """Part of a run's requests, from 1, which one of several jobs sends."""

    number: int
    count: int

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def holds(self, key: str) -> bool:
        """Return whether the request with this key (64 hex digits) belongs to the part."""
        return int(key[:15], 16) % self.count == self.number - 1


@dataclass(frozen=True, slots=True)
class Budget:
    """Amount that a run may cost, in requests or in the currency of the prices."""

    amount: float
    is_money: bool

    def __str__(self) -> str:
        return f"{self.amount:,g}" + ("" if self.is_money else " requests")


def _budget(written: str) -> Budget | None:
    if not written.strip():
        return None
    number = written.strip().casefold().removesuffix("req")
    try:
        amount = float(number)
    except ValueError:
        amount = math.nan
    if not 0 < amount < math.inf:
        raise ValueError(f"must be an amount of money, such as 10, or of requests, such as 5000req, not {written!r}.")
    return Budget(amount, is_money=number == written.strip().casefold())


def _shard(written: str) -> Shard | None:
    if not written.strip():
        return None
    number, _, count = written.strip().partition("/")
    valid = number.isascii() and number.isdigit() and count.isascii() and count.isdigit()
    if not valid or not 1 <= int(number) <= int(count) <= MOST_SHARDS:
        raise ValueError(
            f"must be NUMBER/COUNT, such as 2/5, with NUMBER from 1 to COUNT and COUNT at most {MOST_SHARDS:,}, "
            f"not {written!r}."
        )
    return Shard(int(number), int(count))


def whole_number(least: int = 1, most: int | None = None) -> OptionType:
    takes = f"a whole number of at least {least}" if most is None else f"a whole number from {least} to {most:,}"

    def parse(written: str | int) -> int:
        try:
            value = int(written)
        except ValueError:
            value = least - 1
        if value < least or (most is not None and value > most):
            raise ValueError(f"must be {takes}, not {written!r}.")
        return value

    return OptionType(takes, parse, "int")


def number(*, zero: bool = False, most: float = math.inf) -> OptionType:
    """Return the type of finite numbers above 0 and up to `most`; if `zero` is set, 0 is also valid."""
    takes = f"a number {'of at least 0' if zero else 'above 0'}{'' if most == math.inf else f' and at most {most:g}'}"

    def parse(written: str | float) -> float:
        try:
            value = float(written)
        except ValueError:
            value = math.nan
        if not (0 < value < math.inf or (zero and value == 0)) or value > most:
            raise ValueError(f"must be {takes}, not {written!r}.")
        return value

    return OptionType(takes, parse, "float")


def choice(*words: str) -> OptionType:
    takes = " or ".join(words)

    def parse(written: str) -> str | None:
        word = written.strip()
        if word and word not in words:
            raise ValueError(f"must be {takes}, not {word!r}.")
        return word or None

    return OptionType(takes, parse)


def words(*known: str) -> OptionType:
    takes = f"one or more of {', '.join(known)}"

    def parse(written: Sequence[str]) -> tuple[str, ...]:
        for word in written:
            if word not in known:
                raise ValueError(f"must be {takes}, not {word!r}.")
        return tuple(written)

    return OptionType(takes, parse, "args")


def _prices(lines: Sequence[str]) -> tuple[Price, ...]:
    prices: dict[str, Price] = {}
    for line in lines:
        *words, prompt, completion = line.split() if len(line.split()) > 2 else ("", "", "")
        try:
            price = Price(" ".join(words), float(prompt), float(completion))
        except ValueError:
            price = Price("", -1, -1)
        if not (price.model and 0 <= price.prompt < math.inf and 0 <= price.completion < math.inf):
            raise ValueError(
                f"has a line that is not of the form `MODEL INPUT OUTPUT`: {line!r}. Write the model's name, its price "
                "per million input tokens and its price per million output tokens; prices must be 0 or more."
            )
        if price.model in prices:
            raise ValueError(f"has two prices for {price.model!r}. Remove one of them.")
        prices[price.model] = price
    return tuple(prices.values())


_SCORER_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,99}")
_NEXT_SCORER = re.compile(rf"[,\n]\s*(?={_SCORER_NAME.pattern}\s*=)")


def _scorers(lines: Sequence[str]) -> tuple[tuple[str, str], ...]:
    scorers: dict[str, str] = {}
    for written in filter(str.strip, _NEXT_SCORER.split("\n".join(lines))):
        name, _, scorer = (part.strip() for part in written.strip().removesuffix(",").partition("="))
        if not _SCORER_NAME.fullmatch(name) or not scorer or "\n" in scorer:
            raise ValueError(
                f"must be {SCORERS.takes}, not {written!r:.100}. A name has letters, digits, '_', '.' and '-', and "
                "begins with a letter."
            )
        if name in scorers:
            raise ValueError(f"has two scorers named {name!r}. Rename one of them.")
        scorers[name] = scorer
    return tuple(scorers.items())


def _line(written: str) -> str | None:
    text = " ".join(written.split())
    if len(text) > LONGEST_LINE or not text.isprintable():
        raise ValueError(f"must be one line of at most {LONGEST_LINE} printable characters, not {written!r:.60}.")
    return text or None


TEXT = OptionType("text", lambda written: written.strip() or None)
LINE = OptionType("one line of text", _line)
BOOLEAN = OptionType("true or false", bool, "bool")
PATH = OptionType("a path", lambda written: Path(written.strip()) if written.strip() else None)
STORE_TAKES = "the path of a file or the address of a database, postgresql://user@host/database"
STORE = OptionType(STORE_TAKES, _store)
SHARD = OptionType("NUMBER/COUNT", _shard)
BUDGET = OptionType("an amount of money, or of requests (5000req)", _budget)
PATHS = OptionType("paths", lambda written: tuple(map(Path, written)) or None, "args")
LINES = OptionType("lines of text", tuple, "linelist")
PRICES = OptionType("lines MODEL INPUT OUTPUT", _prices, "linelist")
SCORERS = OptionType("NAME=SCORER, one in each line or separated by commas", _scorers, "linelist")
