"""docs/disagreements.md is what its command writes, and the right result of each fault there is truecast's."""

import os
import subprocess
import sys

from command import ROOT, binary


def test_the_page_is_up_to_date():
    command = [sys.executable, ROOT / "tests/peers/matrix", "--check"]
    environment = os.environ | {"TRUECAST_BIN": str(binary())}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
