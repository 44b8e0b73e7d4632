"""Files: what the command does to them is tested beside; here is what Python adds."""

import hashlib
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import truecast as tc
from container import read_safetensors, write_safetensors
from dtypes import TYPES

SAMPLE = Path(__file__).resolve().parents[3] / "testdata" / "minilm" / "model.safetensors"


def test_convert_and_verify(tmp_path):
    destination = tmp_path / "f8.safetensors"
    report = tc.convert(SAMPLE, destination, "f8e4m3fn", keep=["*LayerNorm*"])
    rows = {row["name"]: row for row in report.tensors}
    assert rows["embeddings.LayerNorm.bias"]["to"] == "f32"
    words = rows["embeddings.word_embeddings.weight"]
    assert (words["from"], words["to"], words["shape"]) == ("f32", "f8e4m3fn", [128, 384])
    assert words["exact"] + words["inexact"] == words["elements"] == 128 * 384
    assert report.total["tensors"] == len(report.tensors) == 6
    columns = report.to_dict()
    assert columns["name"] == [row["name"] for row in report.tensors] and len(columns["sqnr_db"]) == 6
    assert "word_embeddings" in repr(report) and "<table>" in report._repr_html_()

    assert tc.verify(SAMPLE, destination, "f8e4m3fn", keep="*LayerNorm*")
    assert tc.verify(SAMPLE, destination, report=report)
    with pytest.raises(tc.UsageError):
        tc.verify(SAMPLE, destination, "f8e5m2", report=report)
    written = destination.read_bytes()
    expected = {"path": str(destination), "bytes": len(written), "sha256": hashlib.sha256(written).hexdigest()}
    assert report.outputs == [expected]
    assert tc.convert(SAMPLE, tmp_path / "dry.safetensors", "f16", dry_run=True).outputs == []
    report.save(tmp_path / "report.json")
    assert tc.verify(SAMPLE, destination, report=tmp_path / "report.json").coverage == 1
    wrong = tc.verify(SAMPLE, destination, "f8e5m2", keep=["*LayerNorm*"])
    assert not wrong and wrong.differences[0]["kind"] == "header" and "DIFFERENT" in repr(wrong)
    data = bytearray(destination.read_bytes())
    data[-1] ^= 1
    destination.write_bytes(data)
    wrong = tc.verify(SAMPLE, destination, report=report)
    assert [row["kind"] for row in wrong.differences] == ["elements", "digest"]
    assert wrong.differences == tc.verify(SAMPLE, destination, report=tmp_path / "report.json").differences


def test_magnitudes(tmp_path):
    report = tc.convert(SAMPLE, tmp_path / "f8.safetensors", "f8e4m3fn", magnitudes=True)
    compared = tc.compare(SAMPLE, tmp_path / "f8.safetensors", magnitudes=True)
    for row in [*report.tensors, *compared.tensors]:
        assert [sum(side["counts"]) + side["zero"] for side in row["magnitudes"].values()] == [row["elements"]] * 2


def test_names_are_shown_as_the_command_shows_them(tmp_path, truecast):
    """A name from a file moves no cursor, turns no line, and makes no table as wide as itself."""
    evil = "\x1b]0;pwn\x07\x1b[31mred\x9b2J\u202etxt\n|"
    names = [evil, "<script>", "x" * 1_000_000, *(f"t{i}" for i in range(60))]
    source, other = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    one = (TYPES["f32"], np.ones(1, np.float32))
    write_safetensors(source, {name: one for name in names})
    write_safetensors(other, {name: one for name in names[:-1]})
    report, found = tc.convert(source, tmp_path / "c.safetensors", "f16"), tc.compare(source, other)
    assert {row["name"] for row in report.tensors} == set(names)
    report.warnings.append("a warning of \x1b[2J")
    shown = truecast("convert", source, tmp_path / "d.safetensors", "--to", "f16")
    for text in (repr(report), report._repr_html_(), repr(found), found._repr_html_()):
        assert all(c.isprintable() or c == "\n" for c in text)
        assert len(text) < 40_000
    escaped = r"\u{1b}]0;pwn\u{7}\u{1b}[31mred\u{9b}2J\u{202e}txt\n|"
    assert escaped in shown and escaped in repr(report) and escaped in report._repr_html_()
    assert "1_000_000 characters" in repr(report) and r"warning: a warning of \u{1b}[2J" in repr(report)
    with pytest.raises(tc.TruecastError) as error:
        tc.convert(source, tmp_path / "e.safetensors", "f16", rules=[("\x1b[2J*", "f9")])
    assert str(error.value).isprintable()


