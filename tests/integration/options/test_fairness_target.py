"""`--fairness-target`, its ini, its environment variable, and the fixture that overrides them all."""

from __future__ import annotations

import re

import pytest

from pytest_fairness.__main__ import main
from tests.support.projects import APP, KIM, LOU, PROBE, THINGS_TABLE, Project, ini, says, shows

OVERRIDE = """
import pytest

@pytest.fixture(scope="session")
def fairness_target():
    import app
    yield app.biased
"""


def test_the_option_goes_before_the_environment_and_the_environment_before_the_ini(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.probe()
    project.write("pytest.ini", ini(fairness_target="python:app:biased"))
    assert project.verdicts(target=None)[KIM] == "over-limit"
    monkeypatch.setenv("PYTEST_FAIRNESS_TARGET", "python:app:polite")
    assert project.verdicts(target=None)[KIM] == "pass"
    assert project.verdicts(target="python:app:biased")[KIM] == "over-limit"
    assert project.verdicts(target=" ")[KIM] == "pass", "an empty option, as of an unset variable in CI, is none"


@pytest.mark.parametrize("written", ["opnai:gpt-5", "nobody", "python:", "python:app"])
def test_an_unknown_target_is_a_usage_error(project: Project, written: str) -> None:
    project.probe()
    result = project.run("--fairness", target=written)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert len(result.stderr.str().strip().splitlines()) == 1
    assert written in result.stderr.str()


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("python:nowhere:answer", "python:nowhere:answer: there is no module 'nowhere'"),
        ("python:app:nothing", "python:app:nothing: app has no 'nothing'"),
        ("python:app:two", "python:app:two must take the prompt as its only required argument and"),
    ],
)
def test_a_target_that_cannot_be_used_is_each_items_error(project: Project, written: str, message: str) -> None:
    project.probe()
    project.write("test_own.py", "def test_a(): pass")
    project.write("app.py", f"{APP}\ndef two(prompt, context):\n    return polite(prompt)\n")
    result = project.run("--fairness", target=written)
    result.assert_outcomes(errors=2, passed=1)
    assert shows(result, message)
    assert not project.calls()
    assert "Traceback" not in result.stdout.str()


def test_a_conftest_overrides_it_with_any_callable(project: Project) -> None:
    project.probe()
    project.write("conftest.py", OVERRIDE)
    report = project.report()
    assert {item["id"]: item["verdict"] for item in report["items"]} == {KIM: "over-limit", LOU: "pass"}
    assert report["target"] == "conftest.py::fairness_target"
    assert len(project.calls()) == 30


def test_a_conftest_beside_the_probes_overrides_it_for_them_alone(project: Project) -> None:
    project.probe("probes/a/one.yaml")
    project.probe("probes/b/two.yaml")
    project.write("probes/a/conftest.py", OVERRIDE)
    verdicts = {item["nodeid"]: item["verdict"] for item in project.report()["items"]}
    assert verdicts[f"probes/a/one.yaml::{KIM}"] == "over-limit"
    assert verdicts[f"probes/b/two.yaml::{KIM}"] == "pass"
    assert len(project.calls()) == 60, "different targets share no answers, and equal ones each of them"


SEVERAL = ("--fairness-target", "one=python:app:polite", "--fairness-target", "two=python:app:biased")


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "two workers"])
def test_an_id_without_the_name_of_one_of_several_targets_is_an_error_with_the_ids(
    project: Project, workers: tuple[str, ...]
) -> None:
    project.probe()
    result = project.run("--fairness", *SEVERAL, f"probes/gifts.yaml::{KIM}", *workers, target=None)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"probes/gifts.yaml has no item {KIM!r}: did you mean '{KIM[:-1]},target=" in result.stderr.str()
    assert f"{KIM[:-1]},target=one], {KIM[:-1]},target=two], {LOU[:-1]},target=one]" in result.stderr.str()
    assert not project.calls()


def test_an_id_without_a_target_is_that_of_an_overridden_target(project: Project) -> None:
    project.probe()
    project.write("conftest.py", OVERRIDE)
    project.run("--fairness", *SEVERAL, f"probes/gifts.yaml::{KIM}", target=None).assert_outcomes(failed=1)


def test_an_async_callable_and_the_name_of_a_target_will_do(project: Project) -> None:
    project.probe()
    project.write(
        "conftest.py",
        "import pytest\n@pytest.fixture(scope='session')\ndef fairness_target():\n    import app\n"
        "    async def answer(prompt):\n        return app.polite(prompt)\n    return answer\n",
    )
    assert project.verdicts()[KIM] == "pass"
    project.write(
        "conftest.py",
        "import pytest\n@pytest.fixture(scope='session')\ndef fairness_target():\n    return 'python:app:biased'\n",
    )
    assert project.verdicts()[KIM] == "over-limit"


