"""What the acceptance scripts share: the binary, processes with their time and memory, and tables."""

import argparse
import os
import resource
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
MIB = 1 << 20


def add_binary(parser: argparse.ArgumentParser) -> None:
    default = Path(os.environ.get("TRUECAST_BIN", TARGET / "release" / "truecast"))
    parser.add_argument("--binary", type=lambda path: Path(path).resolve(), default=default.resolve())


def run(*command) -> str:
    command = [str(c) for c in command]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


@dataclass(frozen=True, order=True)
class Seconds:
    """What commands took; ordered by wall time."""

    wall: float
    user: float
    system: float

    @property
    def processor(self) -> float:
        return self.user + self.system


def seconds(*commands) -> Seconds:
    """The time of commands run one after the other."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    for command in commands:
        subprocess.run([str(c) for c in command], check=True, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Seconds(wall, after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime)


def peak_kib(*command) -> int:
    """VmHWM of a process, read again and again until it ends; it only ever grows.

    Not ru_maxrss of wait4: that one includes what the parent, this interpreter, had resident before exec.
    """
    process = subprocess.Popen([str(c) for c in command], stdout=subprocess.DEVNULL)
    peak = 0
    try:
        own_image = f"/proc/{process.pid}/exe"
        while process.poll() is None:
            try:
                if os.path.realpath(own_image) != os.path.realpath(command[0]):
                    continue  # before exec
                with open(f"/proc/{process.pid}/status") as status:
                    for line in status:
                        if line.startswith("VmHWM:"):
                            peak = max(peak, int(line.split()[1]))
            except (FileNotFoundError, ProcessLookupError):
                break
            time.sleep(0.0002)
    finally:
        process.wait()
    assert process.returncode == 0, command
    return peak


def idle_kib(binary: Path) -> int:
    """What the program has resident before it converts anything."""
    return max(peak_kib(binary, "formats") for _ in range(20))


def warn_if_busy() -> None:
    busy, cores = os.getloadavg()[0], os.cpu_count()
    print(f"load average {busy:.1f} on {cores} cores")
    if busy > cores / 4:
        print("the machine is busy: times and ratios are not to be trusted")


def print_table(rows: list[dict[str, str]], text_columns: set[str]) -> None:
    columns = list(rows[0])
    cells = [columns] + [[str(row[c]) for c in columns] for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    for line in cells:
        pairs = zip(columns, line, widths, strict=True)
        print("  ".join(f"{v:<{w}}" if c in text_columns else f"{v:>{w}}" for c, v, w in pairs).rstrip())
