"""Records what truecast does, as text files of which two folders are compared: `diff -r BEFORE AFTER`.

    freeze.py OUT --binary PATH [--only outputs,vectors,examples,api,speed]

`outputs.txt` has the exit code and the SHA-256 of all files that every scheme makes of a small checkpoint, dense again,
quantized anew, and in every other scheme by relayout; `reports/` their reports without times, versions and paths.
`vectors.txt` has the same of `vectors cast` for every pair, `examples.txt` of the examples, `api.txt` the public items of
the libraries. `speed.txt` differs from run to run: `bench` of the representative pairs, and conversions of 4 GiB.
"""

import argparse
import hashlib
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

WRITTEN = """fp8-block fp8-block:32x32 fp8-tensor fp8-channel ct:float-quantized ct:float-quantized,strategy=tensor
ct:int-quantized ct:pack-quantized ct:pack-quantized,bits=8,group=32 ct:pack-quantized,bits=4,group=32,symmetric=false
ct:nvfp4-pack-quantized ct:mxfp4-pack-quantized ct:mxfp6-pack-quantized ct:mxfp8-quantized gpt-oss
modelopt:FP8_PER_CHANNEL_PER_TOKEN modelopt:FP8_PB_WO modelopt:W4A16_NVFP4 modelopt:MXFP8 comfy:float8_e4m3fn
comfy:float8_e5m2 comfy:nvfp4 comfy:mxfp8 mxfp8""".split()
RELAID = ["mlx:mxfp4", "mlx:mxfp8"]
BLOCKS = ["gguf:Q8_0", "gguf:MXFP4"]
SPEED_PAIRS = "f32:bf16 f32:f16 bf16:f32 bf16:f16 bf16:f8e4m3fn f32:f8e4m3fn".split()
SPEED_SCHEMES = "fp8-block ct:pack-quantized,bits=4,group=32 ct:mxfp4-pack-quantized modelopt:W4A16_NVFP4".split()
# What a run says of itself and not of the result.
VOLATILE = re.compile(
    r"seconds|elapsed|duration|version|provenance|command|path|created|bytes_per_second|rate|threads|memory|sha256", re.I
)


def safetensors(tensors: list[tuple[str, str, list[int], bytes]]) -> bytes:
    header, at = {}, 0
    for name, dtype, shape, data in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + b"".join(data for *_, data in tensors)


def model(folder: Path, dtype: str) -> None:
    """Two shards of a Llama with two layers, of ordinary weights, zeros and large values."""
    folder.mkdir()
    values, shards = random.Random(11), ([], [])

    def weight(name: str, *shape: int, sigma: float = 0.02) -> None:
        count = 1
        for size in shape:
            count *= size
        floats = [values.gauss(0, sigma) for _ in range(count)]
        floats[3 % count], floats[count // 2] = 0.0, 30 * sigma
        data = struct.pack(f"<{count}f", *floats)
        if dtype == "BF16":
            data = b"".join(data[i + 2 : i + 4] for i in range(0, len(data), 4))
        shards[len(shards[0]) > 6].append((name, dtype, list(shape), data))

    weight("model.embed_tokens.weight", 96, 128)
    for layer in range(2):
        for name, rows, columns in [
            ("self_attn.q_proj", 128, 128), ("self_attn.k_proj", 64, 128), ("self_attn.v_proj", 64, 128),
            ("self_attn.o_proj", 128, 128), ("mlp.gate_proj", 256, 128), ("mlp.up_proj", 256, 128),
            ("mlp.down_proj", 128, 256),
        ]:  # fmt: skip
            weight(f"model.layers.{layer}.{name}.weight", rows, columns)
        weight(f"model.layers.{layer}.input_layernorm.weight", 128, sigma=1.0)
    weight("lm_head.weight", 96, 128)
    names = {}
    for number, tensors in enumerate(shards, 1):
        file = f"model-0000{number}-of-00002.safetensors"
        (folder / file).write_bytes(safetensors(tensors))
        names.update({name: file for name, *_ in tensors})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": names}))
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 128}
    config["torch_dtype"] = "bfloat16" if dtype == "BF16" else "float32"
    (folder / "config.json").write_text(json.dumps(config))


def digest(path: Path) -> str:
    """Of a file, or of all files of a folder but the record of the run."""
    if path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()[:24]
    if not path.exists():
        return "-"
    files = sorted(file for file in path.rglob("*") if file.is_file() and file.name != "truecast-manifest.json")
    every = "".join(f"{file.relative_to(path)} {digest(file)}\n" for file in files)
    return hashlib.sha256(every.encode()).hexdigest()[:24]


