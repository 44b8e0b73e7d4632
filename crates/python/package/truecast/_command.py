"""The command ``truecast``: the same program as ``cargo install`` gives, in this package's extension."""

import signal
import sys

from . import _truecast


def main() -> int:
    """Runs the command with ``sys.argv`` and returns its exit code."""
    # Python catches Ctrl-C for itself; the command has its own way with it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _truecast.main(["truecast", *sys.argv[1:]])
