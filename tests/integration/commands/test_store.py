"""The commands `store` and `merge`."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_fairness.__main__ import main
from pytest_fairness.asking.claims import ANY_ANSWER
from pytest_fairness.asking.store import Store
from pytest_fairness.option_types import DatabaseUrl
from pytest_fairness.records import Request, Response

DAY = 86_400.0
REQUEST, RESPONSE = Request("Who?"), Response("Me.", "stop", created=time.time())


def fill(path: Path | DatabaseUrl, answers: dict[str, float], target: str = "openai:tiny") -> None:
    """Record an answer of each age (days) under its key."""
    with Store(path) as store:
        for key, days in answers.items():
            answer = replace(RESPONSE, text=f"{key}, {days} days old", created=time.time() - days * DAY)
            store.record(key, REQUEST, target, answer)


def texts(path: Path | DatabaseUrl) -> dict[str, str]:
    with Store(path) as store:
        return {each.key: each.response.text for each in store.all_recorded()}


def test_of_two_responses_to_a_request_the_newer_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two, merged = tmp_path / "one.sqlite", tmp_path / "two.sqlite", tmp_path / "merged.sqlite"
    fill(one, {"a": 1, "b": 5})
    fill(two, {"b": 2, "c": 3})
    fill(merged, {"c": 1})
    assert main(["merge", str(one), str(two), "--store", str(merged)]) == 0
    assert texts(merged) == {"a": "a, 1 days old", "b": "b, 2 days old", "c": "c, 1 days old"}
    assert f"{two}: copied 1 of 2 responses into {merged}" in capsys.readouterr().out
    assert main(["merge", str(one), str(two), "--store", str(merged)]) == 0
    assert "copied 0 of 2 responses" in capsys.readouterr().out


def test_thousands_of_responses_are_merged(tmp_path: Path) -> None:
    one, merged = tmp_path / "one.sqlite", tmp_path / "merged.sqlite"
    with Store(one) as store:
        keys = [f"{number:064x}" for number in range(2_500)]
        store.database.write(lambda: [store.record(key, REQUEST, "target", RESPONSE) for key in keys])
    assert main(["merge", str(one), "--store", str(merged)]) == 0
    with Store(merged) as store:
        assert store.recorded(keys, ANY_ANSWER) == set(keys)


def test_a_store_that_does_not_exist_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["merge", str(tmp_path / "nowhere"), "--store", str(tmp_path / "merged.sqlite")]) == 2
    assert "nowhere: there is no store at this path." in capsys.readouterr().err
    assert not (tmp_path / "merged.sqlite").exists()
    fill(tmp_path / "one.sqlite", {"a": 1})
    assert main(["merge", str(tmp_path / "one.sqlite"), "--store", str(tmp_path / "one.sqlite")]) == 2
    assert "cannot be copied into itself" in capsys.readouterr().err


def test_sizes_by_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "store.sqlite"
    fill(path, {"a": 1, "b": 400})
    fill(path, {"c": 2}, target="openai:other")
    assert main(["store", "--store", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["responses", "size", "oldest", "newest", "target"]
    assert lines[1].split()[0] == "2"
    assert lines[1].endswith("openai:tiny")
    assert lines[3].split()[0] == "3"
    assert lines[3].endswith("all targets")
    assert lines[1].split()[2] == "kB"
    with pytest.raises(SystemExit):
        main(["store", "--store", str(path), "--prune", "soon"])
    assert "must be a number of days of at least 0, not 'soon'" in capsys.readouterr().err


def test_old_responses_are_deleted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "store.sqlite"
    fill(path, {"a": 1, "b": 40})
    fill(path, {"c": 50}, target="openai:other")
    assert main(["store", "--store", str(path), "--prune", "30", "--target", "openai:other"]) == 0
    assert texts(path).keys() == {"a", "b"}
    assert main(["store", "--store", str(path), "--prune", "30"]) == 0
    assert texts(path).keys() == {"a"}
    assert "1 response deleted" in capsys.readouterr().out
    assert main(["store", "--store", str(path), "--prune", "30", "--target", "wrong"]) == 2
    assert "Recorded targets: openai:tiny" in capsys.readouterr().err


def test_the_file_shrinks(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with Store(path) as store:
        for number in range(300):
            store.record(f"{number:064x}", REQUEST, "target", replace(RESPONSE, text="long " * 1000))
    before = path.stat().st_size
    assert main(["store", "--store", str(path), "--prune", "0"]) == 0
    assert main(["store", "--store", str(path), "--vacuum"]) == 0
    assert path.stat().st_size < before / 10


def test_a_folder_or_the_store_itself_is_no_destination(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, folder = tmp_path / "store.sqlite", tmp_path / "folder"
    fill(path, {"a": 1})
    folder.mkdir(mode=0o755)
    assert main(["store", "--store", str(path), "--copy-to", str(folder)]) == 2
    assert f"{folder} is a folder. Name a file in this folder" in capsys.readouterr().err
    assert folder.stat().st_mode & 0o777 == 0o755, "permissions of the folder"
    assert main(["store", "--store", str(path), "--copy-to", str(path)]) == 2
    assert "a store cannot be copied into itself" in capsys.readouterr().err


@pytest.mark.parametrize("address", ["mysql://x/y", "postgresql:", "postgres:/x", "postgresql+psycopg://x/y"])
def test_other_addresses_are_refused(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["store", "--store", address])
    assert "must be the path of a file or the address of a database" in capsys.readouterr().err


def test_a_store_moves_to_a_database_and_back(
    tmp_path: Path, database_url: DatabaseUrl, capsys: pytest.CaptureFixture[str]
) -> None:
    one, back = tmp_path / "one.sqlite", tmp_path / "back.sqlite"
    fill(one, {"a": 1, "b": 2})
    with Store(one) as store:
        store.database.execute("INSERT INTO history (run) VALUES ('{}')")
    assert main(["store", "--store", str(one), "--copy-to", str(database_url)]) == 0
    assert "copied 2 of 2 responses, and the history of 1 run" in capsys.readouterr().out
    assert main(["store", "--store", str(database_url), "--copy-to", str(back)]) == 0
    assert texts(back) == texts(one)
    assert main(["store", "--store", str(database_url), "--vacuum"]) == 0
    fill(database_url, {"c": 5})
    assert main(["store", "--store", str(database_url), "--prune", "3"]) == 0
    assert texts(database_url).keys() == {"a", "b"}
    assert main(["store", "--store", str(database_url)]) == 0
    assert "openai:tiny" in capsys.readouterr().out
