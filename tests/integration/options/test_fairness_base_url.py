"""`--fairness-base-url`, its ini and its environment variable."""

from __future__ import annotations

import pytest

from tests.support.projects import PROBE, Project, ini, says
from tests.support.servers import ChatServer, Reply


def test_the_option_goes_before_the_environment_and_the_environment_before_the_ini(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.probe()
    with ChatServer() as first, ChatServer() as second, ChatServer() as third:
        project.write("pytest.ini", ini(fairness_base_url=third.url))
        project.run("--fairness", target="openai:tiny").assert_outcomes(passed=2)
        assert third.count == 30
        monkeypatch.setenv("OPENAI_BASE_URL", second.url)
        project.run("--fairness", target="openai:tiny").assert_outcomes(passed=2)
        assert second.count == 30
        project.run("--fairness", "--fairness-base-url", first.url, target="openai:tiny").assert_outcomes(passed=2)
        assert first.count == 30


def test_without_it_a_key_is_needed(project: Project) -> None:
    project.probe()
    result = project.run("--fairness", target="openai:tiny")
    result.assert_outcomes(errors=2)
    assert says(result, "OPENAI_API_KEY")


def test_an_endpoint_that_is_not_there_is_an_error_without_a_traceback(project: Project) -> None:
    project.probe()
    project.write("pytest.ini", ini(fairness_give_up="0.5"))
    result = project.run("--fairness", "--fairness-base-url", "http://127.0.0.1:9/v1", target="openai:tiny")
    result.assert_outcomes(errors=2)
    assert says(result, "openai:tiny")
    assert "Traceback" not in result.stdout.str()


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "a worker"])
def test_user_password_and_query_of_it_are_nowhere(project: Project, workers: tuple[str, ...]) -> None:
    project.probe(text=PROBE.replace("refusals: {limit: 0.5, gate: point}", "marked_words: {}"))
    reports = [word for suffix in ("json", "html", "md") for word in ("--fairness-report", f"report.{suffix}")]
    with ChatServer(lambda *_: "A lamp for me:s3cret-pw, bWU6czNjcmV0LXB3") as server:
        url = f"http://me:s3cret-pw@127.0.0.1:{server.port}/v1"
        arguments = ("--fairness-base-url", url, "--junitxml", "junit.xml", *reports, *workers)
        result = project.run("--fairness", "-vv", "--showlocals", "--log-level=DEBUG", *arguments, target="openai:tiny")
        output = result.stdout.str() + result.stderr.str()
        command = f"--fairness-base-url http://127.0.0.1:{server.port}/v1"
        assert command in " ".join(output.replace("\\\n", " ").split()), "the command can be pasted"
        server.answer = lambda *_: Reply("no, me:s3cret-pw", status=401)
        refused = project.run(
            "--fairness", "--fairness-fresh", "-vv", "--full-trace", "-l", *arguments, target="openai:tiny"
        )
        output += refused.stdout.str() + refused.stderr.str()
    # pytest has the command line of its own test bench in its output: what it was started with.
    lines = [line for line in output.splitlines() if "s3cret" in line or "bWU6czNj" in line]
    assert [line for line in lines if "running:" not in line] == []
    files = [path for path in project.path.rglob("*") if path.is_file() and path.name not in ("stdout", "stderr")]
    assert [path for path in files if b"s3cret" in path.read_bytes() or b"bWU6czNj" in path.read_bytes()] == []


def test_of_a_query_on_the_command_line_no_value_is_shown(project: Project) -> None:
    project.probe(text=PROBE.replace("refusals: {limit: 0.5, gate: point}", "marked_words: {}"))
    with ChatServer() as server:
        url = f"{server.url}?key=s3cret"
        result = project.run("--fairness", "--fairness-target", f"a={url}", "-o", f"fairness_embeddings_base_url={url}")
        several = f"-ofairness_target=a = http://me:s3cret@h/v1\n b = {url}"
        result_of_ini = project.run("--fairness", several, target=None)
    for output in (result.stdout.str(), result_of_ini.stdout.str()):
        assert "s3cret" not in output
