"""GiB a second from disk to disk: what people run, beside `cp` and the package that they would use.

    benches/files/run [--gib 1] [--runs 3] [--only JOB,..] [--binary FILE]

Sources are made here: a folder of four shards, weights of a trained model's spread in matrices of 4096 columns, f32 or
bf16. They are in the page cache, and results are written to disk: `convert` with all counts and error measures, as
always, `verify --full` of the result, and `cp` with `sync` of the larger of source and result, in turns, the best of
`--runs`. Packages read with safetensors and run once, with as many threads as there are cores; their imports are left
out, and they leave their results in the page cache. The page `results.md` next to this file is written when every job
ran.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from datetime import date
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "tests" / "acceptance"), str(HERE.parent / "peers")]
import report  # noqa: E402
from folders_speed import shard_name, write_config  # noqa: E402
from processes import add_binary, idle_kib, peak_kib, run, seconds, warn_if_busy  # noqa: E402
from weights import Weights  # noqa: E402

SHARDS, COLUMNS, GIB = 4, 4096, 1 << 30


@dataclass(frozen=True)
class Job:
    name: str
    says: str
    source: str
    options: tuple[str, ...]
    result: str = ""


JOBS = [
    Job("bf16", "f32 to bf16", "f32", ("--to", "bf16")),
    Job("f8e4m3fn", "bf16 to f8e4m3fn, no scales", "bf16", ("--to", "f8e4m3fn")),
    Job("fp8", "bf16 to fp8, 128x128", "bf16", ("--scheme", "fp8-block")),
    Job("int4", "bf16 to int4, groups of 128", "bf16", ("--scheme", "ct:pack-quantized,bits=4,group=128")),
    Job("mxfp4", "bf16 to MXFP4", "bf16", ("--scheme", "ct:mxfp4-pack-quantized")),
    Job("nvfp4", "bf16 to NVFP4", "bf16", ("--scheme", "ct:nvfp4-pack-quantized")),
    Job("q8_0", "bf16 to Q8_0 (GGUF)", "bf16", ("--scheme", "gguf:q8_0"), ".gguf"),
    Job("dequantize", "fp8, 128x128, to bf16", "fp8", ("--to", "bf16")),
]


def write_f32(folder: Path, gib: float) -> None:
    """Matrices of 16 MiB and smaller ones, in four shards."""
    folder.mkdir()
    weights, weight_map = Weights(), {}
    rows = [1024, 1024, 4096, 512]
    each = sum(rows) * COLUMNS * 4
    layers = max(1, int(gib * GIB) // SHARDS // each)
    for shard in range(SHARDS):
        path = folder / shard_name(shard, SHARDS)
        header, offset = {}, 0
        for layer in range(layers):
            for part, n in zip("qkud", rows, strict=True):
                name = f"model.layers.{shard * layers + layer}.{part}_proj.weight"
                end = offset + n * COLUMNS * 4
                header[name] = {"dtype": "F32", "shape": [n, COLUMNS], "data_offsets": [offset, end]}
                weight_map[name], offset = path.name, end
        text = json.dumps(header).encode()
        with open(path, "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for entry in header.values():
                weights.write(file, entry["shape"][0] * COLUMNS * 4)
    write_config(folder, {"model_type": "llama", "torch_dtype": "float32"}, weight_map)


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def weights_of(path: Path) -> list[Path]:
    return [path] if path.is_file() else sorted(path.glob("*.safetensors"))


def size(path: Path) -> int:
    return sum(file.stat().st_size for file in weights_of(path))


def measure(job: Job, source: Path, work: Path, args) -> dict[str, str]:
    out, copy = work / f"out{job.result}", work / "copy"
    convert = [args.binary, "convert", source, out, *job.options, "--quiet"]
    verify = [args.binary, "verify", source, out, *job.options, "--full", "--quiet"]
    one, all_cores, copies, proofs = [], [], [], []
    for _ in range(args.runs):
        remove(out)
        one.append(seconds([*convert, "--threads", "1"]))
        remove(out)
        all_cores.append(seconds(convert))
        proofs.append(seconds(verify))
        copied = weights_of(max(source, out, key=size))
        copy.mkdir()
        copies.append(seconds(["cp", *copied, copy], ["sync", *[copy / file.name for file in copied]]))
        shutil.rmtree(copy)
    remove(out)
    memory = (peak_kib(*convert) - idle_kib(args.binary)) / 1024
    gib = size(source) / GIB
    row = {
        "job": job.says,
        "GiB/s": f"{gib / min(all_cores).wall:.2f}",
        "one thread": f"{gib / min(one).wall:.2f}",
        "CPU s per GiB": f"{min(one).processor / gib:.2f}",
        "time of cp and sync": f"{min(all_cores).wall / min(copies).wall:.2f}",
        "MiB": f"{memory:.0f}",
        "verify, GiB/s": f"{gib / min(proofs).wall:.2f}",
    }
    remove(out)
    peer, theirs = args.peer.absolute(), work / "theirs"
    command = [str(peer), str(HERE / "peers.py"), job.name, str(source), str(theirs)]
    took, package, version = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-3:]
    shutil.rmtree(theirs)
    row["package"] = f"{package} {version}"
    row["its GiB/s"] = f"{gib / float(took):.2f}"
    row["slower"] = f"{float(took) / min(all_cores).wall:.1f} x"
    return row


def page(rows: list[dict[str, str]], args) -> str:
    version = run(args.binary, "--version").strip()
    lines = [
        "# From disk to disk",
        "",
        "Written by `benches/files/run`; [jobs.py](jobs.py) says what is measured and what is left out. GiB are those of",
        "the source. Disk and machine may be shared: ratios say more than figures.",
        "",
        f"{date.today()}, {report.cpu()}, {os.cpu_count()} cores, {platform.system()} {platform.release()},"
        f" {version}, {args.gib:g} GiB, best of {args.runs}.",
        "",
        report.table(list(rows[0]), [list(row.values()) for row in rows], 1),
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_binary(parser)
    parser.add_argument("--work", type=Path, default=None, help="where to work; default a temporary folder")
    parser.add_argument("--gib", type=float, default=1)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--peer", type=Path, default=sys.executable, help="a Python with the packages")
    args = parser.parse_args()
    warn_if_busy()
    jobs = [job for job in JOBS if not args.only or job.name in args.only.split(",")]
    with tempfile.TemporaryDirectory(dir=args.work) as folder:
        work, rows = Path(folder), []
        write_f32(work / "f32", args.gib)
        run(args.binary, "convert", work / "f32", work / "bf16", "--to", "bf16", "--quiet")
        run(args.binary, "convert", work / "bf16", work / "fp8", "--scheme", "fp8-block", "--quiet")
        for job in jobs:
            rows.append(measure(job, work / job.source, work, args))
            print("  ".join(f"{name} {value}" for name, value in rows[-1].items()), flush=True)
    if not args.only:
        (HERE / "results.md").write_text(page(rows, args))


if __name__ == "__main__":
    main()
