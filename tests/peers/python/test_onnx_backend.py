"""ONNX's own backend tests of Cast and CastLike, run by `truecast.onnx.Backend`."""

import onnx.backend.test
import truecast as tc

_TESTS = onnx.backend.test.BackendTest(tc.onnx.Backend, __name__)
_TESTS.include(r"^test_cast_.*")
_TESTS.include(r"^test_castlike_.*")
# A release leaves it to the implementation whether float6 and float4 have a NaN code; see docs/spec/onnx.md section 5.
globals().update(_TESTS.enable_report().test_cases)


def test_there_are_enough_of_them():
    names = [name for case in _TESTS.test_cases.values() for name in dir(case) if name.startswith("test_cast")]
    assert len(names) > 100
