"""The browser, the two ways to reach the engine, and pages that fail on errors and on requests to elsewhere."""

import json
import os
import shutil
import struct
import subprocess
import urllib.request
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
SCREENSHOTS = TARGET / "site" / "screenshots"
# Pictures that the site shows.
PICTURES = TARGET / "site" / "pictures"
NAMED = os.environ.get("TRUECAST_BIN")
COMMANDS = [Path(NAMED)] if NAMED else [TARGET / "release" / "truecast", TARGET / "debug" / "truecast"]
COMMAND = next((path.resolve() for path in COMMANDS if path.exists()), None)


def safetensors(header, claimed: int | None = None, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if claimed is None else claimed) + text + data


def violations(page) -> list:
    """Rules of accessibility that the page breaks, among them contrast."""
    axe = Path(os.environ.get("AXE", ""))
    if not axe.is_file():
        pytest.skip("axe-core is not there: npm is missing")
    page.evaluate(axe.read_text())
    return page.evaluate("""async () => (await axe.run({ preload: false, runOnly: ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa",
      "best-practice"] })).violations.map(({ id, nodes }) => [id, nodes.map((node) => node.html.slice(0, 160))])""")


@pytest.fixture(scope="session")
def browser():
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("Chromium is not installed")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture(scope="session")
def built():
    page = TARGET / "site" / "explorer" / "index.html"
    if not page.exists():
        pytest.skip("the page with WebAssembly is not built: site/explorer/build")
    return page.resolve().as_uri()


@pytest.fixture(scope="session")
def served():
    if COMMAND is None:
        pytest.skip("truecast is not built")
    server = subprocess.Popen([COMMAND, "explore", "--no-open"], stdout=subprocess.PIPE, text=True)
    address = server.stdout.readline().strip()
    # A page that never says good-bye: the command does not end between tests.
    urllib.request.urlopen(address).read()
    yield address
    server.terminate()
    server.wait()


@pytest.fixture(scope="session", params=["served", "built"])
def address(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def show(browser):
    """A function that opens a page; at the end, none may have reported an error or asked for what is not `within`."""
    contexts, faults = [], []

    def show_page(url: str, width: int = 1280, scheme: str = "light", within: str | None = None):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        allowed = (within or url.split("#")[0].rsplit("/", 1)[0], "data:", "blob:")
        page.on("request", lambda request: request.url.startswith(allowed) or faults.append(request.url))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: message.type == "error" and faults.append(message.text))
        page.goto(url)
        return page

    show_page.faults = faults
    yield show_page
    for context in contexts:
        context.close()
    assert faults == []


@pytest.fixture
def visit(show, address):
    """A function that opens the explorer at a hash."""

    def visit_page(place: str = "", **options):
        page = show(address + place, **options)
        page.locator("section:not([hidden]) .picture:not([hidden])").wait_for()
        return page

    return visit_page
