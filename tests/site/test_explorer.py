"""Each view of the explorer: what it shows, its link, the keyboard, files, errors, accessibility and its looks."""

import json
import re
import shutil
import struct
from itertools import product
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
    "checkpoint": "example.safetensors: 20_914_757_184 parameters, 5.26 bits a weight",
    "blocks": "mxfp4: 32 values in 17 bytes, 4.25 bits each",
    "promotion": "numpy and torch differ for 23 pairs of types",
    "rescale": "TOSA RESCALE: multiplier 1288490189, shift 32",
}
MINILM = ROOT / "testdata" / "minilm"


SECTION = "main section:not([hidden])"


def title(page):
    return page.locator(f"{SECTION} h1")


def alert(page):
    return page.locator(f"{SECTION} .error").first


@pytest.mark.parametrize("view", VIEWS)
def test_each_view_opens_from_the_navigation_and_from_its_link(visit, view):
    page = visit()
    expect(title(page)).to_have_text(VIEWS["cast"])
    page.get_by_role("navigation", name="Views").get_by_role("link", name=view).click()
    expect(title(page)).to_have_text(VIEWS[view])
    assert view in page.title().lower()
    expect(title(visit(f"#{view}"))).to_have_text(VIEWS[view])


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


# What a view says in a place.
SAID = [
    ("#cast?value=2.7&to=i8", "h1", "f32 2.7 as i8 is 2 or 3"),
    ("#cast?value=2.7&to=i8", ".reason", "lies between 2 and 3. Toward zero: 2; to nearest even: 3."),
    ("#cast?value=2.7&to=i8", ".answer:has-text('0x02') .share", "toward zero: truncates."),
    ("#cast?value=2.7&to=i8", ".answer:has-text('0x03') .share", "to nearest"),
    ("#cast?value=0.5&to=nf4", "svg", "0.50166338…threshold"),
    ("#cast?value=1e9&to=f16", "svg", "1000000000 (far beyond)"),
    ("#cast?value=-1000&to=u8", "svg", "−1000 (far beyond)"),
    ("#cast?value=inf&to=f8e4m3fnuz", "h1", "f32 ∞ as f8e4m3fnuz is"),
    ("#cast?value=inf&to=f8e4m3fnuz", ".answers", "onnx@23:saturate=1 (newest: 28)"),
    ("#differ", ".missing", "left out: "),
    ("#differ", ".missing li", "wgsl does not convert bf16 to f8e4m3fn"),
    ("#differ", ".command code", "truecast differ torch ml_dtypes --from bf16 --to f8e4m3fn"),
    ("#formats", ".loss", "f8e4m3fn loses less. Relative error: f8e4m3fn 3."),
    ("#formats?sigma=1/10000", ".loss", "f8e5m2 loses less"),
    ("#rescale?high=20", ".reason", "of 33"),
    ("#rescale?scale=1/3", "h1", "multiplier 1431655765, shift 32"),  # 2**32 / 3, rounded
    ("#cast?value=0.1&from=f64&to=f32", ".reason", "0.100000000… lies between 0.0999999940… and 0.100000001…, nearer"),
    ("#cast?value=0.1&from=f64&to=f32", ".share", "Its value is 0.100000001490116119384765625."),
    ("#cast?value=0.1&from=f64&to=f32", ".meaning", "× 1.600000000000000… ="),
    ("#cast?value=9007199254740993&from=i64&to=f32", "h1", "is 9007199254740992"),
    ("#cast?value=1e-45&to=f32", "h1", "is 1.4012984…e-45"),
    ("#cast?value=-39&to=f8e8m0", ".reason", "−39 is negative, and f8e8m0 has no sign: "),
    ("#cast?value=300.7&to=nf4", ".reason", "300.70001220703125 is beyond the last value of nf4"),
    ("#cast?value=-412&to=f6e2m3", ".reason", "So it overflows. 2 names leave the result open."),
    ("#cast?value=-nan&to=f8e4m3fn", ".meaning", "0xffc00000 = −NaN"),
    ("#cast?value=nan&from=f8e5m2&to=f16", ".reason", "payload 0x0 of 1 bit; "),
    ("#cast", ".names", "tosa@1.0 (newest: 1.1)"),
    ("#formats?type=f8e5m2fnuz&other=f8e5m2", ".loss", "without a scale: relative error: f8e5m2fnuz 5."),
    ("#formats?type=f8e8m0", ".loss", "f8e8m0 has no sign."),
    ("#formats?type=f8e5m2", ".facts", "0x7e and 5 more"),
    ("#formats?type=u1", ".facts tr", "stored in1 bit"),
    ("#formats", ".code[data-code='0xb9']", "−1.125"),
    ("#rescale?scale32=0", ".reason", "a multiplier of 16 bits. TOSA's roundings"),
    ("#rescale?by=pair&multiplier=5&shift=1", ".reason", "No result (–) for 25 inputs of 25: the shift is not in"),
    ("#rescale?from=u8&low=-5&high=5", ".reason", "No result (–) for 5 inputs of 11: −5 is not a value of u8."),
    ("#promotion?system=openvino", ".reason", "openvino 2026.4.1 (mode “safe”); torch 2.15.0. "),
    ("#promotion?system=openvino", "[aria-label^='i32 with f16: openvino refuses: ']", "–"),
    ("#blocks", ".scales", "the rule \"even\""),
    ("#blocks?values=0", ".scales", "The scheme's scale for a block of zeros."),
    ("#rescale?scale=1/3", ".command", "multiplier=1431655765, shift=32Copy"),
]


