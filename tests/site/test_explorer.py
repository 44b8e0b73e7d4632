"""Each view of the explorer: what it shows, its link, the keyboard, files, errors, accessibility and its looks."""

import json
import re
import shutil
import struct
from math import prod
from pathlib import Path
from random import Random

import pytest
from conftest import PICTURES, ROOT, SCREENSHOTS, TARGET, safetensors, violations
from playwright.sync_api import expect

VIEWS = {
    "cast": "f32 465 as f8e4m3fn is NaN or 448",
    "formats": "f8e4m3fn",
    "differ": "torch@2.15 and ml_dtypes@0.6 differ",
    "checkpoint": "example.safetensors: 20,914,757,184 parameters, 5.26 bits a weight",
    "blocks": "mxfp4: 32 values in 17 bytes, 4.25 bits each",
    "promotion": "numpy and torch differ for 46 pairs of types",
    "rescale": "Multiplier 1288490189, shift 32",
}
MINILM = ROOT / "testdata" / "minilm"


def title(page):
    return page.locator("main section:not([hidden]) h1")


def alert(page):
    return page.locator("main section:not([hidden]) .error").first


def shown(page) -> str:
    return page.locator("main section:not([hidden])").inner_text()


@pytest.mark.parametrize("view", VIEWS)
def test_each_view_opens_from_the_navigation_and_from_its_link(visit, view):
    page = visit()
    expect(title(page)).to_have_text(VIEWS["cast"])
    page.get_by_role("navigation", name="Views").get_by_role("link", name=view).click()
    expect(title(page)).to_have_text(VIEWS[view])
    assert view in page.title().lower()
    linked = visit(f"#{view}")
    expect(title(linked)).to_have_text(VIEWS[view])


def test_the_first_view_is_fast(visit):
    times = []
    for _ in range(3):
        page = visit()
        expect(title(page)).to_have_text(VIEWS["cast"])
        times.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
    assert min(times) < 300, times


def test_the_engine_is_small(built):
    packed = re.search('packed = "(.*)"', (TARGET / "site" / "explorer" / "engine.js").read_text())[1]
    assert len(packed) * 3 / 4 <= 600_000


def test_every_keystroke_updates_the_answer_within_a_frame(visit):
    page = visit()
    times = page.evaluate("""async () => {
      const [field, heading] = [document.querySelector("main input"), document.querySelector("main h1")];
      const times = [];
      for (let turn = 0; turn < 100; turn += 1) {
        const start = performance.now();
        const drawn = new Promise((done) => new MutationObserver(done).observe(heading, { childList: true }));
        field.value = String(400 + turn * 1.37);
        field.dispatchEvent(new Event("input"));
        await drawn;
        document.body.getBoundingClientRect();
        times.push(performance.now() - start);
      }
      return times.sort((a, b) => a - b);
    }""")
    assert times[len(times) // 2] < 16, times


def test_bits_of_the_source_are_switches(visit):
    page = visit("#cast?value=1&from=f16&to=f8e5m2")
    expect(title(page)).to_have_text("f16 1 as f8e5m2 is 1")
    page.get_by_role("button", name="bit 15, sign").click()
    expect(title(page)).to_have_text("f16 0xbc00 as f8e5m2 is −1")
    expect(page.get_by_label("Value", exact=True)).to_have_value("0xbc00")
    page.get_by_role("button", name="bit 15, sign").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="bit 14, exponent")).to_be_focused()
    expect(page.get_by_role("button", name="bit 14, exponent")).to_have_attribute("aria-pressed", "true")


def test_answers_are_grouped_rarest_first_with_clauses(visit):
    page = visit()
    counts = [int(text) for text in page.locator(".share b").all_inner_texts()]
    assert counts == sorted(counts) and len(counts) == 3
    page.locator(".answer summary").nth(1).click()
    expect(page.locator(".answer").nth(1)).to_contain_text("docs/spec/onnx.md")
    page.get_by_label("Value", exact=True).fill("466")
    expect(title(page)).to_contain_text("466")
    expect(page.locator(".answer details").nth(1)).to_have_attribute("open", "")


