"""Secrets of the environment in texts."""

from __future__ import annotations

import pytest

from pytest_fairness.targets.secrets import environment_redactor


@pytest.mark.parametrize(
    ("name", "value", "hidden"),
    [
        ("OPENAI_API_KEY", "sk-abcdefgh", True),
        ("OPENAI_API_KEY", " abc123def456 \n", True),
        ("HF_TOKEN", "hf_0123456789", True),
        ("db_password", "hunter22", True),
        ("AWS_SECRET", "a\"b\\c1234567", True),
        ("OPENAI_API_KEY", "none", False),
        ("OPENAI_API_KEY", "lm-studio", False),
        ("OPENAI_API_KEY", "abc123", False),
        ("SSH_KEY", "/home/me1/.ssh/id", False),
        ("SECRET", "two words 1", False),
        ("SHELL", "abc123def456", False),
    ],
)  # fmt: skip
def test_values_of_keys_are_hidden_and_placeholders_are_not(name: str, value: str, hidden: bool) -> None:
    redact = environment_redactor({name: value, "EMPTY_KEY": ""})
    text = f"it says {value.strip()}, twice: {value.strip()}"
    assert redact(text) == ("it says [key], twice: [key]" if hidden else text)


def test_secrets_are_hidden_in_json_and_when_one_contains_another() -> None:
    redact = environment_redactor({"A_KEY": 'a"b12345678', "B_KEY": "token123", "C_KEY": "token12345"})
    assert redact(r'{"said": "a\"b12345678"} token12345 token123') == '{"said": "[key]"} [key] [key]'
