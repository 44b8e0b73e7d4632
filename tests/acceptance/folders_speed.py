"""Time and memory of quantized checkpoints that are folders.

    python tests/acceptance/folders_speed.py [--binary FILE] [--work DIR] [--megabytes 1024] [--runs 5]
        [--gib 20] [--peer PYTHON] [--only cp,growth,peer]

Outside CI. Linux (`/proc`), Python 3.11 or later, a quiet machine; for `growth` disk of half of `--gib`; for `peer` a
Python with the packages of tests/peers/checkpoints (its `run` makes one).

- cp: fp8 codes with 128x128 block scales to bf16, `--megabytes` of codes in shards: best time against `cp` followed by
  `sync FILE` of the result's shards, in turns, source in the page cache; at most 1.15 times as long.
- growth: a sparse bf16 checkpoint in shards of 1 GiB to fp8 blocks, 1 GiB and `--gib` of them: CPU seconds for each GiB
  stay within 10 %, and the peak resident set (VmHWM) minus that of `truecast formats` is at most 64 MiB with
  --max-memory 32MiB.
- peer: the folder of `cp` by compressed-tensors on the CPU, in turns: at least 20 times as long.

Prints figures; exit code 1 if a limit is missed.
"""

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from folders import MEMORY_LIMIT_MIB, write_shard
from processes import MIB, add_binary, idle_kib, peak_kib, run, seconds, warn_if_busy

CP_LIMIT, GROWTH_LIMIT, PEER_LIMIT = 1.15, 1.10, 20
SHARDS, COLUMNS, GIB = 4, 8192, 1 << 30
MEMORY = ["--max-memory", "32MiB"]

# Says how long it took without its imports.
PEER = """
import sys, time
from compressed_tensors.entrypoints.convert import FP8BlockDequantizer, convert_checkpoint
targets = [r"re:layer\\.[0-9]+$"]
begin = time.perf_counter()
converter = FP8BlockDequantizer(targets=targets)
convert_checkpoint(sys.argv[1], sys.argv[2], converter, max_workers=int(sys.argv[3]), device="cpu")
print(time.perf_counter() - begin)
"""


def write_config(folder: Path, config: dict, weight_map: dict[str, str]) -> None:
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))


def shard_name(number: int, of: int) -> str:
    return f"model-{number + 1:05}-of-{of:05}.safetensors"


def write_blocks(folder: Path, megabytes: int, rng: random.Random) -> None:
    """fp8 codes, none of them NaN, and a scale for each 128x128."""
    folder.mkdir()
    block = bytes(b if b & 0x7F != 0x7F else 0x38 for b in rng.randbytes(MIB))
    rows = megabytes * MIB // SHARDS // COLUMNS // 128 * 128
    grid = [rows // 128, COLUMNS // 128]
    weight_map = {}
    for shard in range(SHARDS):
        codes = (f"layer.{shard}.weight", "F8_E4M3", [rows, COLUMNS], rows * COLUMNS)
        scales = (f"layer.{shard}.weight_scale_inv", "F32", grid, grid[0] * grid[1] * 4)
        # The scales are bits of block too; 0x3c in each fourth byte makes them small positive numbers.
        path = folder / shard_name(shard, SHARDS)
        write_shard(path, [codes], block)
        append_tensor(path, scales, bytes(0x3C if at % 4 == 3 else b for at, b in enumerate(block[:4096])))
        weight_map |= {codes[0]: path.name, scales[0]: path.name}
    config = {"quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]}}
    write_config(folder, {"architectures": [], "torch_dtype": "bfloat16", **config}, weight_map)


def append_tensor(path: Path, tensor: tuple[str, str, list[int], int], block: bytes) -> None:
    """One more tensor at the end of a shard."""
    name, dtype, shape, size = tensor
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    end = max(of["data_offsets"][1] for of in header.values())
    header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + size]}
    text = json.dumps(header).encode()
    new = path.with_suffix(".new")
    with open(path, "rb") as old, open(new, "wb") as file:
        old.seek(8 + length)
        file.write(len(text).to_bytes(8, "little") + text)
        shutil.copyfileobj(old, file, MIB)
        while size:
            size -= file.write(block[: min(size, len(block))])
    new.replace(path)


