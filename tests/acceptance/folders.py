"""Checkpoints that are folders: kills at random moments, parts that are killed, peak memory.

    python tests/acceptance/folders.py [--binary FILE] [--work DIR] [--times 50] [--megabytes 192] [--only PART,..]

Outside CI, where a short run is part of crates/cli/tests. Linux (`/proc`), Python 3.11 or later, standard library only.
Promises tested: docs/interfaces.md §4.2, docs/spec/checkpoints.md §2.8 and §2.9.

- kills: a conversion is killed with SIGKILL at a moment drawn uniformly from its measured duration and resumed, `--times`
  times, with changing threads and memory; every third begins anew. At each moment every shard that has its
  name is complete, and index and configuration are absent unless all shards are there. In the end the folder is that of an
  undisturbed run, byte for byte, and verified.
- parts: four processes at once with --part, of which two are killed and started again; the folder is the same.
- memory: a block-scaled fp8 tensor and a plain one that are larger than all buffers, with --max-memory 32MiB; the peak
  resident set (VmHWM) minus that of `truecast formats` is at most 64 MiB.

Exit code 1 if a promise is broken.
"""

import argparse
import hashlib
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from processes import MIB, add_binary, idle_kib, peak_kib, run

MEMORY_LIMIT_MIB = 64
SHARDS = 12
PARTS = ["kills", "parts", "memory"]


def write_shard(path: Path, tensors: list[tuple[str, str, list[int], int]], block: bytes) -> None:
    """Tensors as (name, dtype, shape, bytes), their data made of a block."""
    header, offset = {}, 0
    for name, dtype, shape, size in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _, _, _, size in tensors:
            while size:
                size -= file.write(block[:size])


def write_checkpoint(folder: Path, megabytes: int, rng: random.Random) -> None:
    """Shards of f32 weights with an index, a configuration and a tokenizer; one of norms, which has another's index."""
    folder.mkdir()
    block = bytearray(rng.randbytes(MIB))
    block[3::4] = bytes(0x3E | (b & 0x81) for b in block[3::4])
    rows = megabytes * MIB // SHARDS // 4096
    weight_map = {}
    for shard in range(SHARDS):
        name = f"model-{shard + 1:05}-of-{SHARDS:06}.safetensors"
        write_shard(folder / name, [(f"layer.{shard}.weight", "F32", [rows, 1024], rows * 4096)], bytes(block))
        weight_map[f"layer.{shard}.weight"] = name
    index = {"metadata": {"total_size": 0}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "config.json").write_text(json.dumps({"torch_dtype": "float32"}, indent=2))
    (folder / "tokenizer.json").write_text("{}")


