"""The command ``truecast``, also ``python -m truecast``: the program of ``cargo install``, in this package's extension."""

import signal
import sys

from . import _truecast


def main() -> int:
    """Runs the command with ``sys.argv`` and returns its exit code."""
    # Python catches Ctrl-C; the command handles it itself.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _truecast.main(["truecast", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
