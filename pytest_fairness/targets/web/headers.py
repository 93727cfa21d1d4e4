"""HTTP headers that users set, and references `${NAME}` to environment variables in them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable

from pytest_fairness.errors import TargetError
from pytest_fairness.targets.web.address import REFERENCE

_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*:\s*(.*)")


class References:
    """Values of environment variables that take the place of references `${NAME}`.

    Args:
        target: name of the target, for messages.

    Attributes:
        secrets: value of each variable that was used, by the variable's name.
    """

    def __init__(self, target: str) -> None:
        self.secrets: dict[str, str] = {}
        self._target = target

    def filled(self, text: str, where: str, encode: Callable[[str], str] = str) -> str:
        """Return a text in which each reference to an environment variable is replaced by the variable's value.

        Args:
            text: text with references.
            where: name of the setting that contains the text, for messages.
            encode: function that encodes each value.

        Raises:
            TargetError: a variable is not set.
        """
        return REFERENCE.sub(lambda match: encode(self._value(match[1], where)), text)

    def _value(self, name: str, where: str) -> str:
        value = os.environ.get(name, "").strip()
        if not value:
            raise TargetError(
                f"{self._target}: {where} names the environment variable {name}, which is not set. Set the variable."
            )
        self.secrets[name] = value
        return value


class Headers:
    """Headers that a setting adds to every request.

    Args:
        lines: lines `Name: value`; a value may contain references `${NAME}`.
        setting: name of the setting, for messages.
        target: name of the target, for messages.

    Raises:
        TargetError: a line is not of the form `Name: value`.
    """

    def __init__(self, lines: Iterable[str], setting: str, target: str) -> None:
        self._setting, self._target = setting, target
        self._written = [self._parsed(line) for line in lines]

    def __bool__(self) -> bool:
        return bool(self._written)

    def filled(self, references: References) -> dict[str, str]:
        """Return the headers with the values of environment variables.

        Raises:
            TargetError: a variable is not set, or a header has characters that cannot be sent.
        """
        headers = {name: references.filled(value, self._setting) for name, value in self._written}
        for name, value in headers.items():
            if not (value.isascii() and value.isprintable()):
                raise TargetError(
                    f"{self._target}: the header {name} has characters that cannot be sent, as they are not printable "
                    "ASCII. Copy its value again."
                )
        return headers

    def _parsed(self, line: str) -> tuple[str, str]:
        match = _HEADER.fullmatch(line.strip())
        if match is None:
            # The line is left out, because it may contain a key.
            raise TargetError(
                f"{self._target}: a line of {self._setting} is not of the form `Name: value`. Correct it."
            )
        return match[1], match[2].strip()
