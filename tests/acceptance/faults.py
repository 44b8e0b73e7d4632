"""Makes system calls fail, kills at system calls, sends signals and runs two processes at once, and compares folders.

    python tests/acceptance/faults.py [--binary FILE] [--python PYTHON] [--seconds N] [--seed N] [--only NAME,..]

Linux, strace, Python 3.11 or later, standard library only. Everything takes about an hour; `--seconds` samples it at
random, as tests/python/test_files.py does. PYTHON is one with the package of truecast: its convert is tested too.
Promises tested: docs/interfaces.md §4, §4.2, §5 (its end) and docs/spec/checkpoints.md §2.8, §2.9.

Of each job every system call of FAULTS is made to fail once with each of ERRORS, the process is killed before each, and
asked to end before each. Then:

- the source is what it was;
- the destination is what it was, or complete; files that belong together are so together, but after KILL (each is);
- exit code 0 says complete, with no other name beside it; any other code says one line, and leaves nothing but a folder
  that the next run, with --resume where the folder was begun, makes complete;
- after that nothing is left of the run that failed.
"""

import argparse
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from checkpoints import create_model_f32

ROOT = Path(__file__).resolve().parents[2]
ERRORS = ["EIO", "ENOSPC", "EINTR", "ENOMEM"]
FAULTS = (
    "open openat stat lstat newfstatat statx fstat readlink readlinkat getdents64 read pread64 write pwrite64 lseek "
    "fallocate fsync fdatasync ftruncate link linkat rename renameat renameat2 unlink unlinkat mkdir mkdirat rmdir "
    "fchmod chmod flock"
).split()
# Unwinding to a default action is not this program's.
DEFAULT = lambda: [signal.signal(s, signal.SIG_DFL) for s in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)]

# It comes after the result (docs/interfaces.md §5).
REPORT = "o.json"

Tree = dict[str, bytes]


