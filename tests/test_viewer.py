"""What the viewer shows, in a real browser: the list, a sample with its verdict, a filter."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from curate_inspect import curate

CHROMIUM = "/usr/bin/chromium"
pytestmark = pytest.mark.browser


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@pytest.fixture
def viewer(run, tmp_path: Path) -> Iterator[str]:
    """The address of a viewer that shows one run."""
    (log,) = run(curate(per_category=2), "curate/forgetful")
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "inspect_ai",
        "view",
        "start",
        "--log-dir",
        str(Path(log.location).parent),
        "--port",
        str(port),
    ]
    server = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    for _ in range(100):
        try:
            urlopen(address, timeout=1)
            break
        except OSError:
            time.sleep(0.2)
    yield f"{address}/#/logs/{Path(log.location).name}"
    server.terminate()
    server.wait(10)


def test_list_and_sample(viewer: str, tmp_path: Path) -> None:
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(viewer)
        page.get_by_text("allergy-001.s1").first.wait_for(timeout=60_000)
        page.screenshot(path=tmp_path / "list.png")
        text = page.inner_text("body").lower()  # the viewer's style shows headings in capitals
        assert "judge" in text and "mention" in text and "pass_rates" in text
        page.get_by_text("allergy-001.s1").first.click()
        page.get_by_text("Keep your answers short").first.wait_for(timeout=60_000)
        page.screenshot(path=tmp_path / "sample.png")
        assert not errors
        browser.close()
