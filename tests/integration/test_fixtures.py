"""The fixtures and the marker of Python tests."""

from __future__ import annotations

import pytest

from tests.support.projects import Project, ini, says, shows
from tests.support.servers import ChatServer, Reply

CORPUS = """
import pytest

@pytest.mark.fairness
def test_letters(corpus_generator, fairness_check):
    axes = {"name": {"unmarked": "Alex", "marked": ["Kim", "Lou"]}}
    corpus = corpus_generator("What would you recommend to {name}?", axes=axes, trials=10)
    for name in ("Kim", "Lou"):
        fairness_check("letters", corpus.refusals("name", name, gate="point"), tolerance=0.3)
"""
IDS = ["refusals[name=Kim]", "refusals[name=Lou]"]


def test_the_client_asks_through_the_store_and_sends_what_it_is_given(project: Project) -> None:
    project.write(
        "test_own.py",
        """
def test_complete(llm_client):
    answers = llm_client.complete("Hello?", system="Be kind.", trials=3, temperature=0.5, seed=7)
    assert [answer.text for answer in answers] == ["Hi."] * 3
    assert answers[0].completion_tokens == 1
""",
    )
    with ChatServer(lambda *_: "Hi.") as server:
        for _ in range(2):
            arguments = ("--fairness", "--fairness-base-url", server.url)
            project.run(*arguments, target="openai:tiny").assert_outcomes(passed=1)
        assert server.count == 3
        assert len({body["seed"] for body in server.bodies}) == 3
        for body in server.bodies:
            assert body["temperature"] == 0.5
            assert [message["content"] for message in body["messages"]] == ["Be kind.", "Hello?"]


def test_a_missing_answer_is_an_error_that_says_why(project: Project) -> None:
    project.write("test_own.py", "def test_complete(llm_client):\n    llm_client.complete('Hello?')\n")
    with ChatServer(lambda *_: Reply("no such thing", status=400)) as server:
        result = project.run("--fairness", "--fairness-base-url", server.url, target="openai:tiny")
    result.assert_outcomes(failed=1)
    assert says(result, "no such thing")
    assert "Traceback" not in result.stdout.str()
    assert "fixtures.py" not in result.stdout.str()


def test_a_corpus_is_measured_by_every_audit_of_texts(project: Project) -> None:
    project.write(
        "test_own.py",
        """
import pytest
def test_corpus(corpus_generator):
    axes = {"name": {"unmarked": "Alex", "marked": ["Kim"]}}
    corpus = corpus_generator(["Recommend to {name}.", "Suggest to {name}."], axes=axes, trials=9)
    assert len(corpus.answers) == 36
    assert corpus.answers[0].labels == {"name": "Alex", "prompt": "1"}
    measured = corpus.refusals("name", "Kim")
    assert (measured.id, measured.value, measured.labels) == ("refusals[name=Kim]", 0.0, {"name": "Kim"})
    for audit in ("jsd", "marked_words", "mmd", "refusals", "svm"):
        assert callable(getattr(corpus, audit))
    with pytest.raises(AttributeError, match="no audit 'loudness'. The audits are marked_words, svm"):
        corpus.loudness
    with pytest.raises(Exception, match="no item compares name 'Lou'. The items are refusals.name=Kim."):
        corpus.refusals("name", "Lou")
""",
    )
    project.run("--fairness").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("'No placeholder.', axes=AXES", "corpus_generator: the axis 'name' is used in no prompt"),
        ("'For {name}.', axes=AXES, trials=0", "corpus_generator: `trials` must be at least 1"),
        ("'For {name}.', axes=AXES, temprature=1", "did you mean 'temperature'?"),
        ("'For {name} and {other}.', axes=AXES", "corpus_generator: "),
    ],
)
def test_arguments_that_do_not_fit_are_said_like_faults_of_a_probe(
    project: Project, arguments: str, message: str
) -> None:
    project.write(
        "test_own.py",
        "AXES = {'name': {'unmarked': 'Alex', 'marked': ['Kim']}}\n"
        f"def test_corpus(corpus_generator):\n    corpus_generator({arguments})\n",
    )
    result = project.run("--fairness")
    result.assert_outcomes(failed=1)
    assert says(result, message)
    assert not project.calls()


