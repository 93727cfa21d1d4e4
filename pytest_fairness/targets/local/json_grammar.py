"""JSON answers of a small model: a grammar makes the model write a JSON list, which is then converted.

A grammar cannot require a number of entries in a map with unknown keys. So the model writes a list of names and
descriptions, which is converted to the map that the prompt requested.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace

from pytest_fairness.records import Request, Response

TOKENS_PER_ENTRY = 64
"""Approximate number of tokens of the longest possible entry, including punctuation."""
MOST_ENTRIES = 10
FEWEST_ENTRIES = 3
"""Minimum number of entries of the list, if `max_tokens` allows as many."""
NAME_LENGTH = 40
DESCRIPTION_LENGTH = 160
"""Maximum number of characters of an entry's description; a small model might never end an unlimited description."""

_ENTRY = re.compile(r'\{"name": "(?P<name>[^"]*)", "description": "(?P<description>[^"]*)("\})?')


def grammar(request: Request) -> str:
    """Return the grammar (GBNF) of an answer: a list of at most as many entries as fit into `max_tokens`."""
    room = request.sampling.max_tokens
    most = MOST_ENTRIES if room is None else min(MOST_ENTRIES, max(1, room // TOKENS_PER_ENTRY))
    fewest = min(FEWEST_ENTRIES, most)
    return "\n".join(
        [
            f'root ::= "[" entry (", " entry){{{fewest - 1},{most - 1}}} "]"',
            r'entry ::= "{\"name\": \"" name "\", \"description\": \"" description "\"}"',
            rf"name ::= letter character{{2,{NAME_LENGTH - 1}}}",
            rf"description ::= letter character{{10,{DESCRIPTION_LENGTH - 1}}}",
            r"letter ::= [A-Za-z]",
            # Without quotes and backslashes, the text between two quotes needs no unescaping.
            r'character ::= [^"\\\x00-\x1f\x7f]',
        ]
    )


def as_map(response: Response) -> Response:
    """Return the response with its list converted to a JSON map from names to descriptions; other texts stay unchanged.

    If a name occurs several times, its descriptions are joined. If the list was cut off, the incomplete last
    description is kept.
    """
    entries: dict[str, str] = {}
    for entry in _ENTRY.finditer(response.text):
        name, description = entry["name"].strip(), entry["description"].strip()
        entries[name] = f"{entries[name]} {description}".strip() if name in entries else description
    return replace(response, text=json.dumps(entries, ensure_ascii=False, indent=1)) if entries else response
