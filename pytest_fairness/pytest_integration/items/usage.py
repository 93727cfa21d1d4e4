"""Error messages for calls with wrong arguments; each message contains an example of a correct call."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from difflib import get_close_matches
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def with_usage(example: str, more: Callable[[Any], str] = lambda _: "") -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorate a method so that wrong arguments raise an error with an example of a correct call.

    Args:
        example: a correct call; the text before the bracket names the method in the message.
        more: function that takes the object whose method was called, and returns text to add to the message.
    """

    def decorate(method: Callable[P, T]) -> Callable[P, T]:
        signature = inspect.signature(method)

        @wraps(method)
        def checked(*args: P.args, **kwargs: P.kwargs) -> T:
            __tracebackhide__ = True  # pytest shows the line of the call
            try:
                signature.bind(*args, **kwargs)
            except TypeError as error:
                named = example.partition("(")[0]
                near = [
                    known[0]
                    for name in kwargs
                    if name not in signature.parameters
                    if (known := get_close_matches(name, signature.parameters, 1))
                ]
                meant = f"; did you mean {near[0]!r}?" if near else "."
                raise TypeError(f"{named}: {error}{meant} Write for example: {example}{more(args[0])}") from None
            return method(*args, **kwargs)

        return checked

    return decorate
