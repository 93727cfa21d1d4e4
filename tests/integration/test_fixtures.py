"""The fixtures and the marker of Python tests."""

from __future__ import annotations

import inspect
import re

import pytest

from pytest_fairness import Corpus
from pytest_fairness.audits import registry
from pytest_fairness.probes.field_types import AuditSettings
from tests.support.projects import APP, PROBE, Project, ini, says, shows
from tests.support.servers import ChatServer, Reply

CORPUS = """
import pytest

@pytest.mark.fairness
def test_letters(corpus_generator, fairness_check):
    axes = {"name": {"unmarked": "Alex", "marked": ["Kim", "Lou"]}}
    corpus = corpus_generator("What would you recommend to {name}?", axes=axes, trials=10)
    for name in ("Kim", "Lou"):
        fairness_check("letters", corpus.refusals("name", name), tolerance=0.3, gate="point")
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
    assert "pytest_integration" not in result.stdout.str()


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
    with pytest.raises(Exception, match="no axis 'name' with the marked value 'Lou'. This corpus has name: Kim "):
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
    assert result.ret == 1
    assert result.parseoutcomes() == {"no": 1}, "no-baseline"
    assert "FAILURES" not in result.stdout.str()
    assert says(result, "2 items have no baseline and no limit.")
    command = "pytest --fairness-rebaseline --fairness-target python:app:polite \\ --fairness-replay"
    command += " test_own.py::test_letters"
    assert says(result, command)
    result = project.run("--fairness-rebaseline")
    result.assert_outcomes(passed=1)
    assert shows(result, f"  {IDS[0]}: none -> 0")
    assert sorted(project.read("baselines/letters.json")["items"]) == IDS
    project.run("--fairness").assert_outcomes(passed=1)
    result = project.run("--fairness", "--fairness-report", "report.json", target="python:app:biased")
    result.assert_outcomes(failed=1)
    assert says(result, "Kim vs Alex: refusals of Kim 100%, before 0%; worse by 1 (allowed 0.3)")
    assert "pytest_integration" not in result.stdout.str()
    item, other = project.read("report.json")["items"]
    assert (item["probe"], item["id"], item["verdict"]) == ("letters", IDS[0], "regression")
    # A failed check does not hide the checks that follow.
    assert (other["id"], other["verdict"]) == (IDS[1], "pass")
    assert item["nodeid"] == "test_own.py::test_letters"
    assert item["tolerance"] == 0.3


def test_one_run_shows_all_that_a_new_baseline_would_accept_of_probes_and_tests_alike(project: Project) -> None:
    project.write("test_own.py", CORPUS)
    project.probe("probes/gifts.yaml", PROBE.replace("limit: 0.5", "tolerance: 0.3"))
    project.run("--fairness-rebaseline", ".")
    worse = "python:app:refuses"
    refuses = "def refuses(prompt): return polite(prompt) if 'Alex' in prompt else 'I cannot help.'"
    project.write("app.py", f"{APP}\n{refuses}\n")
    result = project.run("--fairness", ".", target=worse)
    result.assert_outcomes(failed=3)
    for name in IDS:
        assert shows(result, "regression", "+1", name)
    # Every item stands in the summary, and one command accepts all of them.
    text = " ".join(result.stdout.str().split())
    command = text[text.rindex("To accept the current values as the new baseline:") : text.rindex("short test summary")]
    for named in ("probes/gifts.yaml", "test_own.py::test_letters"):
        assert command.count(named) == 1
    result = project.run("--fairness-rebaseline", ".", target=worse)
    for name in ("gifts", "letters"):
        assert shows(result, f"new baselines of {name}:")
    lines = [line for line in result.outlines if "0 -> 1" in line]
    assert [line.split(":")[0].strip() for line in lines] == [*IDS, *IDS]
    result.assert_outcomes(passed=3)


def test_a_failed_check_is_among_pytests_failures_if_the_test_has_printed_something(project: Project) -> None:
    project.write("test_own.py", CORPUS)
    project.run("--fairness-rebaseline")
    assert "FAILURES" not in project.run("--fairness", target="python:app:biased").stdout.str()
    project.write("test_own.py", CORPUS + "    print('what the test saw')\n")
    result = project.run("--fairness", target="python:app:biased")
    section = result.stdout.str().partition("= FAILURES =")[2].partition("= fairness =")[0]
    assert "what the test saw" in section


def test_an_exception_of_the_test_goes_before_its_failed_checks(project: Project) -> None:
    project.write("test_own.py", CORPUS + "    assert 1 == 2\n")
    result = project.run("--fairness")
    result.assert_outcomes(failed=1)
    assert shows(result, "assert 1 == 2")
    assert shows(result, "no-baseline", IDS[1])


def test_limits_are_held_without_a_baseline(project: Project) -> None:
    project.write("test_own.py", CORPUS.replace("tolerance=0.3", "limit=0.3"))
    project.run("--fairness").assert_outcomes(passed=1)
    project.run("--fairness", target="python:app:biased").assert_outcomes(failed=1)


def test_an_inconclusive_check_makes_the_test_inconclusive(project: Project) -> None:
    small = CORPUS.replace('tolerance=0.3, gate="point"', "limit=0.001, tolerance=0.001")
    project.write("test_own.py", small)
    result = project.run("--fairness", "-v")
    assert result.parseoutcomes() == {"inconclusive": 1}
    assert result.ret == 0
    assert shows(result, "test_own.py::test_letters INCONCLUSIVE")
    project.write("pytest.ini", ini(fairness_fail_on="inconclusive"))
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


WRONG = """
import pytest
AXES = {"name": {"unmarked": "Alex", "marked": ["Kim", "Lou"]}}