def test_checks_have_baselines_and_rebaseline_like_items(project: Project) -> None:
    project.write("test_own.py", CORPUS)
    result = project.run("--fairness")
    result.assert_outcomes(failed=1)
    assert says(
        result, "refusals[name=Kim]: refusals differ by +0 (0% of Kim, 0% of Alex), with no baseline and no limit"
    )
    assert says(result, "pytest --fairness-rebaseline --fairness-target python:app:polite test_own.py::test_letters")
    result = project.run("--fairness-rebaseline")
    result.assert_outcomes(passed=1)
    assert shows(result, f"  {IDS[0]}: none -> 0")
    assert sorted(project.read("baselines/letters.json")["items"]) == IDS
    project.run("--fairness").assert_outcomes(passed=1)
    result = project.run("--fairness", "--fairness-report", "report.json", target="python:app:biased")
    result.assert_outcomes(failed=1)
    assert says(result, "refusals[name=Kim]: refusals differ by +1 (100% of Kim, 0% of Alex), was 0")
    assert "fixtures.py" not in result.stdout.str()
    (item,) = project.read("report.json")["items"]
    assert (item["probe"], item["id"], item["verdict"]) == ("letters", IDS[0], "regression")
    assert item["nodeid"] == "test_own.py::test_letters"
    assert item["tolerance"] == 0.3


def test_limits_are_held_without_a_baseline(project: Project) -> None:
    project.write("test_own.py", CORPUS.replace("tolerance=0.3", "limit=0.3"))
    project.run("--fairness").assert_outcomes(passed=1)
    project.run("--fairness", target="python:app:biased").assert_outcomes(failed=1)


def test_an_inconclusive_check_makes_the_test_inconclusive(project: Project) -> None:
    small = CORPUS.replace(', gate="point"', "").replace("tolerance=0.3", "limit=0.001, tolerance=0.001")
    project.write("test_own.py", small)
    result = project.run("--fairness", "-v")
    assert result.parseoutcomes() == {"inconclusive": 1}
    assert result.ret == 0
    assert shows(result, "test_own.py::test_letters INCONCLUSIVE")
    project.write("pytest.ini", ini(fairness_inconclusive="fail"))
    project.run("--fairness").assert_outcomes(failed=1)


def test_a_check_takes_no_name_of_a_probe_and_none_that_is_taken(project: Project) -> None:
    project.probe("probes/letters.yaml")
    project.write("test_own.py", CORPUS)
    result = project.run("--fairness")
    result.assert_outcomes(passed=2, failed=1)
    assert says(result, "fairness_check: 'letters' is the name of the probe probes/letters.yaml")
    project.write("test_own.py", CORPUS.replace("letters", "others"))
    project.write("test_more.py", CORPUS.replace("letters", "others").replace("test_others", "test_more"))
    project.run("--fairness-rebaseline")
    result = project.run("--fairness")
    assert says(result, "is checked by test_more.py::test_more, too")


def test_a_check_of_something_else_is_refused(project: Project) -> None:
    project.write("test_own.py", "def test_a(fairness_check):\n    fairness_check('a', 0.5)\n")
    result = project.run("--fairness")
    result.assert_outcomes(failed=1)
    assert says(result, "fairness_check takes a measurement of a corpus, such as corpus.jsd(...), not 0.5")


def test_without_the_flag_tests_that_ask_are_skipped_with_a_reason(project: Project) -> None:
    project.write(
        "test_own.py",
        "def test_a(llm_client): pass\ndef test_b(corpus_generator): pass\n"
        "def test_c(fairness_check): pass\ndef test_d(fairness_target): pass\n",
    )
    result = project.run("-rs")
    result.assert_outcomes(skipped=4)
    assert says(result, "llm_client sends requests to a model: run with --fairness")


def test_tests_ask_whom_their_conftest_names(project: Project) -> None:
    project.write(
        "a/conftest.py",
        "import pytest\n@pytest.fixture(scope='session')\ndef fairness_target():\n    return str.upper\n",
    )
    project.write("a/test_a.py", "def test_a(llm_client):\n    assert llm_client.complete('hi')[0].text == 'HI'\n")
    project.write("b/test_b.py", "def test_b(llm_client):\n    assert 'sturdy' in llm_client.complete('hi')[0].text\n")
    project.run("--fairness").assert_outcomes(passed=2)


def test_junit_tells_the_checks_of_a_test_apart(project: Project) -> None:
    project.write("test_own.py", CORPUS.replace("tolerance=0.3", "limit=0.3"))
    project.run("--fairness", "--junitxml=junit.xml").assert_outcomes(passed=1)
    text = (project.path / "junit.xml").read_text()
    for name in IDS:
        assert f'<property name="letters {name} verdict" value="pass"' in text


def test_what_tests_and_probes_ask_is_counted_together(project: Project) -> None:
    project.write("a/test_first.py", "def test_a(llm_client):\n    llm_client.complete('hi')\n")
    project.probe()
    report = project.report("a", "probes")
    assert report["requests"]["planned"] == report["requests"]["sent"] == 31


def test_the_advice_counts_the_trials_that_were_asked(project: Project) -> None:
    project.write("test_own.py", CORPUS.replace(', gate="point"), tolerance=0.3', "), limit=0.02, tolerance=0.02"))
    with ChatServer() as server:
        result = project.run(
            "--fairness", "--fairness-trials", "9", "--fairness-base-url", server.url, target="openai:tiny"
        )
    assert says(result, "trials to decide; this run had 9")