# Labels of charts that are cut off, or touch each other.
CROWDED = """() => [...document.querySelectorAll("section:not([hidden]) svg")].flatMap((svg) => {
  const outer = svg.getBoundingClientRect();
  const labels = [...svg.querySelectorAll("text")].map((node) => [node.textContent, node.getBoundingClientRect()]);
  const touch = ([, a], [, b]) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4;
  return labels.filter((label, at) => label[1].left < outer.left - 1 || label[1].right > outer.right + 1 ||
    labels.slice(at + 1).some((other) => touch(label, other))).map(([text]) => text);
})"""


@pytest.mark.parametrize(("state", "place", "text"), SAID)
def test_what_a_view_says(visit, state, place, text):
    page = visit(state)
    expect(page.locator(f"{SECTION} {place}", has_text=text).first).to_be_attached()
    assert not {"null", "undefined"} & set(page.locator("svg text").all_text_contents())
    assert page.evaluate(CROWDED) == []
    for share in page.locator(".share").all_inner_texts():
        assert re.search(r"of \d+ names\. [A-Z].*\.$", share), share
    if state.startswith("#cast"):
        page.set_viewport_size({"width": 400, "height": 900})
        page.wait_for_timeout(100)
        assert page.evaluate(CROWDED) == []


# View, field, what is typed, and its error.
ERRORS = [
    ("cast", "Value", "12x", "not a number"),
    ("cast", "Value", "1,000", "write 1000 or 1.000"),
    ("formats", "Sigma of weights", "-1", "must be a number above 0"),
    ("blocks", "Value 0", "3,5", "write 3.5"),
    ("blocks", "Bytes (hexadecimal)", "00", "1 byte; the block has 17"),
    ("blocks", "Bytes (hexadecimal)", "00 34 " + "07 " * 16, "18 bytes; the block has 17"),
    ("blocks", "Value 3", "0.0x", "not a number"),
    ("rescale", "Last input", "many", "“Last input” is not a whole number."),
    ("rescale", "Scale", "1/0", '"1/0" is not a number'),
]


@pytest.mark.parametrize(("view", "label", "typed", "error"), ERRORS)
def test_an_error_stands_beside_the_field_and_the_picture_stays(visit, view, label, typed, error):
    page = visit(f"#{view}")
    field = page.get_by_label(label, exact=True)
    before = field.input_value()
    field.fill(typed)
    expect(page.locator(".error", has_text=error)).to_be_visible()
    expect(page.locator(".stale")).to_have_count(2 if view == "formats" else 1)
    expect(title(page)).to_have_text(VIEWS[view])
    field.fill(before)
    expect(page.locator(".error:not(:empty)")).to_have_count(0)
    expect(page.locator(".stale")).to_have_count(0)


