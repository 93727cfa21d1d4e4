"""The HTML report in a browser: filters, no other script, no request, no console message."""

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from pytest_fairness.records import Json
from pytest_fairness.reports import html
from tests.support.results import DETAILS, report
from tests.unit.reports.test_html import RUN, TREND, example, with_details

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
AXE = Path(__file__).parents[2] / "support" / "axe.cjs"

pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs Chromium (apt install chromium)")


@pytest.fixture
def asked() -> Iterator[tuple[str, list[str]]]:
    """Return the address of a local server, and the list of requested paths."""
    paths: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", paths
        finally:
            server.shutdown()
            thread.join()


def opened(page: str, folder: Path) -> tuple[str, list[str]]:
    """Return the loaded document and the console messages of the browser."""
    path = folder / "page.html"
    path.write_text(page, "utf-8")
    assert BROWSER is not None
    command = [BROWSER, *OPTIONS, f"--user-data-dir={folder / 'profile'}", "--enable-logging=stderr", "--dump-dom"]
    done = subprocess.run([*command, path.as_uri()], capture_output=True, text=True, check=True, timeout=120)
    return done.stdout, [line for line in done.stderr.splitlines() if ":CONSOLE" in line]


def test_a_page_without_policy_runs_scripts_and_sends_requests(tmp_path: Path, asked: tuple[str, list[str]]) -> None:
    """The next test would detect a violation: this page has no policy."""
    address, paths = asked
    page = f"<title>a</title><img src={address}/img><script>document.title = 'owned'; console.log('here')</script>"
    document, console = opened(page, tmp_path)
    assert "<title>owned</title>" in document
    assert len(console) == 1
    assert "/img" in paths


def test_a_hostile_report_runs_no_script_and_sends_no_request(tmp_path: Path, asked: tuple[str, list[str]]) -> None:
    address, paths = asked
    hostile = (
        f"<script>document.title='owned';fetch('{address}/fetch')</script><img src={address}/img onerror=\"x\">"
        f"</style><style>@import '{address}/css'</style></svg></title><iframe src={address}/frame></iframe>"
        f"<link rel=stylesheet href={address}/link><meta http-equiv=refresh content='0;url={address}/refresh'>"
    )
    details: Json = {
        **DETAILS["jsd"],
        "contributions": [{"word": hostile, "bits": 0.1, "share": 0.2, "side": "marked"}],
        "examples": [example(hostile, hostile, before=hostile), example("x", "y")],
        hostile: {hostile: hostile},
    }
    one = with_details("jsd", details, probe=hostile, reason=hostile)
    run = report(replace(one, id=hostile, labels={hostile: hostile}))
    run["target"] = hostile
    document, console = opened(html.report(run, {(hostile, hostile): TREND}), tmp_path)
    assert "<title>owned" not in document
    assert "<iframe" not in document
    assert console == []
    assert paths == []


def test_a_complete_report_shows_its_filters_and_logs_nothing_to_the_console(tmp_path: Path) -> None:
    document, console = opened(html.report(RUN, {("letters", "jsd[race=Black]"): TREND}), tmp_path)
    assert console == []
    assert document.count("<svg") == html.report(RUN, {("letters", "jsd[race=Black]"): TREND}).count("<svg")
    assert '<form class="filters">' in document
    assert "<output>16 of 16 shown</output>" in document


def test_axe_finds_no_violation_in_either_scheme_and_no_page_is_wider_than_its_window(tmp_path: Path) -> None:
    node = shutil.which("node")
    packages = ("axe-core", "puppeteer-core")
    looks = "".join(f"require.resolve('{name}');" for name in packages)
    if node is None or subprocess.run([node, "-e", looks], cwd=AXE.parent, check=False, capture_output=True).returncode:
        pytest.skip(f"needs node, and NODE_PATH with {' and '.join(packages)} (npm install {' '.join(packages)})")
    path = tmp_path / "page.html"
    path.write_text(html.report(RUN, {("letters", "jsd[race=Black]"): TREND}), "utf-8")
    command = [node, str(AXE), str(BROWSER), path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert json.loads(done.stdout) == []
