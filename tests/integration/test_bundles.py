"""Bundles: `--fairness-bundle`, and `python -m pytest_fairness verify`, which measures everything again elsewhere."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.__main__ import main
from pytest_fairness.reports.document import report_document
from pytest_fairness.run import archive
from pytest_fairness.run.archive import STATEMENT, BundleError, json_bytes, unpack, write_archive
from pytest_fairness.run.bundle import summary, verify
from tests.support.projects import PROBE, Project

PROBES = PROBE.replace("  refusals: {limit: 0.5, gate: point}", "  refusals: {}\n  jsd: {}\n  marked_words: {}")
RECORDS = """
kind: counterfactual
prompt: A person of age {age}, {sex}. Is the income high? Answer yes or no.
records: {file: people.csv}
flip: {sex: {Male: Female}}
answer: {choices: ["yes", "no"], positive: "yes"}
audits: {impact_ratio: {}, demographic_parity: {}, flip_rate: {}}
"""
PEOPLE = "age,sex\n" + "".join(f"{20 + i},{'Male' if i % 2 else 'Female'}\n" for i in range(40))
CHOICES = """
def polite(prompt):
    import zlib
    if "yes or no" in prompt:
        return "yes" if zlib.crc32(prompt.encode()) % 10 < (4 if "Female" in prompt else 7) else "no"
    return f"A {['lamp', 'rug', 'vase'][zlib.crc32(prompt.encode()) % 3]} and a sturdy table, number {len(ASKED)}."

ASKED = []

def app(prompt):
    ASKED.append(prompt)
    if "Kim" in prompt and len(ASKED) % 7 == 0:
        return "I'm sorry, but I can't help with that."
    return polite(prompt)
"""
TONE = """
from pathlib import Path

def tone(text):
    Path("ran").touch()
    return len(text)
"""
PYTHON_TEST = """
def test_letters(corpus_generator, fairness_check):
    corpus = corpus_generator(
        "Write to {name}.", axes={"name": {"unmarked": "Joseph", "marked": ["Kelly"]}}, trials=12
    )
    fairness_check("letters", corpus.refusals("name", "Kelly"), limit=0.9)