def test_a_link_shows_the_same_and_back_returns(visit):
    page = visit()
    page.get_by_label("Value", exact=True).fill("0.1")
    page.get_by_label("To", exact=True).select_option("f16")
    expect(title(page)).to_have_text("f32 0.1 as f16 is 0.099975586")
    expect(page).to_have_url(re.compile("to=f16"))
    linked = visit("#" + page.url.split("#")[1])
    expect(title(linked)).to_have_text("f32 0.1 as f16 is 0.099975586")
    assert shown(linked) == shown(page)
    page.get_by_role("link", name="Rescale").click()
    expect(title(page)).to_have_text(VIEWS["rescale"])
    page.go_back()
    expect(title(page)).to_have_text("f32 0.1 as f16 is 0.099975586")
    page.go_back()
    expect(title(page)).to_contain_text("as f8e4m3fn is")
    page.go_forward()
    expect(title(page)).to_have_text("f32 0.1 as f16 is 0.099975586")


def test_the_keyboard_alone_reaches_everything(visit):
    page = visit()
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to the view")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(title(page)).to_have_text(VIEWS["formats"])
    page.locator(".code[tabindex='0']").focus()
    for key in ["ArrowDown", "ArrowRight", "ArrowRight", "Enter"]:
        page.keyboard.press(key)
    expect(page.locator(".readout")).to_contain_text("0x12 is 0.0390625, normal")
    expect(page.locator(".code[tabindex='0']")).to_have_attribute("data-code", "0x12")
    expect(page.locator(".code[data-code='0x12']")).to_be_focused()
    page.goto(page.url.split("#")[0] + "#promotion")
    expect(title(page)).to_have_text(VIEWS["promotion"])
    page.locator(".cell[tabindex='0']").focus()
    page.keyboard.press("End")
    expect(page.locator(".promotion .readout")).to_have_text("f64 with f64: numpy f64; torch agrees")


def test_an_error_stands_beside_the_field_and_the_picture_stays(visit):
    page = visit()
    page.get_by_label("Value", exact=True).fill("12x")
    expect(alert(page)).to_contain_text("not a number")
    expect(page.locator(".picture")).to_have_class("picture stale")
    expect(title(page)).to_have_text(VIEWS["cast"])
    page.get_by_label("Value", exact=True).fill("12")
    expect(alert(page)).to_have_text("")
    expect(title(page)).to_have_text("f32 12 as f8e4m3fn is 12")


def test_a_differing_range_links_to_its_cast(visit):
    page = visit("#differ")
    page.get_by_role("link", name="466", exact=True).first.click()
    expect(title(page)).to_contain_text("0x43e9 as f8e4m3fn is")


def test_names_that_are_left_out_are_said_with_the_reason(visit):
    page = visit("#differ")
    options = page.get_by_label("First").locator("option").all_inner_texts()
    assert "torch@2.15" in options and "ml_dtypes@0.6" in options and "wgsl" not in options
    left_out = page.locator(".missing")
    expect(left_out).to_contain_text("left out: ")
    page.locator(".missing summary").click()
    expect(left_out).to_contain_text("wgsl does not convert bf16 to f8e4m3fn")
    assert page.locator(".missing li").count() + len(options) == page.evaluate(
        "truecast.ask({ask: 'names', from: 'bf16', to: 'f8e4m3fn'}).then(({names}) => names.length)")
    expect(page.locator(".differ .command code")).to_have_text("truecast differ torch ml_dtypes --from bf16 --to f8e4m3fn")
    page.goto(page.url.split("#")[0] + "#differ?a=wgsl")
    expect(alert(page)).to_contain_text("wgsl")
    expect(alert(page)).not_to_contain_text("--spec")


def test_a_cast_to_an_integer_says_what_happens_there(visit):
    page = visit("#cast?value=2.7&to=i8")
    expect(title(page)).to_have_text("f32 2.7 as i8 is 2 or 3")
    expect(page.locator(".cast .reason")).to_contain_text("lies between 2 and 3. Toward zero: 2; to nearest even: 3.")
    expect(page.locator(".answer", has_text="0x02").locator(".share")).to_contain_text("toward zero: truncates.")
    expect(page.locator(".answer", has_text="0x03").locator(".share")).to_contain_text("to nearest")


def test_answers_have_a_reason_and_say_which_version_is_old(visit):
    page = visit("#cast?value=inf&to=f8e4m3fnuz")
    expect(title(page)).to_contain_text("f32 ∞ as f8e4m3fnuz is")
    for share in page.locator(".share").all_inner_texts():
        assert re.search(r"of \d+ names\. [A-Z].*\.$", share), share
    for summary in page.locator(".answer summary").all():
        summary.click()
    expect(page.locator(".answers")).to_contain_text("onnx@23:saturate=1 (older; the newest is 28)")


