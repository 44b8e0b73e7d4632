"""The faults of these programs, each asked again: `faults.toml`. That the right results are truecast's is tested where the
page docs/disagreements.md is made of it.
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from witness import Absent, expected, faults, given  # noqa: E402


@pytest.mark.parametrize("fault", faults("torch", "ml_dtypes", "jax"))
def test_packages(fault):
    assert given(fault) == expected(fault)


@pytest.mark.parametrize("fault", faults("clang", "mlir", "hip"))
def test_compilers(fault):
    try:
        codes = given(fault)
    except Absent:
        pytest.skip(f"{fault['program']} is not installed (README.md)")
    assert codes == expected(fault)