def tree(folder: Path) -> Tree:
    """The bytes of every file below a folder, by its path there; an empty folder's path ends in a slash."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() or not any(path.iterdir())]
    name = lambda path: str(path.relative_to(folder)) + ("/" if path.is_dir() else "")
    return {name(path): b"" if path.is_dir() else path.read_bytes() for path in paths}


def restore(folder: Path, files: Tree) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, data in files.items():
        path = folder / name
        if name.endswith("/"):
            path.mkdir(parents=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def is_hidden(name: str) -> bool:
    return any(part.startswith(".") for part in Path(name).parts)


@dataclass
class Job:
    """A command, the files before it, and what it writes."""

    name: str
    words: list[str]
    before: Tree
    # Paths that begin with one of these are the destination.
    written: tuple[str, ...]
    is_folder: bool = False
    python: str | None = None
    # System calls of the same kind that only start the interpreter.
    skipped: Counter = field(default_factory=Counter)

    def result(self, files: Tree) -> Tree:
        return {name: data for name, data in files.items() if name.startswith(self.written)}

    def source(self, files: Tree) -> Tree:
        return {name: data for name, data in files.items() if not name.startswith(self.written) and not is_hidden(name)}


class Driver:
    def __init__(self, binary: Path, folder: Path, seed: int, python: str | None):
        self.binary, self.folder, self.python = str(Path(binary).resolve()), folder, python
        self.random = random.Random(seed)
        self.runs: Counter = Counter()
        self.findings: list[str] = []

    def run(self, job: Job, *more: str, strace: list[str] | None = None) -> subprocess.CompletedProcess:
        """Runs a job in its folder, under strace with these options if there are any."""
        if job.python:
            code = "import sys, truecast; truecast.convert('src', 'dst', to='bf16', existing='replace', sidecars=True)"
            code = code.replace("existing='replace', sidecars=True", "force=True" + (", resume=True" if more else ""))
            command = [job.python, "-c", code]
        else:
            command = [self.binary, *job.words, *more]
        traced = ["strace", "-f", "-qq", "-o", str(self.folder / "log"), *strace] if strace else []
        self.runs["runs"] += 1
        return subprocess.run(
            [*traced, *command], cwd=self.folder / "at", stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
            preexec_fn=DEFAULT,
        )  # fmt: skip

    def calls(self, job: Job) -> Counter:
        """How often an undisturbed run makes each system call."""
        log = self.folder / "log"

        def count(command: list[str]) -> Counter:
            traced = ["strace", "-f", "-qq", "-o", str(log), "-e", "trace=" + ",".join("?" + f for f in FAULTS)]
            subprocess.run([*traced, *command], cwd=self.folder / "at", capture_output=True, check=True)
            return Counter(re.findall(r"^\d+ +(\w+)\(", log.read_text(errors="replace"), re.M))

        restore(self.folder / "at", job.before)
        if not job.python:
            return count([self.binary, *job.words])
        job.skipped = count([job.python, "-c", "import truecast"])
        code = "import truecast; truecast.convert('src', 'dst', to='bf16', force=True)"
        return count([job.python, "-c", code])

    def injections(self, job: Job) -> list[tuple[Job, str, str, int]]:
        calls = self.calls(job)
        found = []
        for call, times in calls.items():
            for at in range(job.skipped[call] + 1, times + 1):
                found += [(job, call, f"error={error}", at) for error in ERRORS]
                found += [(job, call, f"signal={name}", at) for name in ("KILL", "TERM")]
        return found

    def expect(self, job: Job) -> Tree:
        """What the undisturbed job leaves."""
        restore(self.folder / "at", job.before)
        done = self.run(job)
        assert done.returncode == 0, done.stderr.decode()
        files = tree(self.folder / "at")
        assert not any(map(is_hidden, files)), list(files)
        return files

    def inject(self, job: Job, new: Tree, call: str, what: str, at: int) -> None:
        restore(self.folder / "at", job.before)
        self.runs[what] += 1
        where = f"{job.name}: {call} {what} at {at}"
        try:
            done = self.run(job, strace=["-e", f"inject={call}:{what}:when={at}"])
        except subprocess.TimeoutExpired:
            self.findings.append(f"{where}: has not ended")
            return
        # truecast sets no signal handler in somebody else's program: TERM ends Python's process as KILL does.
        was_killed = "KILL" in what or job.python is not None and done.returncode == -signal.SIGTERM
        # strace counts the calls of each thread, so that one injection may also hit the write of the message.
        log = (self.folder / "log").read_text(errors="replace")
        if re.search(r"\bwrite\(2, .*\(INJECTED\)", log) and done.returncode != 0:
            self.runs["messages that could not be written"] += 1
            done.stderr = b"truecast: (not written)"
        self.judge(job, new, where, done.returncode, done.stderr.decode(errors="replace"), was_killed)

    def judge(self, job: Job, new: Tree, where: str, code: int, said: str, was_killed: bool) -> None:
        def wrong(why: str) -> None:
            self.findings.append(f"{where}: exit {code}: {why}; {said.strip()[:200]!r}; {sorted(found)}")

        found = tree(self.folder / "at")
        lines = [line for line in said.splitlines() if line.strip()]
        ended_by_system = code < 0 or code in (127, 128 + 9, 128 + 15)
        if job.source(found) != job.source(job.before):
            return wrong("the source was changed")
        # A killed run may leave the folder that it made for its files.
        made = lambda name: name.endswith("/") and not is_hidden(name) and was_killed
        shown = {name: data for name, data in job.result(found).items() if not is_hidden(name) and not made(name)}
        old, full = job.result(job.before), job.result(new)
        hidden = [name for name in found if is_hidden(name)]
        if code == 0:
            if found != new:
                wrong("success with a wrong result")
            return
        if "panicked" in said:
            return wrong("a panic")
        if not ended_by_system and not job.python and len([line for line in lines if "warning" not in line]) != 1:
            return wrong("not one line")
        if not job.is_folder:
            if was_killed:
                whole = lambda name, data: data == old.get(name) or data == full.get(name)
                if not all(whole(name, data) for name, data in shown.items()):
                    return wrong("a file is neither old nor new")
            elif shown not in (old, full, {name: data for name, data in full.items() if name != REPORT}):
                return wrong("neither old nor new")
            if hidden and not was_killed:
                return wrong("a temporary name is left")
        begun = bool(hidden) or (shown != old and shown != full)
        if job.is_folder and begun and not was_killed and any(name.endswith(".truecast-tmp") for name in hidden):
            return wrong("a temporary name is left")
        if shown == full and not hidden:
            return
        again = ["--resume"] if job.is_folder and self.is_begun() else []
        if not job.is_folder and shown and "--force" not in job.words:
            again = ["--force"]
        done = self.run(job, *(word for word in again if word not in job.words))
        after = tree(self.folder / "at")
        if was_killed and job.name.startswith("ONNX"):
            # Data that a killed run had put in its place stay; the model has its own.
            words = [self.binary, "verify", job.words[1], job.words[2], *job.words[3:5], "--quiet"]
            done = subprocess.run(words, cwd=self.folder / "at", capture_output=True)
            after = new
        if done.returncode != 0 or after != new:
            said = done.stderr.decode(errors="replace")
            found = after
            wrong(f"then {again}: exit {done.returncode}")

    def is_begun(self) -> bool:
        manifest = self.folder / "at" / "dst" / "truecast-manifest.json"
        staged = self.folder / "at" / "dst" / ".truecast-new" / "truecast-manifest.json"
        is_whole = manifest.exists() and b'"complete": true' in manifest.read_bytes()
        return staged.exists() or (manifest.exists() and not is_whole)

    def signals(self, tries: int, seconds: float) -> None:
        """TERM, HUP and INT while the 60 results of one run take their places: all are old or all are new."""
        at = self.folder / "signals"
        at.mkdir()

        def module(name: str, value: str) -> None:
            casts = "".join(f" %a{i} = ftof %c : tile<64xf64> -> tile<64xf32>\n" for i in range(60))
            text = f"entry @k() {{\n %c = constant <f64: {value}> : tile<64xf64>\n{casts} return\n}}\n"
            (at / name).write_text(text)

        module("a.mlir", "1.5")
        module("b.mlir", "2.5")
        run = lambda src, dst: [self.binary, "run", src, "--output-dir", dst, "--quiet", "--force"]
        subprocess.run(run("a.mlir", "old"), cwd=at, check=True)
        old = tree(at / "old")
        shutil.copytree(at / "old", at / "x")
        begin = time.perf_counter()
        subprocess.run(run("b.mlir", "x"), cwd=at, check=True)
        duration, new = time.perf_counter() - begin, tree(at / "x")
        assert len(new) == 60 and all(new[name] != old[name] for name in new)
        end = time.perf_counter() + seconds
        for i in range(tries):
            if time.perf_counter() > end:
                break
            restore(at / "x", old)
            number = [signal.SIGTERM, signal.SIGHUP, signal.SIGINT][i % 3]
            with subprocess.Popen(run("b.mlir", "x"), cwd=at, stderr=subprocess.PIPE, preexec_fn=DEFAULT) as process:
                time.sleep(self.random.uniform(0.1 * duration, 1.1 * duration))
                process.send_signal(number)
                said = process.communicate()[1].decode()
            self.runs["signals while results are placed"] += 1
            found = tree(at / "x")
            silent = process.returncode == 4 and len(said.splitlines()) != 1
            if found not in (old, new) or silent or (process.returncode == 0 and found != new):
                hidden = [name for name in found if is_hidden(name)]
                self.findings.append(f"{number.name} to run: exit {process.returncode}, {said!r}, hidden {hidden}")

    def two(self, tries: int, seconds: float) -> None:
        """Two processes write into one folder: what stands is of one of them, and who says 0 and was last has it."""
        at = self.folder / "two"
        restore(at, folder_files())
        run = lambda to, dst="dst": [self.binary, "convert", "src", dst, "--to", to, "--force", "--quiet"]
        wanted = []
        for to in ("bf16", "f16"):
            subprocess.run(run(to, to), cwd=at, check=True)
            wanted.append(tree(at / to))
        end = time.perf_counter() + seconds
        for _ in range(tries):
            if time.perf_counter() > end:
                break
            shutil.rmtree(at / "dst", ignore_errors=True)
            started = [subprocess.Popen(run(to), cwd=at, stderr=subprocess.DEVNULL) for to in ("bf16", "f16")]
            codes = [process.wait() for process in started]
            self.runs["two processes"] += 1
            found = tree(at / "dst")
            ends = [wanted[i] for i in (0, 1) if codes[i] == 0]
            if not ends or found not in ends or not set(codes) <= {0, 2}:
                self.findings.append(f"two processes: exit {codes}, {sorted(found)}")


def safetensors(seed: int, names: list[str], rows: int = 8) -> bytes:
    """A file of f32 matrices of 32 columns."""
    size, values = 4 * 32 * rows, random.Random(seed)
    place = lambda i: {"dtype": "F32", "shape": [rows, 32], "data_offsets": [i * size, (i + 1) * size]}
    header = json.dumps({name: place(i) for i, name in enumerate(names)}).encode()
    floats = [values.gauss(0, 0.02) for _ in range(32 * rows * len(names))]
    return len(header).to_bytes(8, "little") + header + struct.pack(f"<{len(floats)}f", *floats)


def folder_files() -> Tree:
    index = {f"t{i}": f"a{i}.safetensors" for i in range(3)}
    text = '{"weight_map": {' + ", ".join(f'"{k}": "{v}"' for k, v in index.items()) + "}}"
    shards = {f"src/a{i}.safetensors": safetensors(i, [f"t{i}"]) for i in range(3)}
    config = {"src/config.json": b'{"torch_dtype": "float32"}', "src/code/x.py": b"1", "src/tok.json": b"{}"}
    return {**shards, **config, "src/model.safetensors.index.json": text.encode()}


def jobs(driver: Driver) -> list[Job]:
    """The jobs of which everything is tried. Those with --force replace the result of another one."""

    def after(before: Tree, *words: str) -> Tree:
        restore(driver.folder / "at", before)
        subprocess.run([driver.binary, *words, "--quiet"], cwd=driver.folder / "at", check=True)
        return tree(driver.folder / "at")

    files = folder_files()
    one = {"a.safetensors": safetensors(7, ["w", "v"])}
    with tempfile.TemporaryDirectory() as folder:
        with create_model_f32(Path(folder) / "m.onnx", [("w", 8192)], "m.data") as data:
            data.write(safetensors(9, ["x"], 64)[-8192:])
        model = tree(Path(folder))
    header = b"{'descr': '<i4', 'fortran_order': False, 'shape': (64,), }"
    header += b" " * (117 - len(header)) + b"\n"
    array = {"a.npy": b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(range(256))}
    module = "entry @k() {\n %c = constant <f64: 1.5> : tile<64xf64>\n"
    module += "".join(f" %a{i} = ftof %c : tile<64xf64> -> tile<64xf32>\n" for i in range(4)) + " return\n}\n"
    tile = {"m.mlir": module.encode()}
    to = lambda dtype: ["--to", dtype]
    scheme = ["--scheme", "fp8-block:32x32", "--quantize", "*"]
    rescale = ["rescale", "a.npy", "o.npy", "--to", "i8", "--multiplier", "1073741824", "--shift", "40", "--scale32"]
    vectors = ["vectors", "cast", "--from", "f8e4m3fn", "--to", "f16", "--format", "npy", "-o", "o"]
    folder = ["convert", "src", "dst"]
    half = after(files, *folder, *to("f16"))
    late = ["dst/a2.safetensors", "dst/config.json", "dst/model.safetensors.index.json"]
    begun = {name: data for name, data in half.items() if name not in late}
    manifest = begun["dst/truecast-manifest.json"].replace(b'"complete": true', b'"complete": false')
    begun["dst/truecast-manifest.json"] = manifest
    all_jobs = [
        Job("file", ["convert", "a.safetensors", "o.safetensors", *to("bf16")], one, ("o.",)),
        Job("npz", ["convert", "a.safetensors", "o.npz", *to("f16"), "--report", REPORT], one, ("o.",)),
        Job("file over another", ["convert", "a.safetensors", "o.safetensors", *to("bf16"), "--force"],
            after(one, "convert", "a.safetensors", "o.safetensors", *to("f16")), ("o.",)),
        Job("GGUF", ["convert", "a.safetensors", "o.gguf", "--scheme", "gguf:Q8_0", "--quantize", "*", "--force"],
            {**one, "o.gguf": b"old"}, ("o.",)),
        Job("ONNX with external data", ["convert", "m.onnx", "o.onnx", *to("bf16")], model, ("o.",)),
        Job("ONNX over another", ["convert", "m.onnx", "o.onnx", *to("bf16"), "--force"],
            after(model, "convert", "m.onnx", "o.onnx", *to("f16")), ("o.",)),
        Job("folder", [*folder, *to("bf16")], files, ("dst/",), is_folder=True),
        Job("folder over another", [*folder, *to("bf16"), "--force"], half, ("dst/",), is_folder=True),
        Job("folder, quantized", [*folder, *scheme], files, ("dst/",), is_folder=True),
        Job("folder, resumed", [*folder, *to("f16"), "--resume"], begun, ("dst/",), is_folder=True),
        Job("run", ["run", "m.mlir", "--output-dir", "o"], tile, ("o/",)),
        Job("run over others", ["run", "m.mlir", "--output-dir", "o", "--force"],
            {**tile, "o/keep": b"", "o/a1.npy": b"old"}, ("o/",)),
        Job("rescale", rescale, array, ("o.",)),
        Job("vectors", [*vectors, "--force"], {"o.input.npy": b"old"}, ("o.",)),
    ]  # fmt: skip
    if driver.python:
        all_jobs.append(Job("Python's convert", [], half, ("dst/",), is_folder=True, python=driver.python))
    return all_jobs


def campaign(binary: Path, folder: Path, seconds: float, seed: int = 1, python: str | None = None, only: str = "") -> Driver:
    """Everything within `seconds`, in an order drawn at random; a quarter of them for what needs no strace."""
    driver = Driver(binary, folder, seed, python)
    end = time.perf_counter() + seconds
    if not only:
        driver.signals(1000, seconds / 6)
        driver.two(150, seconds / 12)
    if shutil.which("strace"):
        chosen = [job for job in jobs(driver) if not only or any(word in job.name for word in only.split(","))]
        wanted = {job.name: driver.expect(job) for job in chosen}
        injections = [one for job in chosen for one in driver.injections(job)]
        driver.random.shuffle(injections)
        driver.runs["injections there are"] = len(injections)
        for job, call, what, at in injections:
            if time.perf_counter() > end:
                break
            driver.inject(job, wanted[job.name], call, what, at)
    return driver


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, default=ROOT / "target/release/truecast")
    # A link is kept: an interpreter finds its packages by the name that it was called by.
    parser.add_argument("--python", type=lambda path: str(Path(path).absolute()))
    parser.add_argument("--seconds", type=float, default=2 * 3600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="words of the names of jobs, with commas")
    args = parser.parse_args()
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        driver = campaign(args.binary, Path(folder), args.seconds, args.seed, args.python, args.only)
    for finding in driver.findings:
        print(finding)
    print(", ".join(f"{what}: {n}" for what, n in driver.runs.items()), f"; findings: {len(driver.findings)}")
    sys.exit(bool(driver.findings))


if __name__ == "__main__":
    main()