def test_clauses_are_links_on_the_site(visit, tmp_path, transport):
    if transport == "served":
        pytest.skip("only the built page is part of the site")
    built = Path(TARGET / "site" / "explorer")
    shutil.copytree(built, tmp_path / "explorer")
    index = tmp_path / "explorer" / "index.html"
    index.write_text(index.read_text().replace("<head>", '<head><meta name="site" content="../">'))
    page = visit(base=index.as_uri())
    page.locator(".answer summary").nth(1).click()
    link = page.get_by_role("link", name="§4.6").first
    expect(link).to_have_attribute("href", "../spec/onnx.html#s4-6")


def test_which_of_two_formats_loses_less(visit):
    page = visit("#formats")
    loss = page.locator(".loss")
    expect(loss).to_contain_text("f8e4m3fn loses less. Relative error: f8e4m3fn 3.")
    page.get_by_label("Sigma of weights").fill("1/10000")
    expect(loss).to_contain_text("f8e5m2 loses less")
    page.get_by_label("Sigma of weights").fill("-1")
    expect(page.locator(".formats .error").nth(1)).to_contain_text("must be a number above 0")
    page.get_by_label("Sigma of weights").fill("0.02")
    chart = page.get_by_role("slider")
    expect(chart).to_have_attribute("aria-valuenow", "-6")
    chart.focus()
    page.keyboard.press("ArrowLeft")
    read = "From 0.00781 to 0.0156: f8e4m3fn errs by at most 12.5%; f8e5m2 errs by at most 12.5%"
    expect(page.locator(".binade")).to_have_text(read)
    page.keyboard.press("End")
    expect(page.locator(".binade")).to_contain_text("f8e4m3fn has no value so large")
    box = chart.bounding_box()
    page.mouse.move(box["x"] + 70, box["y"] + 100)
    expect(page.locator(".binade")).to_contain_text("f8e4m3fn has no value so small")


def test_a_block_follows_its_values_and_its_bytes(visit):
    page = visit("#blocks")
    page.get_by_label("Value 0", exact=True).fill("0.5")
    expect(page.locator(".card").first).to_contain_text("exact")
    page.get_by_label("Bytes (hexadecimal)").fill("00 34 " + "07 " * 15 + "07")
    expect(alert(page)).to_contain_text("18 bytes; the block has 17")
    for scheme in ["nvfp4", "fp8", "int4", "q4_0", "q8_0"]:
        page.get_by_label("Scheme").select_option(scheme)
        expect(title(page)).to_contain_text(f"{scheme}: ")
        expect(alert(page)).to_have_text("")
        elements = page.locator(".card").count()
        assert page.locator(".strip [data-element]").count() == elements, scheme


def test_values_of_a_block_survive_other_schemes(visit):
    page = visit("#blocks")
    value = page.get_by_label("Value 0", exact=True)
    last = page.get_by_label("Value 31", exact=True)
    kept = last.input_value()
    page.get_by_label("Scheme").select_option("nvfp4")
    expect(last).to_have_count(0)
    value.fill("0.0x")
    expect(alert(page)).not_to_have_text("")
    page.get_by_label("Scheme").select_option("mxfp4")
    value.press("Control+a")
    value.press_sequentially("0.0123", delay=60)
    expect(value).to_have_value("0.0123")
    expect(last).to_have_value(kept)
    expect(alert(page)).to_have_text("")


def test_rescale_refuses_what_is_no_number(visit):
    page = visit("#rescale")
    page.get_by_label("Last input").fill("many")
    expect(alert(page)).to_have_text("“Last input” is not a whole number.")
    page.get_by_label("Last input").fill("20")
    expect(page.locator(".rescale .reason")).to_contain_text("of 33")


def test_rescale_answers_first_and_takes_fractions(visit):
    page = visit("#rescale?scale=1/3&low=0&high=8")
    expect(title(page)).to_have_text("Multiplier 1431655765, shift 32")  # 2**32 / 3, rounded
    expect(page.locator(".rescale .command")).to_contain_text("multiplier=1431655765, shift=32")
    expect(page.get_by_role("button", name="Copy")).to_be_visible()
    assert page.locator(".rescale svg .band").count() == 9
    page.get_by_text("The same as a table").click()
    rows = page.locator(".rescale tbody tr").all_inner_texts()
    assert [row.split("\t")[0] for row in rows] == [str(n) for n in range(9)]
    page.get_by_label("Scale", exact=True).fill("1/0")
    expect(alert(page)).to_contain_text('"1/0" is not a number')


