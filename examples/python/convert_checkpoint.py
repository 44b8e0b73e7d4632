"""A checkpoint to fp8: rules, what each tensor lost, proof.

    python convert_checkpoint.py [model.safetensors [small.safetensors]]
"""

import sys
import tempfile
from pathlib import Path

import truecast as tc

source = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[2] / "testdata" / "minilm-cut.safetensors"
with tempfile.TemporaryDirectory() as folder:
    small = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(folder) / "small.safetensors"

    # Everything to fp8 but the LayerNorms; biases to bf16.
    report = tc.convert(source, small, "f8e4m3fn", keep=["*LayerNorm*"], rules=[("*.bias", "bf16")])
    print(report)

    # The rows are ready for pandas.DataFrame or polars.DataFrame.
    rows = report.to_dict()
    worst = min(zip(rows["sqnr_db"], rows["name"]))
    print(f"the most noise has {worst[1]}: {worst[0]:.1f} dB")

    # Recomputed by code that shares nothing with what converted.
    proof = tc.verify(source, small, report=report)
    print(proof)
    assert proof
