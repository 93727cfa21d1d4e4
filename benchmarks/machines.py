"""Several machines with one PostgreSQL store, some of which are killed: are requests sent once, and verdicts equal?

    python benchmarks/machines.py

Each machine is a process group of `pytest -n 2` in a folder of its own, with a host name of its own, so that the others
know its processes by their claims only. A killed machine is started again. Needs the extra `test`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from pytest_fairness.asking.store import Store, copy_responses
from tests.support.postgres import running_server
from tests.support.servers import ChatServer

PROBE = """
kind: generation
prompt: What would you recommend to {name}?
axes:
  name: {unmarked: Alex, marked: [Kim, Lou, Sam]}
trials: TRIALS
audits:
  jsd: {limit: 0.5}
  refusals: {limit: 0.5}
"""


def main() -> None:
    """Start the machines, kill some at random, print what was sent, and end with 1 if a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", type=int, default=4)
    parser.add_argument("--requests", type=int, default=2000, help="distinct requests, a multiple of 4")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--in-flight", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    draw = random.Random(given.seed)  # noqa: S311 - no secret
    probe = PROBE.replace("TRIALS", str(given.requests // 4))
    with tempfile.TemporaryDirectory() as name, ChatServer(delay=0.3) as server, running_server() as postgres:
        root = Path(name)
        url = postgres.new_database()
        machines = [
            Machine(root / f"machine{number}", probe, str(url), server.url, given) for number in range(given.machines)
        ]
        started, killed, in_flight = time.monotonic(), 0, 0
        while any(machine.runs for machine in machines):
            time.sleep(draw.uniform(1, 3))
            running = [machine for machine in machines if machine.runs]
            if killed < given.kills and running and 0 < server.count < given.requests - 2 * given.in_flight:
                in_flight += draw.choice(running).kill_and_restart(server)
                killed += 1
        seconds = time.monotonic() - started
        with Store(url) as store, Store(root / "alone" / "copy.sqlite") as copy:
            recorded = [each.key for each in store.all_recorded()]
            copy_responses(store, copy)
        reports = [machine.verdicts() for machine in machines]
        alone = Machine(root / "alone", probe, "copy.sqlite", server.url, given)
        alone.process.wait()
        one_machine = alone.verdicts()
        sent = server.count
    print(f"{given.machines} machines, {given.requests} requests, {killed} kills, {seconds:.0f} s")
    print(
        f"sent {sent}, of which {sent - given.requests} again; recorded {len(recorded)}, distinct {len(set(recorded))}"
    )
    print(f"most in flight {server.most_in_flight} (limit {given.in_flight}); in flight at the kills {in_flight}")
    print(f"verdicts equal on all machines: {all(report == reports[0] for report in reports)}")
    print(f"verdicts equal to those of one machine with the same responses: {reports[0] == one_machine}")
    kept = len(recorded) == len(set(recorded)) == given.requests and server.most_in_flight <= given.in_flight
    sys.exit(0 if kept and sent - given.requests <= in_flight and all(r == reports[0] for r in reports) else 1)


class Machine:
    """A folder with a project, and the run of pytest in it."""

    def __init__(self, folder: Path, probe: str, store: str, server: str, given: argparse.Namespace) -> None:
        self._folder = folder
        (folder / "probes").mkdir(parents=True, exist_ok=True)
        (folder / "probes" / "ideas.yaml").write_text(probe, "utf-8")
        (folder / "conftest.py").write_text(f"import platform\nplatform.node = lambda: {folder.name!r}\n", "utf-8")
        settings = {
            "fairness_store": store,
            "fairness_target": "openai:tiny",
            "fairness_base_url": server,
            "fairness_concurrency": given.in_flight,
        }
        lines = [f"{name} = {value}" for name, value in settings.items()]
        (folder / "pytest.ini").write_text("\n".join(["[pytest]", *lines]), "utf-8")
        self.process = self._start()
        self._verdicts: Any = None

    @property
    def runs(self) -> bool:
        """Return whether the run has not ended."""
        return self.process.poll() is None

    def kill_and_restart(self, server: ChatServer) -> int:
        """Kill all processes of the machine at once; return how many requests were in flight, of all machines."""
        in_flight = server.in_flight
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process = self._start()
        return in_flight

    def verdicts(self) -> Any:
        """The result of each item, once the run has ended."""
        if self._verdicts is None:
            report = json.loads((self._folder / "report.json").read_text("utf-8"))
            names = ("id", "value", "interval", "verdict", "details")
            self._verdicts = [[item[name] for name in names] for item in report["items"]]
        return self._verdicts

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--fairness", "--fairness-report", "report.json"]
        with (self._folder / "output.txt").open("wb") as output:
            return subprocess.Popen(command, cwd=self._folder, stdout=output, stderr=output, start_new_session=True)  # noqa: S603 - our own


if __name__ == "__main__":
    main()