def test_bits_of_the_source_are_switches(visit):
    page = visit("#cast?value=1&from=f16&to=f8e5m2")
    expect(title(page)).to_have_text("f16 1 as f8e5m2 is 1")
    page.get_by_role("button", name="bit 15, sign").click()
    expect(title(page)).to_have_text("f16 0xbc00 as f8e5m2 is −1")
    expect(page.get_by_label("Value", exact=True)).to_have_value("0xbc00")
    page.get_by_role("button", name="bit 15, sign").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="bit 14, exponent", pressed=True)).to_be_focused()
    # The sign's cell stays, and its place is another one.
    page.get_by_label("Value", exact=True).fill("1")
    page.get_by_label("From", exact=True).select_option("f32")
    page.get_by_role("button", name="bit 31, sign").click()
    expect(title(page)).to_have_text("f32 0xbf800000 as f8e5m2 is −1")


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
    page, tenth = visit(), "f32 0.1 as f16 is 0.0999755859375"
    page.get_by_label("Value", exact=True).fill("0.1")
    page.get_by_label("To", exact=True).select_option("f16")
    expect(title(page)).to_have_text(tenth)
    expect(page).to_have_url(re.compile("to=f16"))
    linked = visit("#" + page.url.split("#")[1])
    expect(title(linked)).to_have_text(tenth)
    assert linked.locator(SECTION).inner_text() == page.locator(SECTION).inner_text()
    page.get_by_role("link", name="Rescale").click()
    expect(title(page)).to_have_text(VIEWS["rescale"])
    for go, said in [(page.go_back, tenth), (page.go_back, "as f8e4m3fn is"), (page.go_forward, tenth)]:
        go()
        expect(title(page)).to_contain_text(said)


def test_the_keyboard_alone_reaches_everything(visit):
    page = visit()
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to the view")).to_be_focused()
    for key in ["Tab", "Tab", "Enter"]:
        page.keyboard.press(key)
    expect(title(page)).to_have_text(VIEWS["formats"])
    page.locator(".code[tabindex='0']").focus()
    for key in ["ArrowDown", "ArrowRight", "ArrowRight", "Enter"]:
        page.keyboard.press(key)
    expect(page.locator(".readout")).to_contain_text("0x12 is 0.0390625, normal")
    expect(page.locator(".code[data-code='0x12'][tabindex='0']")).to_be_focused()
    page.goto(page.url.split("#")[0] + "#promotion")
    expect(title(page)).to_have_text(VIEWS["promotion"])
    page.locator(".cell[tabindex='0']").focus()
    page.keyboard.press("End")
    expect(page.locator(".promotion .readout")).to_have_text("f64 with f64: numpy f64; torch agrees")


def test_names_that_are_left_out_are_not_offered(visit):
    page = visit("#differ")
    options = page.get_by_label("First").locator("option").all_inner_texts()
    assert "torch@2.15" in options and "ml_dtypes@0.6" in options and "wgsl" not in options
    assert page.locator(".missing li").count() + len(options) == page.evaluate(
        "truecast.ask({ask: 'names', from: 'bf16', to: 'f8e4m3fn'}).then(({names}) => names.length)")
    page.get_by_role("link", name="466", exact=True).first.click()
    expect(title(page)).to_contain_text("0x43e9 as f8e4m3fn is")
    page.goto(page.url.split("#")[0] + "#differ?a=wgsl")
    expect(alert(page)).to_contain_text("wgsl")
    expect(alert(page)).not_to_contain_text("--spec")


def test_clauses_are_links_on_the_site(show, built, tmp_path):
    shutil.copytree(TARGET / "site" / "explorer", tmp_path / "explorer")
    index = tmp_path / "explorer" / "index.html"
    index.write_text(index.read_text().replace("<head>", '<head><meta name="site" content="../">'))
    page = show(index.as_uri())
    page.locator(".answer summary").nth(1).click()
    expect(page.get_by_role("link", name="§4.6").first).to_have_attribute("href", "../spec/onnx.html#s4-6")