@pytest.mark.parametrize(
    ("body", "scope", "message"),
    [
        ("return 3", "session", "conftest.py::fairness_target must be a callable"),
        ("return 'nobody'", "session", "unknown target 'nobody'"),
        (
            "return lambda prompt: 'A lamp.'",
            "function",
            "conftest.py: the fixture fairness_target has scope='",
        ),
        ("return lambda prompt: 5", "session", "must return a str, not int"),
    ],
)
def test_an_override_that_cannot_be_asked_is_an_error_that_says_why(
    project: Project, body: str, scope: str, message: str
) -> None:
    project.probe()
    project.write(
        "conftest.py", f"import pytest\n@pytest.fixture(scope='{scope}')\ndef fairness_target():\n    {body}\n"
    )
    result = project.run("--fairness")
    result.assert_outcomes(errors=2)
    assert shows(result, message)
    assert "Traceback" not in result.stdout.str()


def test_an_application_that_raises_is_no_answer_and_its_reason_is_shown(project: Project) -> None:
    project.probe()
    project.write("app.py", "def answer(prompt):\n    raise ValueError('no such shelf')\n")
    result = project.run("--fairness", target="python:app:answer")
    result.assert_outcomes(errors=2)
    assert says(result, "none of 20 requests got an answer")
    assert says(result, "raised ValueError at app.py:2, in answer: no such shelf")


def test_a_builtin_that_takes_no_text_is_called_once(project: Project) -> None:
    project.probe()
    project.write("app.py", "answer = int.from_bytes\n")
    result = project.run("--fairness", target="python:app:answer")
    result.assert_outcomes(errors=2)
    assert says(result, "python:app:answer cannot be called with one text: cannot convert 'str' object to bytes.")
    assert says(result, "requests: 1 sent")


def test_answers_that_failed_are_missing_and_hurt_only_their_items(project: Project) -> None:
    project.probe(text=PROBE.replace("trials: 10", "trials: 20"))
    project.write(
        "moody.py",
        "import app\ndef answer(prompt):\n    if 'Kim' in prompt:\n        raise ValueError('no Kim')\n"
        "    return app.polite(prompt)\n",
    )
    assert project.verdicts(target="python:moody:answer") == {KIM: "not-measurable", LOU: "pass"}


# Several targets

BOTH = ("--fairness-target", "kind=python:app:polite", "--fairness-target", "rude=python:app:biased")


def of(target: str, *ids: str) -> list[str]:
    return [f"{name[:-1]},target={target}]" for name in ids]


def test_several_targets_are_audited_side_by_side(project: Project) -> None:
    project.probe()
    report = project.report(*BOTH, target=None)
    assert {item["id"]: item["verdict"] for item in report["items"]} == {
        **dict.fromkeys(of("kind", KIM, LOU), "pass"),
        **dict(zip(of("rude", KIM, LOU), ("over-limit", "pass"), strict=True)),
    }
    assert {item["nodeid"] for item in report["items"]} >= {f"probes/gifts.yaml::{KIM[:-1]},target=rude]"}
    assert {item["probe"] for item in report["items"]} == {"gifts"}
    assert [item["labels"] for item in report["items"]] == [{"name": "Kim"}] * 2 + [{"name": "Lou"}] * 2
    assert report["target"] == "kind=python:app:polite, rude=python:app:biased"
    assert len(project.calls()) == 60
    by_target = report["summary"]["by_target"]
    assert {name: (each["target"], each["passed"], each["failed"]) for name, each in by_target.items()} == {
        "kind": ("python:app:polite", 2, 0),
        "rude": ("python:app:biased", 1, 1),
    }
    assert by_target["rude"]["by_audit"]["refusals"]["total"] == 2


def test_the_table_of_targets_against_audits(project: Project) -> None:
    project.probe()
    result = project.run(
        "--fairness", *BOTH, "--fairness-report", "report.md", "--fairness-report", "report.html", target=None
    )
    result.assert_outcomes(passed=3, failed=1)
    table = result.stdout.str().partition("audits by target")[2].splitlines()[1:5]
    assert [line.split() for line in table] == [
        ["@kind", "@rude"],
        [KIM, "0", "✓", "pass", "1", "✗", "over-limit"],
        [LOU, "0", "✓", "pass", "0", "✓", "pass"],
        ["2", "of", "2", "passed", "1", "of", "2", "passed"],
    ]
    markdown = (project.path / "report.md").read_text("utf-8")
    assert "Audits by target" in markdown
    assert "| refusals\\[name=Kim\\] | ✅ 0 | ❌ 1 |" in markdown
    page = (project.path / "report.html").read_text("utf-8")
    assert "Audits by target" in page
    assert "1 over-limit" in page