def test_a_callback_that_fails_at_the_end(tmp_path):
    """The destination is whole or not there."""

    def progress(done, total, tensor):
        if done == total:
            raise KeyError("last")

    with pytest.raises(KeyError):
        tc.convert(SAMPLE, tmp_path / "b.safetensors", "f16", progress=progress)
    assert not (tmp_path / "b.safetensors").exists() or tc.verify(SAMPLE, tmp_path / "b.safetensors", "f16")


def test_inspect():
    names = {row["name"] for row in tc.inspect(SAMPLE, filter="*bias")["tensors"]}
    assert names and all(name.endswith("bias") for name in names)
    both = {row["name"] for row in tc.inspect(SAMPLE, filter=["*bias", "*LayerNorm*"], lenient=True)["tensors"]}
    assert names < both


def test_compare(tmp_path):
    tc.convert(SAMPLE, tmp_path / "a.npz", "bf16")
    found = tc.compare(SAMPLE, SAMPLE)
    assert found.equal and "equal" in repr(found)
    np.save(tmp_path / "x.npy", np.float32([1, 2]))
    np.save(tmp_path / "y.npy", np.float32([1, 3]))
    found = tc.compare(tmp_path / "x.npy", tmp_path / "y.npy")
    assert not found.equal and found.tensors[0]["max_abs_error"] == 1
    assert found.only_first == [] and found.incomparable == []


def test_rules_and_options(tmp_path):
    rules = [("*bias*", "f16"), ("*", None)]
    report = tc.convert(SAMPLE, tmp_path / "a.safetensors", "bf16", rules=rules, spec="ieee", rounding="up")
    assert {row["to"] for row in report.tensors if "bias" in row["name"]} == {"f16"}
    assert report.options["spec"] == "ieee" and report.options["attributes"] == {"rounding": "up"}
    assert tc.verify(SAMPLE, tmp_path / "a.safetensors", report=report)
    tc.convert(SAMPLE, tmp_path / "b.npz", ml_dtypes.bfloat16, rules={"*bias*": None})


def test_dry_run(tmp_path):
    report = tc.convert(SAMPLE, tmp_path / "a.safetensors", "bf16", dry_run=True)
    assert not (tmp_path / "a.safetensors").exists() and report.total["bytes_out"] < report.total["bytes_in"]


def test_inspect():
    found = tc.inspect(SAMPLE, stats=True, filter="*weight")
    assert [row["dtype"] for row in found["tensors"]] == ["f32"] * 3 and "min" in found["tensors"][0]["stats"]


@pytest.mark.parametrize(
    "call, kinds, words",
    [
        (lambda to: tc.convert("none.npy", to / "a.npy", "bf16"), (tc.FileError, OSError), "none.npy"),
        (lambda to: tc.convert(SAMPLE, to / "a.pt", "bf16"), (tc.UsageError, ValueError), r"a\.pt"),
        (lambda to: tc.convert(SAMPLE, to / "a.gguf", "f8e4m3fn"), (tc.TruecastError, ValueError), "gguf"),
        (lambda to: tc.convert(SAMPLE, to / "old.npz", "bf16"), (tc.UsageError, ValueError), "force=True"),
        (lambda to: tc.convert(SAMPLE, to / "a.npz", "bf16", keep="no such"), (tc.UsageError, ValueError), "no such"),
        (lambda to: tc.convert(SAMPLE, to / "a.npz", "bf16", max_memory=1), (tc.UsageError, ValueError), "bytes"),
        (lambda to: tc.convert(SAMPLE, to / "a.npz", "bf16", sepc="onnx"), (tc.UsageError, ValueError), "sepc"),
        (lambda to: tc.convert(__file__, to / "a.npz", "bf16"), (tc.UsageError, ValueError), "test_package_files.py"),
        (lambda to: tc.verify(SAMPLE, SAMPLE, "bf16", sample=2.0), (tc.UsageError, ValueError), "such as 0.1"),
        (lambda to: tc.inspect(to / "bad.safetensors"), (tc.InputError, ValueError), "bad.safetensors"),
    ],
)
def test_errors(call, kinds, words, tmp_path):
    (tmp_path / "old.npz").write_bytes(b"")
    (tmp_path / "bad.safetensors").write_bytes(b"x" * 100)
    for kind in (tc.TruecastError, *kinds):
        with pytest.raises(kind, match=words):
            call(tmp_path)


