"""Words of commands that messages suggest; `tests/integration/test_shell_commands.py` gives commands to a shell."""

from __future__ import annotations

import pytest

from pytest_fairness.reports.formatting import shell_word


@pytest.mark.parametrize(
    ("word", "quoted"),
    [
        (r"probes\first.yaml::jsd[name=Kim]", r"probes\first.yaml::jsd[name=Kim]"),
        ("probes/first.yaml::jsd[name=Kim O'Neil]", '"probes/first.yaml::jsd[name=Kim O\'Neil]"'),
        ("a & b", '"a & b"'),
        ('a "b"', r'"a \"b\""'),
        ("", '""'),
    ],
)
def test_words_are_quoted_as_windows_reads_them(word: str, quoted: str) -> None:
    assert shell_word(word, windows=True) == quoted