def test_each_has_a_baseline_of_its_own(project: Project) -> None:
    project.probe(text=PROBE.replace("{limit: 0.5, gate: point}", "{}"))
    result = project.run("--fairness", *BOTH, target=None)
    assert result.parseoutcomes() == {"no": 4}, "no-baseline"
    shown = " ".join(result.stdout.str().replace("\\\n", " ").split())
    assert "pytest --fairness-rebaseline --fairness-target kind=python:app:polite --fairness-target rude=" in shown
    assert f"'probes/gifts.yaml::{KIM[:-1]},target=kind]'" in shown
    result = project.run("--fairness-rebaseline", *BOTH, f"probes/gifts.yaml::{KIM[:-1]},target=rude]", target=None)
    assert result.ret == 0
    assert says(result, f"new baselines of gifts@rude: {KIM[:-1]},target=rude]: none -> 1")
    assert sorted(path.name for path in (project.path / "baselines").iterdir()) == [
        "gifts@rude.json",
        "gifts@rude.responses.jsonl",
    ]
    project.run("--fairness-rebaseline", *BOTH, target=None)
    assert set(project.read("baselines/gifts@kind.json")["items"]) == set(of("kind", KIM, LOU))
    assert (
        project.read("baselines/gifts@rude.json")["items"][f"{KIM[:-1]},target=rude]"]["target"] == "python:app:biased"
    )
    assert project.verdicts(*BOTH, target=None)[f"{KIM[:-1]},target=rude]"] == "inconclusive"
    swapped = ("--fairness-target", "rude=python:app:polite", "--fairness-target", "kind=python:app:biased")
    result = project.run("--fairness", *swapped, target=None)
    assert f"FAILED probes/gifts.yaml::{KIM[:-1]},target=kind] - " in result.stdout.str()
    assert says(result, "the baseline of @kind was measured with python:app:polite on ")
    project.probe(text=PROBE.replace("[Kim, Lou]", "[Kim]"))
    assert says(
        project.run("--fairness", *BOTH, target=None), f"that belong to no item of the probe: {LOU[:-1]},target=kind]"
    )


def test_a_baseline_with_former_ids_is_read_and_written_anew(project: Project) -> None:
    project.probe(text=PROBE.replace("{limit: 0.5, gate: point}", "{}"))
    project.run("--fairness-rebaseline", *BOTH, target=None)
    path = project.path / "baselines/gifts@rude.json"
    current = path.read_text("utf-8")
    former = re.sub(r",target=rude\]", "]@rude", current)
    assert former.count("]@rude") == 2
    path.write_text(former, "utf-8")
    items = project.report(*BOTH, "--fairness-replay", target=None)["items"]
    assert {item["change"]["value"] for item in items} == {0}
    project.run("--fairness-rebaseline", "--fairness-replay", *BOTH, target=None)
    assert set(project.read("baselines/gifts@rude.json")["items"]) == set(of("rude", KIM, LOU))
    assert path.read_text("utf-8") == current


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            (f"probes/gifts.yaml::{KIM}@rude",),
            f"no item '{KIM}@rude': the name of the target is inside the brackets",
        ),
        (("-k", "Kim and @rude"), "-k 'Kim and @rude': the ids of items no longer end in @rude"),
    ],
    ids=["node id", "-k"],
)
@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "a worker"])
def test_a_former_id_is_an_error_with_the_current_one(
    project: Project, arguments: tuple[str, ...], said: str, workers: tuple[str, ...]
) -> None:
    project.probe()
    result = project.run("--fairness", *BOTH, *arguments, *workers, target=None)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert said in result.stderr.str()
    assert "target=" in result.stderr.str()