def write_sparse(folder: Path, gib: int) -> None:
    """Zeros that take no disk: shards of 1 GiB of bf16 in tensors of 128 MiB."""
    folder.mkdir()
    weight_map = {}
    for shard in range(gib):
        path, size = folder / shard_name(shard, gib), GIB // 8
        header, offset = {}, 0
        for at in range(8):
            name = f"layer.{8 * shard + at}.weight"
            shape = [size // 2 // COLUMNS, COLUMNS]
            header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [offset, offset + size]}
            offset += size
            weight_map[name] = path.name
        text = json.dumps(header).encode()
        with open(path, "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            file.truncate(8 + len(text) + offset)
    write_config(folder, {"torch_dtype": "bfloat16"}, weight_map)


def dense(binary: Path, source: Path, out: Path, *more) -> list:
    return [binary, "convert", source, out, "--to", "bf16", "--quiet", "--force", *MEMORY, *more]


def against_cp(args, work: Path) -> bool:
    source, out, copy = work / "blocks", work / "dense", work / "copy"
    command = dense(args.binary, source, out)
    run(*command)
    files = sorted(out.glob("*.safetensors"))
    copy.mkdir()
    ours, theirs = [], []
    for _ in range(args.runs):
        ours.append(seconds(command))
        theirs.append(seconds(["cp", *files, copy], ["sync", *[copy / file.name for file in files]]))
    ratio = min(ours).wall / min(theirs).wall
    more = (peak_kib(*command) - idle_kib(args.binary)) / 1024
    shutil.rmtree(copy)
    print(
        f"cp      {min(ours).wall:.2f} s ({min(ours).processor:.2f} of a processor) against {min(theirs).wall:.2f} s: "
        f"{ratio:.2f}, limit {CP_LIMIT}; {more:.1f} MiB of memory, limit {MEMORY_LIMIT_MIB}"
    )
    shutil.rmtree(out)
    return ratio <= CP_LIMIT and more <= MEMORY_LIMIT_MIB


def growth(args, work: Path) -> bool:
    each, peaks = {}, []
    idle = idle_kib(args.binary)
    for gib in (1, args.gib):
        source, out = work / "sparse", work / "quantized"
        write_sparse(source, gib)
        command = [args.binary, "convert", source, out, "--scheme", "fp8-block", "--quiet", *MEMORY]
        taken = seconds(command)
        shutil.rmtree(out)
        peaks.append((peak_kib(*command) - idle) / 1024)
        shutil.rmtree(out)
        shutil.rmtree(source)
        each[gib] = taken.processor / gib
        of_each = f"{each[gib]:.3f} s of a processor for each GiB"
        print(f"growth  {gib:3} GiB: {taken.wall:.1f} s, {of_each}, {peaks[-1]:.1f} MiB")
    ratio = each[args.gib] / each[1]
    print(f"growth  {ratio:.2f}, limit {GROWTH_LIMIT}; {max(peaks):.1f} MiB of memory, limit {MEMORY_LIMIT_MIB}")
    return ratio <= GROWTH_LIMIT and max(peaks) <= MEMORY_LIMIT_MIB


def against_peer(args, work: Path) -> bool:
    source, out = work / "blocks", work / "dense"
    command = dense(args.binary, source, out)
    peer = [args.peer, "-c", PEER, source, work / "peer", args.peer_workers]
    ours, theirs = [], []
    for _ in range(2):
        ours.append(seconds(command))
        theirs.append(float(run(*peer).split()[-1]))
    for path in sorted(out.glob("*.safetensors")):
        ended = subprocess.run(["cmp", tail(path), tail(work / "peer" / path.name)])
        assert ended.returncode == 0, f"{path.name} differs from that of compressed-tensors"
    ratio = min(theirs) / min(ours).wall
    print(
        f"peer    compressed-tensors {min(theirs):.1f} s without its imports, truecast {min(ours).wall:.2f} s: "
        f"{ratio:.1f}, limit {PEER_LIMIT}"
    )
    return ratio >= PEER_LIMIT


def tail(path: Path) -> Path:
    """The data without the header, which packages write each in their own way."""
    to = path.with_suffix(".data")
    with open(path, "rb") as file, open(to, "wb") as data:
        file.seek(8 + int.from_bytes(file.read(8), "little"))
        shutil.copyfileobj(file, data, MIB)
    return to


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_binary(parser)
    parser.add_argument("--work", type=Path, default=None, help="where to work; default a temporary folder")
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--gib", type=int, default=20)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--peer", type=Path, help="a Python that has compressed-tensors")
    parser.add_argument("--peer-workers", type=int, default=1)
    parser.add_argument("--only", default="cp,growth")
    args = parser.parse_args()
    parts = args.only.split(",")
    if "peer" in parts and args.peer is None:
        parser.error("--only peer needs --peer PYTHON")
    warn_if_busy()
    kept = True
    with tempfile.TemporaryDirectory(dir=args.work) as folder:
        work = Path(folder)
        if {"cp", "peer"} & set(parts):
            write_blocks(work / "blocks", args.megabytes, random.Random(1))
        for part in parts:
            kept &= {"cp": against_cp, "growth": growth, "peer": against_peer}[part](args, work)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
