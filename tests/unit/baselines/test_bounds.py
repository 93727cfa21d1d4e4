"""Bounds of what is read of baselines and data files, however small a file is on the disk."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from pytest_fairness.baselines.entries import Row, answer_set_for, read_answers, write_answers
from pytest_fairness.errors import BaselineError, ProbeError
from pytest_fairness.probes import table
from pytest_fairness.records import MAX_LINE

LARGEST = 4 * 1024 * 1024


def test_the_largest_answer_is_kept_and_read_again(tmp_path: Path) -> None:
    rows = [Row({"name": "Kim"}, trial, "\x01" * LARGEST) for trial in range(2)]
    answer_set = answer_set_for(rows, {})
    assert answer_set is not None
    path = tmp_path / "gifts.responses.jsonl"
    write_answers(path, {answer_set: rows})
    assert read_answers(path) == {answer_set: rows}


def test_a_gzip_bomb_is_a_damaged_baseline(tmp_path: Path) -> None:
    path = tmp_path / "gifts.responses.jsonl.gz"
    path.write_bytes(gzip.compress(b"{}\n") + gzip.compress(b" " * 50_000_000) * 1000)
    assert path.stat().st_size < 100_000_000
    with pytest.raises(
        BaselineError, match=r"gifts.responses.jsonl.gz:2: the line is longer than the maximum of 33,554,432 bytes"
    ):
        read_answers(path.with_suffix(""))
    path.write_bytes(gzip.compress(b"\n" * 10_000_000) * 100)
    with pytest.raises(BaselineError, match=r"gifts.responses.jsonl.gz:2: the line is empty"):
        read_answers(path.with_suffix(""))


def test_a_baseline_has_only_so_many_bytes(tmp_path: Path) -> None:
    path = tmp_path / "gifts.responses.jsonl.gz"
    path.write_bytes(gzip.compress(b"[1]\n" * 1_000_000))
    with pytest.raises(BaselineError, match=r"larger than the maximum of 1,000,000 bytes.*git checkout"):
        read_answers(path.with_suffix(""), 1_000_000)


def test_deep_json_in_a_baseline(tmp_path: Path) -> None:
    path = tmp_path / "gifts.responses.jsonl.gz"
    path.write_bytes(gzip.compress(b"[" * 1_000_000 + b"\n"))
    with pytest.raises(BaselineError, match=r"gifts.responses.jsonl.gz:1: is not JSON"):
        read_answers(path.with_suffix(""))


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl"])
def test_a_line_of_a_data_file_is_bounded(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    first = "id,text\n" if name.endswith("csv") else '{"id": "1", "text": "a"}\n'
    path.write_text(first + "a" * (MAX_LINE + 1))
    with pytest.raises(
        ProbeError, match=rf"{name}:2: a line has more than 33,554,432 characters: write one row per line"
    ):
        table.read(path, name)


def test_a_field_without_its_closing_quote_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('id,text\n1,"' + "a word\n" * (MAX_LINE // 7 + 1))
    with pytest.raises(ProbeError, match=r"rows.csv:2: not valid CSV: field larger than field limit"):
        table.read(path, "rows.csv")


def test_the_largest_answer_is_read_from_a_data_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"text": "\x01" * LARGEST}) + "\n")
    assert len(str(table.read(path, "rows.jsonl").rows[0].fields["text"])) == LARGEST