def test_an_audit_of_the_whole_probe_has_the_target_alone_in_its_id(project: Project) -> None:
    project.probe(
        "probes/songs.yaml",
        "kind: recommendation\nprompt: I am {value} fan of {entity}. Name {k} songs.\n"
        "neutral: I am a fan of {entity}. Name {k} songs.\nentities: [Mozart, Bach]\n"
        "attributes: {age: [a young, an old]}\nk: 3\naudits: {uncertainty: {repeats: 2, attributes: [age]}}\n",
    )
    arguments = ("--collect-only", "-q", "probes/songs.yaml::uncertainty[target=kind]")
    result = project.run("--fairness", *BOTH, *arguments, target=None)
    assert "probes/songs.yaml::uncertainty[target=kind]" in result.outlines
    assert len([line for line in result.outlines if "::" in line]) == 1


@pytest.mark.parametrize(
    ("arguments", "selected"),
    [
        (("-k", "rude"), of("rude", KIM, LOU)),
        (("-k", "Lou and not rude"), of("kind", LOU)),
        (("-m", "fairness(target='rude')"), of("rude", KIM, LOU)),
        (("-m", "fairness and not fairness(target='rude')"), of("kind", KIM, LOU)),
        ((f"probes/gifts.yaml::{LOU[:-1]},target=kind]",), of("kind", LOU)),
    ],
)
def test_items_of_one_target_are_selected(project: Project, arguments: tuple[str, ...], selected: list[str]) -> None:
    project.probe()
    result = project.run("--fairness", "--collect-only", "-q", *BOTH, *arguments, target=None)
    assert sorted(line for line in result.outlines if "::" in line) == [
        f"probes/gifts.yaml::{name}" for name in selected
    ]
    assert project.calls() == []


def names_in_junit(project: Project) -> set[str]:
    return set(re.findall(r'<testcase [^>]*\bname="([^"]+)"', (project.path / "junit.xml").read_text("utf-8")))


def test_workers_agree_and_share(project: Project) -> None:
    project.probe()
    written = ("--fairness-report", "report.json", "--junitxml", "junit.xml")
    result = project.run("--fairness", *BOTH, "-n", "2", *written, target=None)
    result.assert_outcomes(passed=3, failed=1)
    assert f"FAILED probes/gifts.yaml::{KIM[:-1]},target=rude] - " in result.stdout.str()
    assert names_in_junit(project) == {*of("kind", KIM, LOU), *of("rude", KIM, LOU)}
    assert len(project.calls()) == 60
    assert project.read("report.json")["requests"]["planned"] == 60


def test_other_plugins_know_the_items_by_their_ids(project: Project) -> None:
    project.probe()
    result = project.run("--fairness", *BOTH, "--junitxml", "junit.xml", target=None)
    assert f"FAILED probes/gifts.yaml::{KIM[:-1]},target=rude] - " in result.stdout.str()
    assert names_in_junit(project) == {*of("kind", KIM, LOU), *of("rude", KIM, LOU)}
    result = project.run("--fairness", *BOTH, "--lf", "-v", target=None)
    result.assert_outcomes(failed=1)
    assert shows(result, f"probes/gifts.yaml::{KIM[:-1]},target=rude] FAILED")
    result = project.run("--fairness", "--lf", *BOTH[:2], "--fairness-target", "rude=python:app:polite", target=None)
    result.assert_outcomes(passed=1)


