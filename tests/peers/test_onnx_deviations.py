"""Where the peers deviate from the rules: a witness for each row of docs/spec/onnx.md §5 (and §4.5) that
`test_onnx_cast.py` cuts out, from `faults.toml`. One that no longer holds means that a peer has changed, and its row
should go.
"""

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from dtypes import TYPES
from test_onnx_cast import Files
from witness import attributes, expected, faults, given


def test_versions():
    assert (onnx.__version__, ml_dtypes.__version__, np.__version__) == ("1.23.2", "0.6.0", "2.4.6")
    assert onnxruntime.__version__ == "1.31.1"


@pytest.mark.parametrize("fault", faults("reference", "onnxruntime"))
def test_witness(truecast, tmp_path, fault):
    source, to, codes = TYPES[fault["from"]], TYPES[fault["to"]], np.array([int(fault["input"], 16)], np.uint64)
    (ours,) = Files(truecast, tmp_path).cast(source, to, codes, attributes(fault))
    assert (given(fault), int(ours)) == (expected(fault), int(fault["right"], 16))