def test_a_binade_is_read_by_keyboard_and_pointer(visit):
    page = visit("#formats")
    chart = page.get_by_role("slider")
    expect(chart).to_have_attribute("aria-valuenow", "-6")
    chart.press("ArrowLeft")
    read = "From 0.00781 to 0.0156: f8e4m3fn errs by at most 11.1%; f8e5m2 errs by at most 11.1%"
    expect(page.locator(".binade")).to_have_text(read)
    for _ in range(15):
        chart.press("ArrowRight")
    expect(page.locator(".binade")).to_contain_text("f8e4m3fn errs by at most 5.88% up to 464, where it overflows;")
    chart.press("End")
    expect(page.locator(".binade")).to_contain_text("f8e4m3fn has no value so large")
    chart.hover(position={"x": 70, "y": 100})
    expect(page.locator(".binade")).to_contain_text("f8e4m3fn has no value so small")


def test_a_block_follows_its_values_and_its_scheme(visit):
    page = visit("#blocks")
    page.get_by_label("Value 0", exact=True).fill("0.5")
    expect(page.locator(".card").first).to_contain_text("exact")
    for scheme in ["nvfp4", "fp8", "int4", "q4_0", "q8_0"]:
        page.get_by_label("Scheme").select_option(scheme)
        expect(title(page)).to_contain_text(f"{scheme}: ")
        expect(alert(page)).to_have_text("")
        assert page.locator(".strip [data-element]").count() == page.locator(".card").count(), scheme
    expect(page.locator(".strip span")).to_have_count(34)  # of q8_0, whose codes are bytes


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


@pytest.mark.parametrize(("view", "label"), [("cast", "Value"), ("rescale", "First input"), ("blocks", "Value 0")])
def test_a_printed_minus_can_be_typed(visit, view, label):
    page = visit(f"#{view}")
    page.get_by_label(label, exact=True).fill("−0")
    expect(page).to_have_url(re.compile("=-0"))
    expect(alert(page)).to_have_text("")


def test_values_beyond_f32_are_kept_and_refused(visit):
    page = visit("#blocks?bytes=93c5e0025a294d1bc260391da4c185d3fe")
    expect(page.get_by_label("Value 2", exact=True)).to_have_value("inf")
    expect(page.get_by_label("Value 0", exact=True)).to_have_value(str(3 * 2**126))
    page.get_by_label("Value 0", exact=True).fill("1")
    expect(alert(page)).to_have_text(re.compile("Element 2 is NaN or infinite"))


def test_what_does_nothing_is_disabled(visit):
    page = visit("#formats?type=nf4")
    for label in ["Compared with", "Sigma of weights"]:
        expect(page.get_by_label(label)).to_be_disabled()
    page.get_by_label("Type", exact=True).select_option("f16")
    expect(page.get_by_label("Sigma of weights")).to_be_enabled()


def test_a_staircase_is_a_table_too(visit):
    page = visit("#rescale?scale=1/3&low=0&high=8")
    assert page.locator(".rescale svg .band").count() == 9
    page.get_by_text("The same as a table").click()
    rows = page.locator(".rescale tbody tr").all_inner_texts()
    assert [row.split("\t")[0] for row in rows] == [str(n) for n in range(9)]


def gguf() -> bytes:
    name = b"blk.0.attn_q.weight"
    info = struct.pack("<Q", len(name)) + name + struct.pack("<IQQIQ", 2, 64, 2, 8, 0)
    return b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + info