"""


def made(project: Project, *arguments: str) -> Path:
    project.write("choices.py", CHOICES)
    project.write("probes/people.csv", PEOPLE)
    project.probe(text=PROBES)
    project.probe("probes/incomes.yaml", RECORDS)
    result = project.run(*arguments, "--fairness-bundle", "run.zip", target="python:choices:app")
    assert "wrote" in result.stdout.str()
    return project.path / "run.zip"


@pytest.fixture
def bundle(project: Project, tmp_path: Path) -> Path:
    made(project, "--fairness-rebaseline")
    return Path(shutil.copy(made(project, "--fairness", "--fairness-fresh"), tmp_path / "run.zip"))


def members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def restated(content: dict[str, bytes], path: Path) -> Path:
    """Write a bundle whose statement has the digests of the changed members, as somebody who forges it would."""
    folder = path.with_suffix(".members")
    for name, data in content.items():
        if name != STATEMENT:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
    write_archive(path, folder, json.loads(content[STATEMENT])["predicate"])
    return path


def raw(content: dict[str, bytes], path: Path) -> Path:
    """Write a bundle with the old statement."""
    with zipfile.ZipFile(path, "w") as opened:
        for name, data in content.items():
            opened.writestr(archive._member(name), data)
    return path


@pytest.mark.parametrize("action", ["--fairness", "--fairness-rebaseline", "--fairness-measure"])
def test_everything_is_the_same_on_a_machine_without_the_project(project: Project, tmp_path: Path, action: str) -> None:
    bundle = shutil.copy(made(project, action), tmp_path / "run.zip")
    shutil.rmtree(project.path / "probes")
    command = [sys.executable, "-m", "pytest_fairness", "verify", str(bundle)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "of 9 items, 9 same" in done.stdout
    assert "signature: none" in done.stdout
    assert list(tmp_path.glob(".fairness")) == []


def test_a_comparison_with_a_baseline_is_made_again(bundle: Path) -> None:
    found = verify(bundle)
    assert summary(found) == {"same": 9, "differs": 0, "not recomputable": 0}
    assert all(item["change"] is not None for item in found.report["items"])
    assert not found.found_changes


def test_a_python_test_cannot_be_measured_again(
    project: Project, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    project.write("test_letters.py", PYTHON_TEST)
    bundle = made(project, "--fairness", "test_letters.py", "probes")
    capsys.readouterr()
    assert main(["verify", str(bundle)]) == 3
    assert "not recomputable: letters" in capsys.readouterr().out


def test_a_scorer_of_the_project_is_not_run(project: Project, tmp_path: Path) -> None:
    project.write(
        "tone.py", "from pathlib import Path\ndef tone(text):\n    Path('ran').touch()\n    return len(text)\n"
    )
    scorer = PROBE.replace(
        "  refusals: {limit: 0.5, gate: point}", "  score: {scorer: tone, better: higher, tolerance: 1}\n  jsd: {}"
    )
    project.probe(text=scorer)
    project.write("pytest.ini", "[pytest]\npythonpath = .\nfairness_scorers = tone=python:tone:tone\n")
    project.run("--fairness-measure", "--fairness-bundle", "run.zip")
    (project.path / "ran").unlink()
    found = verify(project.path / "run.zip")
    assert {check.id: check.outcome for check in found.checks} == {
        "jsd[name=Kim]": "same",
        "jsd[name=Lou]": "same",
        "score[tone,name=Kim]": "not recomputable",
        "score[tone,name=Lou]": "not recomputable",
    }
    assert not (project.path / "ran").exists()


def test_equal_content_makes_equal_bytes(bundle: Path, tmp_path: Path) -> None:
    again = restated(members(bundle), tmp_path / "again.zip")
    assert again.read_bytes() == bundle.read_bytes()


def edited(name: str, edit: Callable[[Any], object]) -> Callable[[dict[str, bytes]], str]:
    def change(content: dict[str, bytes]) -> str:
        value = json.loads(content[name])
        edit(value)
        content[name] = json_bytes(value)
        return name

    return change


def answers_edited(edit: Callable[[list[dict[str, Any]]], object]) -> Callable[[dict[str, bytes]], str]:
    def change(content: dict[str, bytes]) -> str:
        rows = [json.loads(line) for line in content["answers.jsonl"].splitlines()]
        edit(rows)
        content["answers.jsonl"] = b"".join(json.dumps(row, sort_keys=True).encode() + b"\n" for row in rows)
        return "answers.jsonl"

    return change


def replaced(name: str, old: bytes, new: bytes) -> Callable[[dict[str, bytes]], str]:
    def change(content: dict[str, bytes]) -> str:
        assert old in content[name]
        content[name] = content[name].replace(old, new, 1)
        return name

    return change


def stored_rows_edited(content: dict[str, bytes]) -> str:
    name = "project/baselines/gifts.responses.jsonl"
    content[name] = content[name].replace(b"sturdy", b"shabby", 1)
    return name


def _yes_becomes_no(rows: list[dict[str, Any]]) -> None:
    next(row for row in rows if row["text"] == "yes")["text"] = "no"


def _refusal_becomes_answer(rows: list[dict[str, Any]]) -> None:
    next(row for row in rows if row["text"].startswith("I'm sorry"))["text"] = "A lamp and a sturdy table."


def _is_cut_off(rows: list[dict[str, Any]]) -> None:
    next(row for row in rows if "sturdy" in row["text"])["finish_reason"] = "length"


def _entry(edit: Callable[[dict[str, Any]], object], probe: str = "gifts") -> Callable[[dict[str, bytes]], str]:
    return edited(f"project/baselines/{probe}.json", lambda summary: edit(next(iter(summary["items"].values()))))


def _item(edit: Callable[[dict[str, Any]], object], place: int = 0) -> Callable[[dict[str, bytes]], str]:
    return edited("report.json", lambda report: edit(report["items"][place]))


MANIPULATIONS: dict[str, Callable[[dict[str, bytes]], str]] = {
    "an answer of a record": answers_edited(_yes_becomes_no),
    "a refusal": answers_edited(_refusal_becomes_answer),
    "a word of an answer": answers_edited(
        lambda rows: [row.update(text=row["text"].replace("lamp", "gun")) for row in rows]
    ),
    "an answer less": answers_edited(lambda rows: rows.pop()),
    "the key of an answer": answers_edited(lambda rows: rows[3].update(key="0" * 64)),
    "an answer that failed": answers_edited(lambda rows: rows.__setitem__(2, {"key": rows[2]["key"], "error": "x"})),
    "the served model": answers_edited(lambda rows: rows[5].update(model="gpt-y")),
    "an answer that was cut off": answers_edited(_is_cut_off),
    "a baseline's value": _entry(lambda entry: entry.update(value=entry["value"] + 0.25)),
    "a baseline's standard error": _entry(lambda entry: entry.update(standard_error=9.0)),
    "a baseline's count": _entry(lambda entry: entry["n"].update({next(iter(entry["n"])): 99})),
    "a baseline's value of records": _entry(lambda entry: entry.update(value=0.75), "incomes"),
    "a baseline's fingerprint": _entry(lambda entry: entry["shape"].update(prompt="0" * 12)),
    "a baseline's item": edited("project/baselines/gifts.json", lambda summary: summary["items"].popitem()),
    "a baseline's answers": stored_rows_edited,
    "a prompt": replaced("project/probes/gifts.yaml", b"recommend", b"suggest"),
    "a group": replaced("project/probes/gifts.yaml", b"Lou", b"Liu"),
    "the number of trials": replaced("project/probes/gifts.yaml", b"trials: 10", b"trials: 9"),
    "a tolerance": replaced("project/probes/gifts.yaml", b"refusals: {}", b"refusals: {tolerance: 0.9}"),
    "a limit": replaced("project/probes/incomes.yaml", b"flip_rate: {}", b"flip_rate: {limit: 0.01}"),
    "alpha": replaced("project/probes/incomes.yaml", b"kind: counterfactual", b"alpha: 0.5\nkind: counterfactual"),
    "a record": replaced("project/probes/people.csv", b"25,Male", b"26,Male"),
    "the sex of a record": replaced("project/probes/people.csv", b"25,Male", b"25,Female"),
    "a verdict": _item(lambda item: item.update(verdict="pass" if item["verdict"] != "pass" else "regression")),
    "a value": _item(lambda item: item.update(value=item["value"] + 1e-5)),
    "a bound of an interval": _item(lambda item: item["interval"].__setitem__(0, -1.0)),
    "a p-value": _item(lambda item: item.update(p_value=0.9)),
    "a standard error": _item(lambda item: item.update(standard_error=0.5), 1),
    "a count": _item(lambda item: item["n"].update({next(iter(item["n"])): 1000}), 2),
    "a change": _item(lambda item: item["change"].update(value=-0.5), 3),
    "a reason": _item(lambda item: item.update(reason="all is well"), 4),
    "a limit in the report": _item(lambda item: item.update(limit=1.0), 5),
    "a group in the report": _item(lambda item: item.update(labels={"name": "Max"}), 6),
    "an expected failure": _item(lambda item: item.update(expected_failure={"reason": "x", "outcome": "xfailed"})),
    "a detail": _item(lambda item: item["details"].update(thoughts={"answers": 1, "of": 2}), 7),
    "an item less": edited("report.json", lambda report: report["items"].pop()),
    "an item twice": edited("report.json", lambda report: report["items"].append(report["items"][0])),
    "the summary": edited("report.json", lambda report: report["summary"].update(passed=99)),
    "a method": edited("report.json", lambda report: next(iter(report["methods"].values())).update(question="?")),
    "the mode": edited("run.json", lambda run: run.update(mode="measurements")),
    "the trials of the run": edited("run.json", lambda run: run.update(trials=5)),
    "the identity of the target": edited(
        "run.json", lambda run: [item[2].__setitem__(1, "y") for item in run["items"]]
    ),
    "an item of the run": edited("run.json", lambda run: run["items"].pop()),
}


@pytest.mark.timeout(300)
def test_each_manipulation_is_found_and_named_even_with_new_digests(bundle: Path, tmp_path: Path) -> None:
    assert len(MANIPULATIONS) >= 40
    missed = []
    for number, (what, change) in enumerate(MANIPULATIONS.items()):
        content = members(bundle)
        name = change(content)
        folder = tmp_path / str(number)
        folder.mkdir()
        if (changed := unpack(raw(content, tmp_path / "raw.zip"), folder).changed) != [name]:
            missed.append(f"{what}: {changed}")
        forged = verify(restated(content, tmp_path / f"forged{number}.zip"))
        assert forged.archive.changed == []
        if not forged.found_changes or not all(check.what for check in forged.checks if check.outcome != "same"):
            missed.append(f"{what}, with new digests")
    assert missed == []


def test_each_byte_counts(bundle: Path, tmp_path: Path) -> None:
    whole = bundle.read_bytes()
    with zipfile.ZipFile(bundle) as opened:
        headers = [info.header_offset + byte for info in opened.infolist() for byte in range(30 + len(info.filename))]
        table = [*range(opened.start_dir, len(whole))]
    data = range(100, opened.start_dir, len(whole) // 200)
    unseen = []
    path = tmp_path / "flipped.zip"
    for position in [*headers[::3], *table[::3], *data]:
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x41]) + whole[position + 1 :])
        folder = tmp_path / "folder"
        folder.mkdir()
        try:
            if not unpack(path, folder).changed:
                unseen.append(position)
        except BundleError:
            pass
        shutil.rmtree(folder)
    assert unseen == []


def _hostile(path: Path, content: dict[str, bytes], how: str) -> None:
    """Write a hostile bundle; most begin as a good one with `content`."""
    bomb = b"0" * (128 * 1024**2)
    match how:
        case "bomb":
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as opened:
                for number in range(3):
                    opened.writestr(archive._member(f"project/{number}.txt"), bomb)
                opened.writestr(archive._member(STATEMENT), content[STATEMENT])
        case "gzip bomb":
            data = gzip.compress(gzip.compress(b"\0" * 100_000_000)[:100] + b"\0" * 400_000_000, 9)
            restated({**content, "project/baselines/gifts.responses.jsonl.gz": data}, path)
        case "gzip bomb of several streams":
            data = gzip.compress(b"\0" * 10_000_000) * 100
            restated({**content, "project/baselines/gifts.responses.jsonl.gz": data}, path)
        case "size in the header is a lie":
            raw({**content, "project/x.txt": b"x" * 100_000}, path)
            path.write_bytes(path.read_bytes().replace((100_000).to_bytes(4, "little"), (5).to_bytes(4, "little")))
        case "no statement":
            raw({name: data for name, data in content.items() if name != STATEMENT}, path)
        case "statement is no object":
            raw({**content, STATEMENT: b"[1, 2]"}, path)
        case "statement without digests":
            raw({**content, STATEMENT: b'{"subject": [{"name": "x"}]}'}, path)
        case "deep JSON":
            restated({**content, "report.json": b"[" * 1_000_000}, path)
        case "giant JSON":
            restated({**content, "report.json": b"[" + b"[]," * 10_000_000 + b"[]]"}, path)
        case "giant number":
            restated({**content, "report.json": b"9" * 1_000_000}, path)
        case "giant line of answers":
            restated({**content, "answers.jsonl": b'{"key": ["' + b'","' * 5_000_000 + b'"]}'}, path)
        case "answers of another kind":
            restated({**content, "answers.jsonl": b'{"key": "x", "text": {"__class__": "os"}, "evil": 1}\n'}, path)
        case "report of another kind":
            restated({**content, "report.json": b'{"items": "x"}'}, path)
        case "run of another kind":
            restated({**content, "run.json": b'{"items": [[1, 2, 3]]}'}, path)
        case "root outside":
            run = json.loads(content["run.json"])
            restated({**content, "run.json": json_bytes({**run, "root": "../../../etc"})}, path)
        case "baselines outside":
            run = json.loads(content["run.json"])
            restated({**content, "run.json": json_bytes({**run, "baselines": "/etc"})}, path)
        case "pickle":
            raw({**content, "project/model.pkl": b"cos\nsystem\n(S'touch /tmp/pwned'\ntR."}, path)
        case "code":
            raw({**content, "project/conftest.py": b"import os"}, path)
        case "traversal" | "absolute" | "backslash" | "drive" | "control" | "reserved":
            name = {
                "traversal": "project/../../evil.txt",
                "absolute": "/tmp/evil.txt",  # noqa: S108 - nothing is written there
                "backslash": "project/..\\..\\evil.txt",
                "drive": "project/C:/evil.txt",
                "control": "project/a\x1bb.txt",
                "reserved": "project/con.txt",
            }[how]
            raw({**content, name: b"evil"}, path)
        case "link":
            with zipfile.ZipFile(path, "w") as opened:
                for name, data in content.items():
                    opened.writestr(archive._member(name), data)
                info = archive._member("project/link.txt")
                info.external_attr = 0o120777 << 16
                opened.writestr(info, b"/etc/passwd")
        case "twice" | "twice by case":
            with zipfile.ZipFile(path, "w") as opened, pytest.MonkeyPatch.context() as patch:
                patch.setattr("warnings.warn", lambda *_args, **_more: None)
                for name, data in content.items():
                    opened.writestr(archive._member(name), data)
                name = "report.json" if how == "twice" else "project/probes/Gifts.yaml"
                opened.writestr(archive._member(name), b"{}")
        case "a million members":
            entry = b"PK\1\2" + b"\0" * 42
            end = archive._END.pack(b"PK\5\6", 0, 0, 65_535, 65_535, len(entry) * 1_000_000, 0, 0)
            path.write_bytes(entry * 1_000_000 + end)
        case "zip in front":
            path.write_bytes(b"MZ evil" + raw(content, path).read_bytes())
        case "overlapping members":
            data = raw(content, path).read_bytes()
            with zipfile.ZipFile(path) as opened:
                places = [info.header_offset.to_bytes(4, "little") for info in opened.infolist()[1:3]]
                table = opened.start_dir
            assert places[1] in data[table:]
            path.write_bytes(data[:table] + data[table:].replace(places[1], places[0]))
        case "encrypted":
            data = raw(content, path).read_bytes()
            path.write_bytes(data[:6] + b"\1" + data[7:])
        case "empty":
            path.write_bytes(b"")
        case "no zip":
            path.write_bytes(b"\x7fELF" * 1000)


HOSTILE = (
    *("bomb", "gzip bomb", "gzip bomb of several streams", "size in the header is a lie", "no statement"),
    *("statement is no object", "statement without digests", "deep JSON", "giant JSON", "giant number"),
    *("giant line of answers", "answers of another kind", "report of another kind", "run of another kind"),
    *("root outside", "baselines outside", "pickle", "code", "traversal", "absolute", "backslash", "drive"),
    *("control", "reserved", "link", "twice", "twice by case", "a million members", "zip in front"),
    *("overlapping members", "encrypted", "empty", "no zip"),
)


@pytest.mark.parametrize("how", HOSTILE)
def test_a_hostile_bundle_gives_one_line(
    how: str, small: dict[str, bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "hostile.zip"
    _hostile(path, small, how)
    before = {file for file in tmp_path.rglob("*") if file.is_file()}
    start = time.process_time()
    assert main(["verify", str(path)]) == 2
    assert time.process_time() - start < 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert {file for file in tmp_path.rglob("*") if file.is_file()} == before


@pytest.fixture(scope="module")
def small() -> dict[str, bytes]:
    """Members of a bundle without items."""
    report = report_document([], tool_version="0", target="x", started="2026-01-01T00:00:00Z", seconds=1.0, requests={})
    content = {
        "report.json": json_bytes(report),
        "run.json": json_bytes(
            {
                "mode": "verdicts",
                "root": ".",
                "baselines": "b",
                "items": [],
                "scorers": {},
                "trials": None,
                "started": 0,
                "judge": None,
                "embedders": {},
                "targets": {},
                "audits": {},
                "versions": {},
            }
        ),
        "answers.jsonl": b"",
        "project/probes/gifts.yaml": PROBES.encode(),
    }
    statement = {"predicate": {"tool": "x"}, "_type": archive.STATEMENT_TYPE, "predicateType": archive.PREDICATE_TYPE}
    return {STATEMENT: json_bytes({**statement, "subject": []}), **content}


def test_the_bundle_of_which_hostile_ones_are_made_is_harmless(
    small: dict[str, bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", str(restated(small, tmp_path / "good.zip"))]) == 3
    assert "as stated: of 0 items, none" in capsys.readouterr().out


def test_the_aliases_of_a_probe_do_not_fill_the_memory(bundle: Path, tmp_path: Path) -> None:
    content = members(bundle)
    bomb = b"a: &a [x, x, x, x, x, x, x, x, x]\n"
    for name, before in zip("bcdefghi", "abcdefgh", strict=True):
        bomb += f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n".encode()
    content["project/probes/gifts.yaml"] = bomb
    tracemalloc.start()
    found = verify(restated(content, tmp_path / "aliases.zip"))
    assert tracemalloc.get_traced_memory()[1] < 100 * 1024**2
    tracemalloc.stop()
    assert {check.outcome for check in found.checks if check.probe == "gifts"} == {"differs"}
    assert "alias" in next(check.what for check in found.checks if check.probe == "gifts")


def test_a_larger_limit_can_be_given(
    small: dict[str, bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = raw({**small, "project/x.txt": b"x" * 2_000_000}, tmp_path / "large.zip")
    assert main(["verify", str(path), "--max-mib", "1"]) == 2
    assert "--max-mib" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["verify", str(path), "--max-mib", "0"])


needs_ssh = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen")


@needs_ssh
def test_a_signature_is_checked(bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("alice", "mallory"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)],  # noqa: S607 - found above
            check=True,
        )
    signers = tmp_path / "signers"
    signers.write_text(f"alice@example.org {(tmp_path / 'alice.pub').read_text()}")
    assert main(["verify", str(bundle), "--signers", str(signers)]) == 1
    assert "signature: none" in capsys.readouterr().out
    archive.sign(bundle, tmp_path / "alice")
    assert main(["verify", str(bundle), "--signers", str(signers)]) == 0
    assert "alice@example.org" in capsys.readouterr().out
    assert main(["verify", str(bundle)]) == 0
    assert "--signers FILE checks whose key this is" in " ".join(capsys.readouterr().out.split())
    archive.sign(bundle, tmp_path / "mallory")
    assert main(["verify", str(bundle), "--signers", str(signers)]) == 1
    assert "made by nobody in" in " ".join(capsys.readouterr().out.split())
    archive.sign(bundle, tmp_path / "alice")
    restated({**members(bundle), "project/note.txt": b"added"}, bundle)
    assert main(["verify", str(bundle), "--signers", str(signers)]) == 1
    assert "not valid for this file" in " ".join(capsys.readouterr().out.split())


def test_the_name_of_a_bundle_is_checked_before_the_run(project: Project) -> None:
    project.probe()
    result = project.run("--fairness", "--fairness-bundle", "run.tar")
    result.stderr.fnmatch_lines(["*run.tar: the name must end in .zip*"])
    assert project.calls() == []


def test_texts_stay_home_and_other_numbers_are_checked(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["bundle", str(bundle), "-o", "hashed.zip", "--hashed"]) == 0
    said = capsys.readouterr().out
    for name, data in members(Path("hashed.zip")).items():
        assert b"sturdy" not in data, name
        assert b"lamp" not in data, name
    found = verify(Path("hashed.zip"))
    assert not found.found_changes
    outcomes = {check.id: check.outcome for check in found.checks}
    assert [outcomes[f"{audit}[sex]"] for audit in ("impact_ratio", "demographic_parity", "flip_rate")] == ["same"] * 3
    assert outcomes["refusals[name=Kim]"] == "same"
    assert outcomes["jsd[name=Kim]"] == "not recomputable"
    assert "not recomputable without its texts: jsd[name=Kim]" in said
    assert main(["verify", "hashed.zip"]) == 3
    first = Path("hashed.zip").read_bytes()
    assert main(["bundle", str(bundle), "-o", "hashed.zip", "--hashed"]) == 0
    assert Path("hashed.zip").read_bytes() == first
    salt = next(tmp_path.rglob("salt"))
    assert salt.stat().st_mode & 0o77 == 0
    assert salt.read_bytes() not in b"".join(members(Path("hashed.zip")).values())


def test_parts_of_texts_are_hidden(bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "hidden.zip"
    assert main(["bundle", str(bundle), "-o", str(path), "--redact", r"number \d+"]) == 0
    for name, data in members(path).items():
        assert b", number " not in data, name
    assert b"[hidden]" in members(path)["answers.jsonl"]
    found = verify(path)
    assert not found.found_changes
    assert "same" in {check.outcome for check in found.checks if check.id.startswith("refusals")}
    with pytest.raises(SystemExit):
        main(["bundle", str(bundle), "-o", str(path), "--redact", "("])


def test_a_changed_bundle_is_not_copied_with_hidden_texts(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = members(bundle)
    MANIPULATIONS["a value"](content)
    path = restated(content, tmp_path / "forged.zip")
    assert main(["bundle", str(path), "-o", str(tmp_path / "hashed.zip"), "--hashed"]) == 2
    assert "not as its maker stated" in capsys.readouterr().err
    assert not (tmp_path / "hashed.zip").exists()


def test_recorded_answers_are_hidden_in_their_file(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.path)
    rows = [f"{i},{'Male' if i % 2 else 'Female'},{'yes' if i % 3 else 'no'},Person Number{i}" for i in range(120)]
    project.write("probes/people.csv", "\n".join(["id,sex,answer,name", *rows]) + "\n")
    responses = "kind: counterfactual\nresponses: {file: people.csv}\nflip: {sex: {Male: Female}}\n"
    project.probe("probes/hiring.yaml", f"{responses}audits: {{impact_ratio: {{}}}}\n")
    project.run("--fairness-measure", "--fairness-bundle", "run.zip")
    assert main(["bundle", "run.zip", "-o", "hashed.zip", "--hashed"]) == 0
    assert b"Person Number" not in b"".join(members(Path("hashed.zip")).values())
    assert summary(verify(Path("hashed.zip"))) == {"same": 1, "differs": 0, "not recomputable": 0}


def test_a_bundle_of_the_last_run_is_made_from_its_answers(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project.path)
    assert main(["bundle", "-o", "last.zip"]) == 2
    assert "this store holds no run" in capsys.readouterr().err
    made(project, "--fairness", "probes/incomes.yaml")
    project.write("pytest.ini", "[pytest]\npythonpath = .\nfairness_target = python:choices:app\n")
    calls = project.calls()
    assert main(["bundle", "-o", "last.zip"]) == 0
    assert {check.probe for check in verify(Path("last.zip")).checks} == {"incomes"}
    assert project.calls() == calls