def stable(value):
    if isinstance(value, dict):
        return {key: stable(inner) for key, inner in value.items() if not VOLATILE.search(key)}
    return [stable(inner) for inner in value] if isinstance(value, list) else value


class Freeze:
    def __init__(self, binary: Path, out: Path, work: Path):
        self.binary, self.out, self.work = str(binary.resolve()), out, work
        self.lines: list[str] = []

    def run(self, *words: str) -> subprocess.CompletedProcess:
        return subprocess.run([self.binary, *words], cwd=self.work, capture_output=True, stdin=subprocess.DEVNULL)

    def write(self, name: str) -> None:
        (self.out / name).write_text("\n".join(self.lines) + "\n")
        print(f"{name}: {len(self.lines)} lines", flush=True)
        self.lines = []

    def convert(self, label: str, source: str, result: str, *words: str) -> bool:
        """Records a conversion, its report and, of one that succeeds, what `verify` says of it."""
        path = self.work / result
        shutil.rmtree(path, ignore_errors=True)
        path.unlink(missing_ok=True)
        done = self.run("convert", source, result, *words, "--json")
        verified = "-"
        if done.returncode == 0:
            report = json.dumps(stable(json.loads(done.stdout)), indent=1, sort_keys=True)
            (self.out / "reports" / (re.sub(r"[^\w.-]", "_", label) + ".json")).write_text(report + "\n")
            verified = str(self.run("verify", source, result, *words).returncode)
        self.lines.append(f"{label}: exit {done.returncode}, verify {verified}, {digest(path)}")
        return done.returncode == 0

    def outputs(self) -> None:
        (self.out / "reports").mkdir()
        for dtype in ("BF16", "F32"):
            model(self.work / dtype, dtype)
            for to in ("f32", "bf16", "f16", "f8e4m3fn", "i8"):
                self.convert(f"{dtype} to {to}", dtype, "cast", "--to", to)
            file = f"{dtype}/model-00001-of-00002.safetensors"
            for extension in ("safetensors", "npz", "gguf"):
                to = "f16" if extension != "gguf" else "f32"
                self.convert(f"{dtype} file to {extension}", file, f"one.{extension}", "--to", to)
            for number, scheme in enumerate(WRITTEN):
                self.scheme(f"{dtype} {scheme}", dtype, scheme, f"{dtype}-{number}")
            for scheme in BLOCKS:
                self.scheme(f"{dtype} {scheme}", file, scheme, f"{dtype}.{scheme[5:]}.gguf")
        self.write("outputs.txt")

    def scheme(self, label: str, source: str, scheme: str, result: str) -> None:
        if not self.convert(label, source, result, "--scheme", scheme):
            return
        for to in ("bf16", "f32"):
            extension = ".safetensors" if result.endswith(".gguf") else ""
            self.convert(f"{label}, to {to}", result, f"dense{extension}", "--to", to)
        self.convert(f"{label}, searched", source, f"searched-{result}", "--scheme", scheme, "--scale-search", "mse")
        if result.endswith(".gguf"):
            return
        for other in WRITTEN:
            self.convert(f"{label}, to {other}", result, "again", "--scheme", other)
        for other in WRITTEN + RELAID:
            for how in ("exact", "lossy"):
                words = ("--scheme", other, "--relayout", how)
                self.convert(f"{label}, laid out as {other}, {how}", result, "again", *words)
        for other in BLOCKS:
            for how in ("exact", "lossy"):
                words = ("--scheme", other, "--relayout", how)
                shard = f"{result}/model-00001-of-00002.safetensors"
                self.convert(f"{label}, laid out as {other}, {how}", shard, "again.gguf", *words)

    def vectors(self) -> None:
        types = [one["name"] for one in json.loads(self.run("formats", "--json").stdout)["types"]]
        for spec in ("onnx", "tosa", "openvino", "tile", "ieee"):
            for src in types:
                for dst in types:
                    done = self.run("vectors", "cast", "--from", src, "--to", dst, "--spec", spec)
                    said = hashlib.sha256(done.stdout).hexdigest()[:24]
                    self.lines.append(f"{spec} {src} {dst}: exit {done.returncode}, {said}")
        self.write("vectors.txt")

    def examples(self) -> None:
        for file in sorted((ROOT / "crates/truecast/examples").glob("*.rs")):
            words = ["cargo", "run", "--quiet", "--release", "-p", "truecast", "--example", file.stem]
            copy = self.work / f"example-{file.stem}"
            copy.mkdir()
            manifest = ["--manifest-path", str(ROOT / "Cargo.toml")]
            done = subprocess.run([*words[:2], *manifest, *words[2:]], cwd=copy, capture_output=True)
            said = re.sub(rb"\d+\.\d+ (s|ms|GB/s)", b"", done.stdout)
            said = hashlib.sha256(said).hexdigest()[:24]
            self.lines.append(f"{file.stem}: exit {done.returncode}, {said}, {digest(copy)}")
        self.write("examples.txt")

    def api(self) -> None:
        """Names and kinds of the public items, as rustdoc has them."""
        for crate in ("truecast-core", "truecast-kernel", "truecast-io", "truecast-schemes", "truecast-models", "truecast"):
            words = ["cargo", "rustdoc", "--quiet", "-p", crate, "--lib", "--", "-Zunstable-options"]
            environment = {**os.environ, "RUSTC_BOOTSTRAP": "1"}
            subprocess.run([*words, "--output-format", "json"], cwd=ROOT, env=environment, check=True)
            target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
            found = json.loads((target / "doc" / (crate.replace("-", "_") + ".json")).read_text())
            self.items(found["index"], str(found["root"]), crate.replace("-", "_"), set())
        self.lines.sort()
        self.write("api.txt")

    def items(self, index: dict, key: str, path: str, seen: set[str]) -> None:
        """A module, what it holds and what it re-exports."""
        for inner in index[key]["inner"]["module"]["items"]:
            item = index.get(str(inner))
            if item is None or item["visibility"] != "public":
                continue
            (kind, what), = item["inner"].items()
            if kind == "use":
                self.lines.append(f"{path}: use {what['source']} as {what['name']}{'::*' if what['is_glob'] else ''}")
            elif kind == "module" and str(inner) not in seen:
                seen.add(str(inner))
                self.items(index, str(inner), f"{path}::{item['name']}", seen)
            else:
                self.lines.append(f"{path}: {kind} {item['name']}")
                for key_of_impl in what.get("impls", []) if isinstance(what, dict) else []:
                    part = index.get(str(key_of_impl), {}).get("inner", {}).get("impl", {})
                    for method in part.get("items", []) if part.get("trait") is None else []:
                        found = index.get(str(method))
                        if found and found["visibility"] == "public":
                            self.lines.append(f"{path}: {item['name']}::{found['name']}")

    def speed(self) -> None:
        self.lines += self.run("bench").stdout.decode().splitlines()
        for dtype, size in (("BF16", 2), ("F32", 4)):
            source = self.work / f"large-{dtype}"
            source.mkdir()
            rows, block = (4 << 30) // (8 * 4096 * size), random.Random(5).randbytes(1 << 24)
            # Exponents of ordinary weights: the last byte of each element is that of .02 or nearby.
            block = bytearray(block)
            block[size - 1 :: size] = bytes(0x3C | (b & 0x80) for b in block[size - 1 :: size])
            shape = [rows, 4096]
            for shard in range(2):
                header, at = {}, 0
                for i in range(4):
                    name = f"model.layers.{4 * shard + i}.mlp.up_proj.weight"
                    length = rows * 4096 * size
                    header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + length]}
                    at += length
                text = json.dumps(header).encode()
                with (source / f"model-0000{shard + 1}-of-00002.safetensors").open("wb") as file:
                    file.write(struct.pack("<Q", len(text)) + text)
                    for begin in range(0, at, len(block)):
                        file.write(block[: min(len(block), at - begin)])
        jobs = [("large-" + p.split(":")[0].upper(), ["--to", p.split(":")[1]]) for p in SPEED_PAIRS]
        jobs += [("large-BF16", ["--scheme", scheme]) for scheme in SPEED_SCHEMES]
        for source, words in jobs:
            shutil.rmtree(self.work / "fast", ignore_errors=True)
            for command in ("convert", "verify"):
                begin = time.perf_counter()
                done = self.run(command, source, "fast", *words, "--quiet")
                seconds = time.perf_counter() - begin
                self.lines.append(f"{command} {source} {' '.join(words)}: exit {done.returncode}, {seconds:.2f} s")
        self.write("speed.txt")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--binary", type=Path, default=ROOT / "target/release/truecast")
    parser.add_argument("--only", default="outputs,vectors,examples,api", help="with commas; speed is not among the default")
    options = parser.parse_args()
    options.out.mkdir(parents=True)
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as work:
        freeze = Freeze(options.binary, options.out, Path(work))
        for part in options.only.split(","):
            getattr(freeze, part)()


if __name__ == "__main__":
    sys.exit(main())
