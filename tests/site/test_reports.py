"""Pages of `--report FILE.html` in a browser: they sort, filter and open, and text of files stays text."""

import struct
import subprocess
from itertools import product
from pathlib import Path

import pytest
from conftest import COMMAND, PICTURES, SCREENSHOTS, safetensors, violations
from playwright.sync_api import Page, expect

ODD = "</script><script>document.title = 'gone'</script><img src=x onerror=\"document.title = 'gone'\">\u202e"
MANY = 2_000


def write(path: Path, tensors: dict[str, list[float]]) -> None:
    header, data = {}, b""
    for name, values in tensors.items():
        begin, data = len(data), data + struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": [len(values)], "data_offsets": [begin, len(data)]}
    path.write_bytes(safetensors(header, data=data))


@pytest.fixture(scope="session")
def pages(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    layers = {f"layers.{i}.weight": [1 + i / MANY, 0.3, 1e-9 if i % 2 else 0.5] for i in range(MANY - 3)}
    odd = {ODD: [1.1], "empty": [], "special": [float("nan"), float("inf"), 1e30, 1e-30, -0.0]}
    write(folder / "a.safetensors", {**layers, **odd})
    for command in (
        ["convert", "a.safetensors", "b.safetensors", "--to", "f8e4m3fn", "--report", "convert.html"],
        ["compare", "a.safetensors", "b.safetensors", "--report", "compare.html"],
        ["verify", "a.safetensors", "b.safetensors", "--to", "bf16", "--report", "verify.html"],
    ):
        subprocess.run([COMMAND, *command, "--quiet"], cwd=folder, check=command[0] == "convert")
    return folder


@pytest.fixture
def report(show, pages):
    """A function that opens a report, which may ask for nothing but itself."""

    def show_report(command: str = "convert", **options) -> Page:
        url = (pages / f"{command}.html").as_uri()
        return show(url, within=url, **options)

    return show_report


def names(page: Page, count: int = 3) -> list[str]:
    return page.locator("tbody tr .name").all_inner_texts()[:count]


def test_the_verdict_and_the_totals_come_first(report):
    page = report()
    assert "f8e4m3fn" in page.inner_text(".verdict")
    assert "2_000 with 5_997 elements" in page.inner_text(".facts")
    expect(page.locator("tbody tr")).to_have_count(MANY)
    assert page.locator(".worst > div").count() == 5 and page.locator(".worst svg").count() == 5


def test_sorts_and_filters_by_keyboard(report):
    page = report()
    page.get_by_role("button", name="tensor", exact=True).press("Enter")
    first = names(page)
    assert page.locator("th").first.get_attribute("aria-sort") == "ascending" and "empty" in first
    page.keyboard.press("Enter")
    assert page.locator("th").first.get_attribute("aria-sort") == "descending" and names(page)[0] == "special"
    page.get_by_role("button", name="elements").press("Enter")
    assert names(page, 1) == ["special"]
    page.get_by_label("Filter by name").fill("layers 19 weight")
    found = [i for i in range(MANY - 3) if "19" in str(i)]
    assert page.get_by_role("status").inner_text() == f"{len(found)} of 2_000 tensors"
    page.get_by_label("with lost values").check()
    page.get_by_label("Types").select_option("f32 → f8e4m3fn")
    assert page.locator("tbody tr").count() == len([i for i in found if i % 2])


def test_a_tensor_opens_with_its_histogram(report):
    page = report()
    page.get_by_label("Filter by name").fill("special")
    button = page.locator("tbody button")
    button.focus()
    page.keyboard.press("Enter")
    assert button.get_attribute("aria-expanded") == "true"
    figure = page.locator("tr.detail figure")
    assert "1 flushed to zero" in figure.inner_text() and "1 saturated" not in page.inner_text(".worst")
    marks = figure.locator("svg text.mark").all_text_contents()
    assert {"→ 0", "→ max"} <= set(marks)
    titles = figure.locator("svg title").all_text_contents()
    assert {"0: before 1, after 2", "NaN: before 1, after 1", "Inf: before 1, after 0", "2⁹⁹: before 1, after 0"} <= set(titles)
    page.keyboard.press("Enter")
    assert page.locator("tr.detail").count() == 0


def test_text_of_files_stays_text(report):
    page = report()
    page.get_by_label("Filter by name").fill("</script>")
    assert names(page) == [ODD.replace("\u202e", "\\u{202e}")]
    assert page.title().endswith(": convert") and page.locator("img").count() == 0


@pytest.mark.parametrize(("width", "scheme"), product((400, 1280, 1920), ("light", "dark")))
@pytest.mark.parametrize("command", ["convert", "compare", "verify"])
def test_every_width_and_scheme(report, command, width, scheme):
    page = report(command, width=width, scheme=scheme)
    assert page.locator("h1").inner_text().endswith(f": {command}") and page.inner_text(".verdict")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.screenshot(path=SCREENSHOTS / f"report-{command}-{width}-{scheme}.png")
    if command == "convert" and width == 1280:
        page.screenshot(path=PICTURES / f"report-{scheme}.png")
    assert violations(page) == []
