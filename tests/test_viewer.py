"""What the viewer shows, in a real browser: lists, filters, coloured labels, the verdict beside the conversation, its links."""

import re
import shutil
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from inspect_ai.log import EvalLog, EvalSample, read_eval_log

from curate_inspect import ablations, curate

CHROMIUM = shutil.which("chromium")
README = Path(__file__).parent.parent / "README.md"
pytestmark = pytest.mark.browser

# The filters that the README gives, and what each of them means.
FILTERS = {
    'curate_judge == "fail" and constraint_mention == "pass"': lambda s: labels(s) == ("fail", "pass"),
    'metadata.link == "inferred"': lambda s: s.metadata["link"] == "inferred",
    'metadata.category == "trauma" and curate_judge == "ambiguous"': lambda s: (
        s.metadata["category"] == "trauma" and labels(s)[0] == "ambiguous"
    ),
}
# What the viewer's style sheet calls the colours of the labels.
COLOURS = {"pass": "success", "ambiguous": "warning", "fail": "danger"}

# Whether a text is on the screen in the conversation, which stands left of the verdict and below the head of the page.
VISIBLE = """text => [...document.querySelectorAll("p")].some(p => {
    const box = p.getBoundingClientRect();
    return p.innerText.startsWith(text) && box.right < innerWidth * 0.72 && box.top > 150 && box.bottom < innerHeight;
})"""


def labels(sample: EvalSample) -> tuple[str, str]:
    scores = sample.scores or {}
    return str(scores["curate_judge"].value), str(scores["constraint_mention"].value)


@pytest.fixture
def logs(run: Any) -> list[EvalLog]:
    """A run of the benchmark and one of the ablations, of two models, since each fails in its own way."""
    made = [run(curate(per_category=2), "curate/forgetful"), run(curate(per_category=1), "curate/agreeable")]
    made.append(run(ablations(per_category=1), "curate/forgetful"))
    return [read_eval_log(log.location) for (log,) in made]


@pytest.fixture
def viewer(logs: list[EvalLog], tmp_path: Path) -> Iterator[str]:
    """The address of a viewer of these logs."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = int(s.getsockname()[1])
    folder = str(Path(logs[0].location).parent)
    command = [sys.executable, "-m", "inspect_ai", "view", "start", "--log-dir", folder, "--port", str(port)]
    server = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    for _ in range(100):
        try:
            urlopen(address, timeout=1)
            break
        except OSError:
            time.sleep(0.2)
    yield f"{address}/#/logs"
    server.terminate()
    server.wait(10)


@pytest.fixture
def page(viewer: str) -> Iterator[Any]:
    """A page of a headless browser, started after the runs, since two event loops quarrel; what throws in it fails the test."""
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.set_default_timeout(60_000)
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        yield page
        browser.close()
        assert not errors


def open_list(page: Any, viewer: str, log: EvalLog) -> None:
    page.goto(f"{viewer}/{Path(log.location).name}")
    page.get_by_role("gridcell").get_by_text(str(log.samples[0].id), exact=True).wait_for()


def count(page: Any) -> int:
    """How many samples the list says that it shows: "8 Samples" or "3 / 8 Samples"."""
    return int(re.findall(r"(\d+)(?: / \d+)? Samples?\b", page.inner_text("body"))[-1])


def shown(page: Any) -> Counter[tuple[str, str, str]]:
    """The rows of the list that are on the screen: verdict of judge and of mention, colour of the judge's."""
    found: Counter[tuple[str, str, str]] = Counter()
    for row in page.get_by_role("row").all():
        judge = row.locator('[data-col-id="score__curate_judge__curate_judge"][role=gridcell]')
        if judge.count():
            mention = row.locator('[data-col-id="score__constraint_mention__constraint_mention"][role=gridcell]')
            colour = re.search(r"--bs-(\w+)-bg", judge.get_attribute("style") or "")
            found[judge.inner_text(), mention.inner_text(), colour[1] if colour else ""] += 1
    return found


def test_the_lists_have_telling_ids_and_coloured_labels(page: Any, viewer: str, logs: list[EvalLog], tmp_path: Path) -> None:
    for log in logs:
        open_list(page, viewer, log)
        page.screenshot(path=tmp_path / f"{log.eval.task_display_name}.png")
        assert count(page) == len(log.samples)
        text = page.inner_text("body").lower()  # the viewer's style shows headings in capitals
        assert "judge" in text and "mention" in text and "pass_rates" in text
        rows = shown(page)
        assert rows and all(colour == COLOURS[judge] for judge, _, colour in rows)
    assert "allergy-001.s3.guided" in text


def test_the_filters_of_the_readme_select_what_they_say(page: Any, viewer: str, logs: list[EvalLog]) -> None:
    readme = README.read_text(encoding="utf-8")
    for log in logs[:2]:
        open_list(page, viewer, log)
        for text, wanted in FILTERS.items():
            assert f"`{text}`" in readme
            page.locator(".cm-content").fill(text)
            expected = sum(bool(wanted(sample)) for sample in log.samples)
            page.wait_for_function(
                "n => new RegExp(`(^|\\\\D)${n}( / \\\\d+)? Samples?`).test(document.body.innerText)", arg=expected
            )
            assert count(page) == expected
            rows = shown(page)
            assert sum(rows.values()) <= expected
            if "curate_judge" in text and expected:
                assert {judge for judge, _, _ in rows} == {re.findall(r'curate_judge == "(\w+)"', text)[0]}
        page.locator(".cm-content").fill("")  # it would stay for the next log
    selected = [any(wanted(sample) for log in logs[:2] for sample in log.samples) for wanted in FILTERS.values()]
    assert all(selected[1:]), (
        "the simulated judge and the mention check never disagree in this way, the other filters find something"
    )


def test_the_verdict_leads_to_constraint_and_reply(page: Any, viewer: str, logs: list[EvalLog], tmp_path: Path) -> None:
    """Of a conversation whose first turns are its own, and of two that share them."""
    for wanted in ("allergy-001.s1", "allergy-001.s5", "allergy-001.s3.guided"):
        log, sample = next((log, sample) for log in logs for sample in log.samples if sample.id == wanted)
        open_list(page, viewer, log)
        page.get_by_role("gridcell").get_by_text(wanted, exact=True).click()
        page.get_by_text("Keep your answers short").first.wait_for()
        page.screenshot(path=tmp_path / f"{wanted}.png")
        assert sample.messages[-1].text == (sample.scores or {})["curate_judge"].answer
        for number, text in ((len(sample.messages), sample.messages[-1].text), (1, sample.messages[0].text)):
            page.get_by_text(f"M{number}", exact=True).last.click()
            page.wait_for_function(VISIBLE, arg=text[:40])
            page.screenshot(path=tmp_path / f"{wanted}-{number}.png")
