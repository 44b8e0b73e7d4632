"""Measures truecast and its peers on this machine; writes its page in results/, and BENCHMARKS.md. Started by `run`."""

import argparse
import datetime
import importlib.metadata
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

# Threads that wait for work would take time from whoever's turn it is.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import arrays  # noqa: E402
import contenders  # noqa: E402
import overview  # noqa: E402
import own  # noqa: E402
import race  # noqa: E402
import report  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="run", description=__doc__)
    parser.add_argument("--pairs", help="SRC:DST,.. (default: those of `truecast bench`)")
    parser.add_argument("--peers", default=",".join(contenders.PEERS), help="default: %(default)s; `none` for none")
    threads = "threads of truecast and every peer among the peers, or `all`; default %(default)s"
    parser.add_argument("--peer-threads", default="1", metavar="N", help=threads)
    parser.add_argument("--samples", type=int, default=7, metavar="N", help="the best of N counts; default %(default)s")
    size = "bytes of an array and its result that are out of cache, as `truecast bench` reads them; default %(default)s"
    parser.add_argument("--size", default="dram", help=size)
    parser.add_argument("--only-peers", action="store_true", help="leave out the tables of `truecast bench`")
    return parser.parse_args()


def main() -> None:
    args, cores, begin = arguments(), len(os.sched_getaffinity(0)), time.monotonic()
    sized = arrays.sizes(args.pairs, args.size)
    threads = cores if args.peer_threads == "all" else int(args.peer_threads)
    peers = {name: contenders.PEERS[name](threads) for name in args.peers.split(",") if name != "none"}
    rows = race.race(sized, peers, threads, args.samples)
    text = report.peers_table(rows, peers, threads)
    if not args.only_peers:
        measured = own.measure(sized, cores, args.samples, args.size)
        title = report.title(Path("/proc/cpuinfo").read_text(), measured["level"])
        facts = conditions(args, peers, measured["caches"], cores)
        text = report.page(title, facts, report.own_tables(measured, cores), text)
    print(text)
    print(f"{time.monotonic() - begin:.0f} s", file=sys.stderr)
    is_complete = args.peers == ",".join(contenders.PEERS) and args.samples >= 7 and threads == 1
    if is_complete and not (args.only_peers or args.pairs):
        (overview.RESULTS / overview.file_name(title)).write_text(text)
        overview.OUTPUT.write_text(overview.written())


def conditions(args: argparse.Namespace, peers: dict[str, object], caches: dict[str, int], cores: int) -> dict:
    """What was measured, and on what."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    versions = [f"{p} {importlib.metadata.version(p)}" for peer in peers.values() for p in peer.packages]
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "CPU": f"{cores} cores; L2 {report.size(caches['l2'])}, last-level cache {report.size(caches['llc'])}",
        "memory": report.size(memory),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "truecast": f"{said('git', 'describe', '--always', '--dirty')}, {said('rustc', '--version')}",
        "peers": f"Python {platform.python_version()}, {', '.join(versions)}",
        "out of cache": args.size,
        "method": f"best of {args.samples} samples, everyone in turns; "
        f"of {race.LONG_SAMPLES} for a peer whose pass takes more than {race.LONG_PASS} s",
    }


def said(*command: str) -> str:
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


if __name__ == "__main__":
    main()