def tree(folder: Path) -> dict[str, str]:
    """The digest of every file."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


class Folders:
    def __init__(self, binary: Path, work: Path, megabytes: int, rng: random.Random):
        self.binary, self.work, self.random = binary, work, rng
        self.source, self.out = work / "source", work / "out"
        write_checkpoint(self.source, megabytes, rng)
        begin = time.perf_counter()
        run(*self.command(work / "whole"))
        self.duration = time.perf_counter() - begin
        run(binary, "verify", self.source, work / "whole", "--full")
        self.expected = tree(work / "whole")

    def command(self, out: Path, *more) -> list[str]:
        return [str(c) for c in (self.binary, "convert", self.source, out, "--to", "bf16", "--quiet", *more)]

    def is_sound(self) -> None:
        """What has its name is complete, and nothing loads that is not."""
        if not self.out.exists():
            return
        shards = [path for path in self.out.glob("*.safetensors") if not path.name.startswith(".")]
        for path in shards:
            found = hashlib.sha256(path.read_bytes()).hexdigest()
            assert found == self.expected[path.name], f"{path.name} has its name and is not complete"
        if len(shards) < SHARDS:
            for name in ("config.json", "model.safetensors.index.json"):
                assert not (self.out / name).exists(), f"{name} beside {len(shards)} of {SHARDS} shards"

    def kills(self, times: int) -> None:
        killed = 0
        for i in range(times):
            threads, memory = self.random.choice([1, 2, 3]), self.random.choice(["2MiB", "8MiB", "256MiB"])
            command = self.command(self.out, "--resume", "--threads", threads, "--max-memory", memory)
            with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
                time.sleep(self.random.uniform(0, self.duration))
                process.kill()
                killed += process.wait() != 0
            self.is_sound()
            if i % 3 == 2:
                run(*self.command(self.out, "--resume"))
                assert tree(self.out) == self.expected, "the resumed folder differs"
                shutil.rmtree(self.out)
        run(*self.command(self.out, "--resume"))
        assert tree(self.out) == self.expected, "the resumed folder differs"
        run(self.binary, "verify", self.source, self.out, "--full")
        shutil.rmtree(self.out)
        print(f"kills   {times} runs, {killed} killed: sound at each moment, the same bytes in the end")

    def parts(self, times: int) -> None:
        for _ in range(max(1, times // 10)):
            part = lambda number: self.command(self.out, "--part", f"{number}/4", "--resume", "--threads", 1)
            processes = [subprocess.Popen(part(number)) for number in range(1, 5)]
            time.sleep(self.random.uniform(0, self.duration))
            for process in processes[1::2]:
                process.kill()
            for number, process in enumerate(processes, 1):
                assert process.wait() == 0 or number % 2 == 0, f"part {number}"
            self.is_sound()
            for number in (2, 4):
                run(*part(number))
            assert tree(self.out) == self.expected, "the folder of parts differs"
            shutil.rmtree(self.out)
        print("parts   four processes, two of them killed: the same bytes")

    def memory(self) -> None:
        quantized = self.work / "quantized"
        quantized.mkdir()
        rows, columns = 32768, 16384
        block = self.random.randbytes(MIB)
        scales = b"".join(b"\x00\x00\x80\x3c" for _ in range(rows // 128 * columns // 128))
        tensors = [
            ("a.weight", "F8_E4M3", [rows, columns], rows * columns),
            ("b.weight", "BF16", [rows * 4096], rows * 8192),
        ]
        write_shard(quantized / "model.safetensors", tensors, block)
        # Tensors of another file, as large checkpoints have them.
        write_shard(
            quantized / "scales.safetensors",
            [("a.weight_scale_inv", "F32", [rows // 128, columns // 128], len(scales))],
            scales,
        )
        names = {"a.weight": "model", "b.weight": "model", "a.weight_scale_inv": "scales"}
        weight_map = {name: f"{shard}.safetensors" for name, shard in names.items()}
        (quantized / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
        config = {"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}
        (quantized / "config.json").write_text(json.dumps(config))
        limits = ["--max-memory", "32MiB", "--quiet"]
        idle = idle_kib(self.binary)
        peak = peak_kib(self.binary, "convert", quantized, self.out, "--to", "f16", *limits)
        more = (peak - idle) / 1024
        print(f"memory  {more:.1f} MiB above {idle / 1024:.1f} MiB; the limit is {MEMORY_LIMIT_MIB} MiB")
        assert more <= MEMORY_LIMIT_MIB, "too much memory"
        shutil.rmtree(self.out)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_binary(parser)
    parser.add_argument("--work", type=Path, default=None, help="where to work; default a temporary folder")
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--megabytes", type=int, default=192)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--only", default=",".join(PARTS))
    args = parser.parse_args()
    print(f"seed {args.seed}")
    with tempfile.TemporaryDirectory(dir=args.work) as work:
        folders = Folders(args.binary, Path(work), args.megabytes, random.Random(args.seed))
        for part in args.only.split(","):
            {"kills": lambda: folders.kills(args.times), "parts": lambda: folders.parts(args.times)}.get(
                part, folders.memory
            )()
    return 0


if __name__ == "__main__":
    sys.exit(main())
