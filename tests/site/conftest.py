"""The browser, the two ways to reach the engine, and pages that fail on errors and on requests to elsewhere."""

import os
import shutil
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


def first_existing(variable: str, *places: Path) -> Path | None:
    named = os.environ.get(variable)
    found = [Path(named)] if named else list(places)
    return next((place.resolve() for place in found if place.exists()), None)


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
    page = first_existing("EXPLORER_PAGE", TARGET / "site" / "explorer" / "index.html")
    if page is None:
        pytest.skip("the page with WebAssembly is not built: site/explorer/build")
    return page.as_uri()


@pytest.fixture(scope="session")
def served():
    command = first_existing("TRUECAST_BIN", TARGET / "release" / "truecast", TARGET / "debug" / "truecast")
    if command is None:
        pytest.skip("truecast is not built")
    server = subprocess.Popen([command, "explore", "--no-open"], stdout=subprocess.PIPE, text=True)
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
def transport(request) -> str:
    return request.node.callspec.params["address"]


@pytest.fixture
def visit(browser, address):
    """A function that opens the page at a hash; at the end, no page may have reported an error or left its folder."""
    contexts, faults = [], []
    home = address.rsplit("/", 1)[0]

    def open_page(place: str = "", width: int = 1280, scheme: str = "light", base: str = address):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        allowed = (home, base.rsplit("/", 1)[0], "data:", "blob:")
        page.on("request", lambda request: request.url.startswith(allowed) or faults.append(request.url))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: message.type == "error" and faults.append(message.text))
        page.goto(base + place)
        return page

    open_page.faults = faults
    yield open_page
    for context in contexts:
        context.close()
    assert faults == []