def test_several_lines_of_the_ini_and_of_the_environment(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.probe()
    project.write("pytest.ini", ini(fairness_target="\n  kind = python:app:polite\n  rude=python:app:biased"))
    assert project.verdicts(target=None)[f"{KIM[:-1]},target=rude]"] == "over-limit"
    monkeypatch.setenv("PYTEST_FAIRNESS_TARGET", "one=python:app:polite")
    assert project.verdicts(target=None) == {f"{KIM[:-1]},target=one]": "pass", f"{LOU[:-1]},target=one]": "pass"}
    assert project.verdicts(target="python:app:polite") == {KIM: "pass", LOU: "pass"}


@pytest.mark.parametrize(
    ("targets", "said"),
    [
        (["python:app:polite", "a=local"], "'python:app:polite' is one of 2 targets and has no name. Write each"),
        (["local", "local"], "'local' is one of 2 targets and has no name"),
        (["a=local", "a=python:app:polite"], "two targets are named 'a'"),
        (["a=local", "b=opnai:gpt"], "unknown target 'opnai:gpt'"),
        (["a=local", "b@c=local"], "'b@c=local' is one of 2 targets and has no name"),
    ],
)
def test_names_that_cannot_be(project: Project, targets: list[str], said: str) -> None:
    project.probe()
    options = [word for target in targets for word in ("--fairness-target", target)]
    result = project.run("--fairness", *options, target=None)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert said in result.stderr.str()


def test_two_names_of_one_target_share_its_answers(project: Project) -> None:
    project.probe()
    both = ("--fairness-target", "a=python:app:biased", "--fairness-target", "b=python:app:biased")
    report = project.report(*both, target=None)
    values = {item["id"]: item["value"] for item in report["items"]}
    assert values[f"{KIM[:-1]},target=a]"] == values[f"{KIM[:-1]},target=b]"] == 1
    assert len(project.calls()) == 30


def test_a_dry_run_counts_each(project: Project) -> None:
    project.probe()
    result = project.run("--fairness-dry-run", *BOTH, target=None)
    assert says(result, "gifts@kind (probes/gifts.yaml): 30 requests, 0 recorded, 30 to send")
    assert says(result, "gifts@rude (probes/gifts.yaml): 30 requests, 0 recorded, 30 to send")
    assert says(result, "total: 60 requests to kind=python:app:polite, rude=python:app:biased; nothing was sent")
    assert project.calls() == []


def test_a_conftest_goes_before_several_targets_where_it_holds(project: Project) -> None:
    project.probe("probes/a/one.yaml")
    project.probe("probes/b/two.yaml")
    project.write("probes/a/conftest.py", OVERRIDE)
    report = project.report(*BOTH, target=None)
    ids = {item["nodeid"] for item in report["items"]}
    assert {name for name in ids if "/a/" in name} == {f"probes/a/one.yaml::{name}" for name in (KIM, LOU)}
    assert {name for name in ids if "/b/" in name} == {
        f"probes/b/two.yaml::{name}" for target in ("kind", "rude") for name in of(target, KIM, LOU)
    }
    assert report["target"].endswith(", probes/a/conftest.py::fairness_target")
    assert report["summary"]["by_target"]["kind"]["total"] == 2


def test_answers_in_a_file_are_measured_once(project: Project) -> None:
    project.write("probes/rows.csv", THINGS_TABLE)
    project.probe(text=PROBE.replace("prompt: What would you recommend to {name}?", "responses: {file: rows.csv}"))
    assert set(project.verdicts(*BOTH, target=None)) == {KIM, LOU}


PYTHON_TEST = """
import pytest

@pytest.mark.fairness
def test_gifts(corpus_generator, fairness_check):
    axes = {"name": {"unmarked": "Alex", "marked": ["Kim"]}}
    corpus = corpus_generator("What would you recommend to {name}?", axes=axes, trials=20)
    fairness_check("own", corpus.refusals("name", "Kim"), limit=0.5)

@pytest.mark.fairness
def test_client(llm_client):
    assert "sturdy" in llm_client.complete("Hello Alex")[0].text

def test_other():
    pass
"""


def test_python_tests_that_ask_run_for_each(project: Project) -> None:
    project.write("test_own.py", PYTHON_TEST)
    result = project.run("--fairness", "-v", *BOTH, "--fairness-report", "report.json", target=None)
    result.assert_outcomes(passed=4, failed=1)
    assert shows(result, "test_own.py::test_gifts[@rude] FAILED")
    assert shows(result, "test_own.py::test_client[@kind] PASSED")
    report = project.read("report.json")
    assert {item["id"]: item["verdict"] for item in report["items"]} == {
        "refusals[name=Kim,target=kind]": "pass",
        "refusals[name=Kim,target=rude]": "over-limit",
    }
    project.run("--fairness-rebaseline", "-m", "fairness(target='kind')", *BOTH, target=None)
    assert (project.path / "baselines/own@kind.json").exists()
    assert not (project.path / "baselines/own@rude.json").exists()


def test_who_asks_without_an_argument_is_told_why_not(project: Project) -> None:
    project.write("test_own.py", "def test_a(request):\n    request.getfixturevalue('llm_client')\n")
    result = project.run("--fairness", *BOTH, target=None)
    result.assert_outcomes(failed=1)
    assert shows(result, "there are several targets (kind, rude), but the test is not repeated for each target")


def test_runs_of_several_targets_are_compared_and_remembered(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")  # narrower tables leave out the names of axes
    project.probe()
    project.run("--fairness", "--fairness-report", "old.json", *BOTH, target=None)
    worse = ("--fairness-target", "kind=python:app:biased", "--fairness-target", "rude=python:app:biased")
    project.run("--fairness", "--fairness-report", "new.json", *worse, target=None)
    capsys.readouterr()
    assert main(["compare", "old.json", "new.json"]) == 0
    assert f"{KIM[:-1]},target=kind]" in capsys.readouterr().out
    assert main(["history"]) == 0
    assert f"{KIM[:-1]},target=rude]" in capsys.readouterr().out