HOSTILE = "<img src=x onerror=alert(1)>.weight"
MARKUP = safetensors({HOSTILE: {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, data=bytes(8))
# Name, contents, and what the title says, or the error.
FILES = [
    ("model.safetensors", (MINILM / "model.safetensors").read_bytes(), "h1", "68_736 parameters"),
    ("config.json", (MINILM / "config.json").read_bytes(), "h1", "config.json"),
    ("model.gguf", gguf() + bytes(13 + 2 * 68), "h1", "128 parameters"),
    ("markup.safetensors", MARKUP, "h1", "2 parameters"),
    ("huge.safetensors", safetensors(b"{}", 50_000_000_000), ".error", "50000000000"),
    ("cut.safetensors", safetensors(b"{}", 4000), ".error", "cut.safetensors: "),
    ("bad.safetensors", safetensors(b"{nothing"), ".error", "bad.safetensors: "),
    ("empty.gguf", b"", ".error", "empty.gguf: "),
    ("notes.safetensors", b"Notes of a meeting, which somebody renamed.", ".error", "notes.safetensors: this is text"),
    ("lfs.gguf", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", ".error", "Git LFS pointer"),
    ("photo.png", b"\x89PNG", ".error", "photo.png: "),
]


def opened(visit, name: str, content: bytes):
    page = visit("#checkpoint")
    page.get_by_label("Drop a .safetensors").set_input_files({"name": name, "mimeType": "", "buffer": content})
    return page


@pytest.mark.parametrize(("name", "content", "place", "said"), FILES, ids=[file[0] for file in FILES])
def test_files(visit, name, content, place, said):
    page = opened(visit, name, content)
    expect(page.locator(f"{SECTION} {place}").first).to_contain_text(said)
    expect(page.locator(".error:not(:empty)")).to_have_count(int(place == ".error"))
    expect(title(page)).to_contain_text(said if place == "h1" else VIEWS["checkpoint"])
    expect(page.get_by_role("cell", name=HOSTILE)).to_have_count(int(content is MARKUP))


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
    "no scales": (["l.0.weight F8_E4M3 64 64", "l.0.bias F32 64"], {}, ["Weights of type f8e4m3fn, without scales."],
                  DEQUANTIZE.replace("dequantize", "convert").replace(" --report", " --to bf16 --report")),
}  # fmt: skip


@pytest.mark.parametrize("name", COMFY)
def test_schemes_of_comfyui_are_known_from_the_header(visit, name):
    lines, metadata, said, command = COMFY[name]
    header, at = {"__metadata__": metadata}, 0
    for line in lines:
        tensor, dtype, *sizes = line.split()
        shape = list(map(int, sizes))
        header[tensor] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at := at + WIDTHS[dtype] * prod(shape)]}
    page = opened(visit, "m.safetensors", safetensors(header, data=bytes(at)))
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
    expect(title(page)).to_contain_text("model.safetensors: 68_736 parameters")
    page.get_by_role("link", name="Open embeddings").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".crumbs")).to_contain_text("all › embeddings")
    expect(page.get_by_role("heading", name="Tensors of embeddings")).to_be_visible()
    names = page.locator(".checkpoint .scroller tbody tr td:first-child").all_inner_texts()
    assert names and all(name.startswith("embeddings.") for name in names)
    page.go_back()
    expect(page.locator(".crumbs")).not_to_contain_text("embeddings")


def test_a_missing_engine_is_said_and_what_to_do(show, built, tmp_path):
    shutil.copytree(TARGET / "site" / "explorer", tmp_path, ignore=lambda *_: ["engine.js"], dirs_exist_ok=True)
    page = show((tmp_path / "index.html").as_uri())
    expect(page.locator("#trouble")).to_contain_text("The engine did not load")
    expect(page.locator("#trouble")).to_contain_text("truecast explore")
    show.faults[:] = [fault for fault in show.faults if "ERR_FILE_NOT_FOUND" not in fault]


@pytest.mark.parametrize("view", VIEWS)
def test_looks_and_accessibility_from_400_to_1920(visit, address, view):
    for width, scheme in [(700, "light"), (1920, "light"), *product([400, 1280], ["light", "dark"])]:
        page = visit(f"#{view}", width=width, scheme=scheme)
        expect(title(page)).to_have_text(VIEWS[view])
        page.wait_for_timeout(100)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
        if width in (400, 1280):
            page.screenshot(path=SCREENSHOTS / f"{view}-{width}-{scheme}-{address[:4]}.png", full_page=True)
        if width == 1280:
            assert violations(page) == [], scheme
        if width == 1280 and view in ("cast", "formats", "checkpoint"):
            page.screenshot(path=PICTURES / f"{view}-{scheme}.png")
        page.close()


def test_the_page_and_the_command_give_the_same_bits(browser, served, built):
    """10,000 casts drawn from all pairs of numeric types; each answer has the results of all names."""
    random, requests = Random(20261127), []
    pages = [browser.new_page(), browser.new_page()]
    for page, address in zip(pages, [served, built]):
        page.goto(address)
        page.wait_for_function("window.truecast?.ask")
    formats = pages[0].evaluate("truecast.ask({ask: 'formats'})")["types"]
    types = [(each["name"], each["code_bits"]) for each in formats if each["kind"] not in ("complex", "text")]
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