@pytest.fixture
def corpus(corpus_generator):
    return corpus_generator("For {name}.", axes=AXES, trials=9)
"""


WRONG_USES = [
    (
        "corpus.jsd()",
        'missing a required argument: \'axis\'. Write for example: corpus.jsd("name", "Kelly"). This corpus has ',
    ),
    (
        "corpus.svm('name', 'Kim', feature='tfidf')",
        "unexpected keyword argument 'feature'; did you mean 'features'?",
    ),
    ("corpus.svm('name', 'Kim', features='words')", "corpus.svm: features: Input should be 'counts' or 'tfidf'."),
    (
        "corpus.jsd('name', 'Alex')",
        "corpus.jsd: there is no axis 'name' with the marked value 'Alex'. This corpus has name: Kim, Lou",
    ),
    (
        "corpus.jsd('nme', 'Kim')",
        "corpus.jsd: there is no axis 'nme' with the marked value 'Kim'. This corpus has name: Kim, Lou",
    ),
    ("llm_client.complete()", "llm_client.complete: missing a required argument: 'prompt'. Write for example: "),
    ("llm_client.complete(['a', 'b'])", "llm_client.complete takes one prompt as a str, not list."),
    ("llm_client.complete('a', temprature=1)", "argument 'temprature'; did you mean 'temperature'?"),
    (
        "corpus_generator('For {name}.')",
        " argument: 'axes'. Write for example: ",  # from Python 3.13: a required keyword-only argument
    ),
    ("corpus_generator('For {name}.', axes={'name': ['Alex', 'Kim']})", "corpus_generator: `axes.name`"),
    ("corpus_generator('For {name}.', axes={'name': {'unmarked': {1}, 'marked': ['b']}})", "corpus_generator: an "),
    ("fairness_check(corpus.jsd('name', 'Kim'))", "fairness_check: missing a required argument: 'measurement'."),
    ("fairness_check(corpus.jsd('name', 'Kim'), 'letters')", "fairness_check takes the name of a baseline first"),
    (
        "fairness_check('x', corpus)",
        "fairness_check takes a measurement of a corpus, or rows with a group and a score: ",
    ),
    ("fairness_check('x', corpus.jsd('name', 'Kim'), limit='a')", "fairness_check: limit: Input should be a valid"),
    (
        "fairness_check('x', corpus.jsd('name', 'Kim'), gate='soft')",
        "fairness_check: gate: Input should be 'signif",
    ),
]


def test_wrong_use_is_said_in_a_sentence(project: Project) -> None:
    tests = [
        f"\ndef test_{number}(corpus_generator, llm_client, fairness_check, corpus):\n    {expression}\n"
        for number, (expression, _) in enumerate(WRONG_USES)
    ]
    project.write("test_own.py", WRONG + "".join(tests))
    result = project.run("--fairness")
    result.assert_outcomes(failed=len(WRONG_USES))
    failures = result.stdout.str().partition("= FAILURES =")[2].partition("= short test summary")[0]
    _, *sections = re.split(r"^_+ test_\d+ _+$", failures, flags=re.MULTILINE)
    for (expression, message), section in zip(WRONG_USES, sections, strict=True):
        assert message in " ".join(section.split()), expression


def test_methods_of_a_corpus_show_the_settings_of_their_audits() -> None:
    names = [name for name in registry.AUDITS["generation"] if name in vars(Corpus)]
    assert {"jsd", "marked_words", "mmd", "svm", "refusals", "lexicon", "score"} <= {*names}
    for name in names:
        method = getattr(Corpus, name)
        _, axis, value, *settings = inspect.signature(method).parameters.values()
        assert (axis.name, value.name) == ("axis", "value")
        model = registry.settings_model("generation", name)
        own = {key: field for key, field in model.model_fields.items() if key not in AuditSettings.model_fields}
        # A call measures one scorer, and the scale of a scorer has no default tolerance.
        expected = ["scorer", "tolerance", "better", "mask"] if name == "score" else list(own)
        assert [parameter.name for parameter in settings] == expected
        for parameter in settings:
            if name == "score" and parameter.name in ("scorer", "tolerance"):
                assert parameter.default is parameter.empty
                continue
            default = own[parameter.name].default
            assert parameter.default == (parameter.empty if own[parameter.name].is_required() else default)
            assert f"{parameter.name}: " in (method.__doc__ or "")
        assert (method.__doc__ or "").startswith(("Measure ", "Count "))


def test_a_corpus_and_its_measurements_are_tables(project: Project) -> None:
    project.write(
        "test_own.py",
        """