def big(tmp_path, elements=8_000_000):
    path = tmp_path / "big.npy"
    header = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(elements,))
    header.flush()
    return path


def test_progress(tmp_path):
    seen = []
    source = big(tmp_path)
    tc.convert(source, tmp_path / "a.npy", "bf16", progress=lambda *now: seen.append(now))
    assert seen[-1] == (32_000_000, 32_000_000, "data")
    assert [now[0] for now in seen] == sorted(now[0] for now in seen)


def test_what_a_callback_raises_ends_the_work(tmp_path):
    source, other = big(tmp_path), tmp_path / "text.npy"
    np.save(other, np.zeros(8_000_000, "<U3"))

    def stop(*now):
        raise KeyError("enough")

    for work in (
        lambda: tc.convert(source, tmp_path / "a.npy", "string", spec="ieee", progress=stop),
        lambda: tc.verify(source, other, "string", spec="ieee", full=True, progress=stop),
        lambda: tc.compare(source, source, progress=stop),
    ):
        with pytest.raises(KeyError, match="enough"):
            work()
    assert not (tmp_path / "a.npy").exists()


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c(tmp_path):
    # As large and slow that it is not over when the signal comes.
    source = big(tmp_path, 40_000_000)
    code = f"""
        import signal, truecast as tc
        # Where the runner ignores interruptions, so would this.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        tc.set_num_threads(1)
        def begun(*now):
            print("begun", flush=True)
        try:
            tc.convert({str(source)!r}, {str(tmp_path / "a.npy")!r}, "string", spec="ieee", progress=begun)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "begun\n"
    child.send_signal(signal.SIGINT)
    rest, _ = child.communicate(timeout=60)
    assert rest.splitlines()[-1] == "interrupted" and child.returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["big.npy"]


def test_a_gguf_file(tmp_path):
    """Names stay; blocks are those of docs/spec/checkpoints.md section 9.3, and what is kept is copied."""
    destination, options = tmp_path / "q.gguf", {"scheme": "gguf:q8_0"}
    tc.convert(SAMPLE, destination, **options)
    assert tc.verify(SAMPLE, destination, **options)
    tc.convert(destination, tmp_path / "b.safetensors", "f32")
    (source, _, _), (dense, _, _) = read_safetensors(SAMPLE), read_safetensors(tmp_path / "b.safetensors")

    name, one = "embeddings.word_embeddings.weight", np.float32(1)
    x = source[name].reshape(-1, 32)
    d = abs(x).max(1, keepdims=True) / np.float32(127)
    v = x * (one / d)
    q = np.trunc(v) + np.sign(v) * (abs(v - np.trunc(v)) >= 0.5)  # to nearest, ties away from zero
    expected = q.astype(np.float32) * d.astype(np.float16).astype(np.float32)
    assert np.array_equal(dense[name].reshape(-1, 32), expected)
    kept = "embeddings.LayerNorm.weight"
    assert dense[kept].tobytes() == source[kept].tobytes()


def test_arguments_that_do_not_exist(tmp_path):
    np.save(tmp_path / "a.npy", np.float32([1]))
    source, result = str(tmp_path / "a.npy"), str(tmp_path / "b.npy")
    with pytest.raises(tc.UsageError, match="convert has no argument overwrite, .*; did you mean force[?]"):
        tc.convert(source, result, "f16", overwrite=True)
    with pytest.raises(tc.UsageError, match="verify has no argument max_memry"):
        tc.verify(source, source, "f16", max_memry=1)
    with pytest.raises(tc.UsageError, match='onnx has no attribute "overflow"'):
        tc.convert(source, result, "f16", overflow="saturate")
    with pytest.raises(tc.DTypeError, match="is ambiguous") as found:
        tc.convert(source, result, "f8e4m3")
    assert "did you mean" not in str(found.value)