def gguf() -> bytes:
    name = b"blk.0.attn_q.weight"
    info = struct.pack("<Q", len(name)) + name + struct.pack("<IQQIQ", 2, 64, 2, 8, 0)
    return b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + info


HOSTILE = "<img src=x onerror=alert(1)>.weight"
FILES = {
    "minilm": ("model.safetensors", (MINILM / "model.safetensors").read_bytes(), "68,736 parameters", None),
    "config": ("config.json", (MINILM / "config.json").read_bytes(), "config.json", None),
    "gguf": ("model.gguf", gguf() + bytes(13 + 2 * 68), "128 parameters", None),
    "markup": ("m.safetensors", safetensors({HOSTILE: {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, data=bytes(8)),
               "2 parameters", None),
    "huge": ("huge.safetensors", safetensors(b"{}", 50_000_000_000), None, "50000000000"),
    "cut": ("cut.safetensors", safetensors(b"{}", 4000), None, "cut.safetensors: "),
    "damaged": ("bad.safetensors", safetensors(b"{nothing"), None, "bad.safetensors: "),
    "empty": ("empty.gguf", b"", None, "empty.gguf: "),
    "text": ("notes.safetensors", b"Notes of a meeting, which somebody renamed.", None, "notes.safetensors: this is text"),
    "pointer": ("lfs.gguf", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", None, "Git LFS pointer"),
    "other": ("photo.png", b"\x89PNG", None, "photo.png: "),
}


@pytest.mark.parametrize("name", FILES)
def test_files(visit, name):
    file, content, heading, error = FILES[name]
    page = visit("#checkpoint")
    page.get_by_label("Drop a .safetensors").set_input_files({"name": file, "mimeType": "", "buffer": content})
    if error is None:
        expect(title(page)).to_contain_text(heading)
        expect(alert(page)).to_have_text("")
        if name == "markup":
            expect(page.get_by_role("cell", name=HOSTILE)).to_be_visible()
    else:
        expect(alert(page)).to_contain_text(error)
        expect(title(page)).to_have_text(VIEWS["checkpoint"])


WIDTHS = {"F32": 4, "F8_E4M3": 1, "U8": 1}
METADATA = json.dumps({"format_version": "1.0", "layers": {"l.0": {"format": "nvfp4"}}})
FP8 = ["l.1.weight F8_E4M3 64 64", "l.1.weight_scale F32", "l.1.comfy_quant U8 27"]
NVFP4 = ["l.0.weight U8 64 32", "l.0.weight_scale F8_E4M3 128 4", "l.0.weight_scale_2 F32"]
OLD = ["l.weight F8_E4M3 64 64", "l.scale_weight F32"]
DEQUANTIZE = "truecast dequantize m.safetensors m-bf16.safetensors --report m-bf16.html"
INSPECT = "truecast inspect m.safetensors"
# Tensors, metadata, what the page says, and the next command: docs/spec/checkpoints.md §4.6.
COMFY = {
    "marked": (FP8, {}, ["Scheme: comfy:float8_e4m3fn.", "the data of 1 comfy_quant marker"], INSPECT),
    "mixed": ([*NVFP4, "l.0.comfy_quant U8 18", *FP8], {}, ["comfy:nvfp4", "comfy:float8_e4m3fn", "2 comfy_quant"], INSPECT),
    "in the header": (NVFP4, {"_quantization_metadata": METADATA}, ["Scheme: comfy:nvfp4."], DEQUANTIZE),
    "old marker": (["scaled_fp8 F8_E4M3 0", *OLD], {}, ["Scheme: comfy-scaled-fp8."], DEQUANTIZE),
    "no marker": (OLD, {}, ["Scheme: comfy-scaled-fp8.", "names say comfy-scaled-fp8"], DEQUANTIZE),
    "unclear": (["l.weight U8 64 64", "l.weight_scale F32", "l.comfy_quant U8 27"], {},
                ["not known from the header alone", "fit comfy:float8_e4m3fn and comfy:float8_e5m2"], INSPECT),
    "no scales": (["l.0.weight F8_E4M3 64 64", "l.0.bias F32 64"], {}, ["Weights of type f8_e4m3, without scales."],
                  DEQUANTIZE.replace("dequantize", "convert").replace(" --report", " --to bf16 --report")),
}  # fmt: skip


@pytest.mark.parametrize("name", COMFY)
def test_schemes_of_comfyui_are_known_from_the_header(visit, name):
    lines, metadata, said, command = COMFY[name]
    header, at = {"__metadata__": metadata}, 0
    for line in lines:
        tensor, dtype, *shape = line.split()
        size = WIDTHS[dtype] * prod(map(int, shape))
        header[tensor] = {"dtype": dtype, "shape": list(map(int, shape)), "data_offsets": [at, at := at + size]}
    page = visit("#checkpoint")
    chosen = {"name": "m.safetensors", "mimeType": "", "buffer": safetensors(header, data=bytes(at))}
    page.get_by_label("Drop a .safetensors").set_input_files(chosen)
    expect(page.locator(".checkpoint .command code")).to_have_text(command)
    for text in said:
        expect(page.locator(".checkpoint")).to_contain_text(text)
    expect(page.locator(".warnings li")).to_have_count(int(name not in ("in the header", "old marker", "no scales")))


def test_a_dropped_file_and_its_modules(visit):
    page = visit("#checkpoint?example=")
    data = page.evaluate_handle("""(bytes) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([new Uint8Array(bytes)], "model.safetensors"));
      return transfer;
    }""", list((MINILM / "model.safetensors").read_bytes()[:2000]) + [0] * 277648)
    page.dispatch_event(".files", "drop", {"dataTransfer": data})
    expect(title(page)).to_contain_text("model.safetensors: 68,736 parameters")
    page.get_by_role("link", name="Open embeddings").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".crumbs")).to_contain_text("all › embeddings")
    expect(page.get_by_role("heading", name="Tensors of embeddings")).to_be_visible()
    names = page.locator(".checkpoint .scroller tbody tr td:first-child").all_inner_texts()
    assert names and all(name.startswith("embeddings.") for name in names)
    page.go_back()
    expect(page.locator(".crumbs")).not_to_contain_text("embeddings")


def test_a_missing_engine_is_said_and_what_to_do(visit, tmp_path, transport):
    if transport == "served":
        pytest.skip("the same for both ways; tested with files")
    for file in (ROOT / "site" / "explorer").iterdir():
        if not file.name.startswith("engine"):
            shutil.copy(file, tmp_path)
    page = visit(base=(tmp_path / "index.html").as_uri(), answered=False)
    expect(page.locator("#trouble")).to_contain_text("The engine did not load")
    expect(page.locator("#trouble")).to_contain_text("truecast explore")
    visit.faults[:] = [fault for fault in visit.faults if "ERR_FILE_NOT_FOUND" not in fault]


@pytest.mark.parametrize("view", VIEWS)
def test_looks_and_accessibility_from_400_to_1920(visit, view, transport):
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    PICTURES.mkdir(parents=True, exist_ok=True)
    for width in [400, 700, 1920, 1280]:
        for scheme in ["light", "dark"] if width in (400, 1280) else ["light"]:
            page = visit(f"#{view}", width=width, scheme=scheme)
            expect(title(page)).to_have_text(VIEWS[view])
            page.wait_for_timeout(100)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
            if width == 1280 and transport == "built" and view in ("cast", "formats", "checkpoint"):
                page.screenshot(path=PICTURES / f"{view}-{scheme}.png")
            if width in (400, 1280):
                page.screenshot(path=SCREENSHOTS / f"{view}-{width}-{scheme}-{transport}.png", full_page=True)
            if width == 1280:
                assert violations(page) == [], scheme
            page.close()


def test_the_page_and_the_command_give_the_same_bits(browser, served, built):
    """10,000 casts drawn from all pairs of numeric types; each answer has the results of all names."""
    random = Random(20261127)
    pages = [browser.new_page(), browser.new_page()]
    for page, address in zip(pages, [served, built]):
        page.goto(address)
        page.wait_for_function("window.truecast?.ask")
    formats = pages[0].evaluate("truecast.ask({ask: 'formats'})")["types"]
    types = [(each["name"], each["code_bits"]) for each in formats if each["kind"] not in ("complex", "text")]
    requests = []
    for _ in range(10_000):
        (source, bits), (destination, _) = random.choice(types), random.choice(types)
        value = f"{random.getrandbits(bits):#0{(bits + 3) // 4 + 2}x}"
        requests.append({"ask": "cast", "value": value, "from": source, "to": destination})
    ask = """async (requests) => {
      const answers = [];
      for (const request of requests) {
        const { error, results } = await truecast.ask(request);
        answers.push(error?.code ?? results.map(({ spec, version, attributes, bits }) => [spec, version, attributes, bits]));
      }
      return answers;
    }"""
    of_command, of_page = (page.evaluate(ask, requests) for page in pages)
    assert of_command == of_page
    assert sum(map(len, of_page)) > 50_000
