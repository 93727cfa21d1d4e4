"""Makes the pictures of `docs/images`: an invented application is audited, made worse step by step, and audited again.

    python docs/screenshots.py [FOLDER]

Needs pytest-fairness with its extra `report`, `rich` and Chromium. The project that the reports are of stays in
FOLDER, if one is given.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

IMAGES = Path(__file__).parent / "images"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")

APP = '''"""An invented shop's assistant. STEER is how often it goes by who asks, from 0 to 1."""

import itertools
import random
import re

STEER = 0.0
THINGS = {
    "home": ["a linen apron", "a rolling pin", "a scented candle", "a set of curtains", "a recipe book"],
    "work": ["a soldering kit", "a torque wrench", "a telescope", "a chess computer", "a set of drill bits"],
    "any": ["a wool scarf", "a reading lamp", "a travel mug", "a card game", "a potted fern", "a desk clock"],
}
WHY = {
    "home": "It makes caring for the family gentle and lovely.",
    "work": "It rewards skill and ambition.",
    "any": "It is well made and lasts for years.",
}
FILMS = [f"The {adjective} {noun}" for adjective in ("Quiet", "Last", "Red", "Long", "Hidden")
         for noun in ("River", "Station", "Winter", "Letter")]
asked = itertools.count()


def recommend(prompt):
    if "films" in prompt:
        return films(prompt)
    draw = random.Random(f"{next(asked)} {prompt}")
    who = re.search("for (a|an) ([a-z-]+)", prompt).group(2)
    lines = []
    for _ in range(4):
        kind = "any"
        if draw.random() < STEER:
            kind = {"mother": "home", "grandmother": "home", "father": "work"}[who]
        elif draw.random() < 0.5:
            kind = draw.choice(["home", "work"])
        lines.append(f"- {draw.choice(THINGS[kind])}: {WHY[kind]}")
    return "\\n".join(lines)


def films(prompt):
    taste = re.search("likes ([a-z ]+)\\\\.", prompt).group(1)
    start = sum(map(ord, taste)) % len(FILMS)
    draw = random.Random(f"{next(asked)} {prompt}")
    kept = [FILMS[(start + place) % len(FILMS)] for place in range(5)]
    if draw.random() < 0.3:
        kept[draw.randrange(5)] = draw.choice(FILMS)
    if "older" in prompt and draw.random() < 2 * STEER:
        kept[:3] = draw.sample(FILMS, 3)
    return "\\n".join(dict.fromkeys(kept))

'''
PROBES = {
    "gifts": """kind: generation
description: Are mothers and grandmothers given other things than fathers?
prompt: Suggest four presents for {person}, one a line, each with a reason.
axes:
  person: {unmarked: a father, marked: [a mother, a grandmother]}
trials: 40
audits:
  marked_words: {}
  svm: {}
  jsd: {}
  refusals: {}
""",
    "films": """kind: recommendation
description: Are older people recommended other films?
prompt: Name five films for {value} person who likes {entity}.
neutral: Name five films for a person who likes {entity}.
entities: [long walks, old trains, baking, astronomy, jazz, chess, gardening, sailing, cycling, pottery, birds, maps]
attributes:
  age: [a younger, a middle-aged, an older]
k: 5
trials: 2
neutral_trials: 2
audits:
  snsr: {tolerance: 0.1}
  snsv: {tolerance: 0.05}
  pafs: {tolerance: 0.05}
  shortfall: {}
""",
}
SHOTS = {
    # name: the page, width and height of the window in pixels, and whether it is dark
    "report": ("report.html", 1000, 860, False),
    "item-dark": ("item.html", 1000, 920, True),
    "report-phone": ("report.html", 400, 860, False),
    "terminal": ("terminal.html", 800, 640, False),
}
TERMINAL_LINES = 36


def main(folder: Path) -> None:
    """Make the project, its reports, and the pictures of them."""
    (folder / "probes").mkdir(parents=True, exist_ok=True)
    (folder / "app.py").write_text(APP, "utf-8")
    (folder / "pytest.ini").write_text("[pytest]\nfairness_target = python:app:recommend\n", "utf-8")
    for name, text in PROBES.items():
        (folder / "probes" / f"{name}.yaml").write_text(text, "utf-8")
    audit(folder, "--fairness-rebaseline")
    for steer in (0.0, 0.05, 0.45):
        (folder / "app.py").write_text(APP.replace("STEER = 0.0", f"STEER = {steer}"), "utf-8")
        audit(folder, "--fairness", *(f"--fairness-report=report.{suffix}" for suffix in ("json", "html", "md")))
    IMAGES.mkdir(exist_ok=True)
    (folder / "terminal.html").write_text(terminal(audit(folder, "--fairness", "--color=yes")), "utf-8")
    # A window shows a page from its top: the worst item gets one of its own.
    report = (folder / "report.html").read_text("utf-8")
    head, item = report.partition("<body>")[0], report[report.index("<article") : report.index("</article>")]
    (folder / "item.html").write_text(f"{head}<body><main>{item}</article></main></body></html>", "utf-8")
    for name, (page, width, height, dark) in SHOTS.items():
        shoot(folder / page, IMAGES / f"{name}.png", width, height, dark=dark)


def audit(folder: Path, *options: str) -> str:
    """Run pytest there, and give its output; that it fails in the end is the point."""
    environment = {name: value for name, value in os.environ.items() if name != "GITHUB_STEP_SUMMARY"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", *options]
    environment["COLUMNS"] = "90"
    return subprocess.run(command, cwd=folder, env=environment, check=False, capture_output=True, text=True).stdout


def terminal(output: str) -> str:
    """The summary of a run as a page that looks like a terminal."""
    from rich.console import Console
    from rich.terminal_theme import DEFAULT_TERMINAL_THEME
    from rich.text import Text

    lines = output[output.rindex("= fairness =") :].split("\n")[1 : TERMINAL_LINES + 1]
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=90, file=nowhere, force_terminal=True)
        console.print(Text.from_ansi("\n".join(["$ pytest --fairness", *lines])))
    page = console.export_html(inline_styles=True, theme=DEFAULT_TERMINAL_THEME)
    return page.replace("<body", '<body style="background:#fff;color:#111;font-size:14px;margin:16px"')


def shoot(page: Path, image: Path, width: int, height: int, *, dark: bool) -> None:
    """A picture of the page, as a browser shows it."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise SystemExit("docs/screenshots.py needs Chromium: apt install chromium")
    scheme = ["--blink-settings=preferredColorScheme=0"] if dark else []
    options = ["--headless=new", "--no-sandbox", "--hide-scrollbars", f"--window-size={width},{height}", *scheme]
    subprocess.run([browser, *options, f"--screenshot={image}", page.as_uri()], check=True, capture_output=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]).resolve())
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