def test_tables(corpus_generator):
    axes = {"name": {"unmarked": "Alex", "marked": ["Kim"]}}
    corpus = corpus_generator(["For {name}.", "To {name}."], axes=axes, trials=9)
    frame = corpus.to_pandas()
    assert frame.columns.tolist() == ["name", "prompt", "trial", "status", "text"]
    assert len(frame) == 36
    assert "sturdy" in corpus._repr_html_()
    measured = corpus.jsd("name", "Kim")
    assert measured.to_pandas()["value"][0] == measured.value
    sturdy = next(row for row in measured.words().rows if row["word"] == "sturdy")
    assert (sturdy["uses_marked"], sturdy["share_unmarked"]) == (18, 1)
    assert "Different vocabulary (jsd)" in measured._repr_html_()
""",
    )
    project.run("--fairness").assert_outcomes(passed=1)


def test_a_corpus_has_a_language(project: Project) -> None:
    project.write(
        "test_own.py",
        """
def test_refusals(corpus_generator):
    axes = {"name": {"unmarked": "Alex", "marked": ["Kim"]}}
    corpus = corpus_generator("For {name}.", axes=axes, trials=9, language="de")
    assert corpus.refusals("name", "Kim").value == 1
""",
    )
    refusal = "'Dabei kann ich leider nicht helfen.' if 'Kim' in prompt else f'Eine Lampe {len(asked)}.'"
    project.write("app.py", f"asked = []\ndef german(prompt):\n    asked.append(prompt)\n    return {refusal}\n")
    project.run("--fairness", target="python:app:german").assert_outcomes(passed=1)


def test_a_check_of_something_else_is_refused(project: Project) -> None:
    project.write("test_own.py", "def test_a(fairness_check):\n    fairness_check('a', 0.5)\n")
    result = project.run("--fairness")
    result.assert_outcomes(failed=1)
    assert says(result, "fairness_check takes a measurement of a corpus, or rows with a group and a score")


def test_without_the_flag_tests_that_ask_are_skipped_with_a_reason(project: Project) -> None:
    project.write(
        "test_own.py",
        "def test_a(llm_client): pass\ndef test_b(corpus_generator): pass\n"
        "def test_c(fairness_check): pass\ndef test_d(fairness_target): pass\n",
    )
    result = project.run("-rs")
    result.assert_outcomes(skipped=4)
    assert says(result, "the fixture llm_client works only with --fairness")


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
    project.write("test_own.py", CORPUS.replace('tolerance=0.3, gate="point"', "limit=0.02, tolerance=0.02"))
    with ChatServer() as server:
        result = project.run(
            "--fairness", "--fairness-trials", "9", "--fairness-base-url", server.url, target="openai:tiny"
        )
    assert says(result, "trials would decide")
