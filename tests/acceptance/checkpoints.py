"""Safetensors files that the acceptance scripts make; standard library only."""

import json
from pathlib import Path
from typing import BinaryIO, Iterable


def create_f32(path: Path, tensors: Iterable[tuple[str, int]]) -> BinaryIO:
    """A new file with the header of one-dimensional f32 tensors, given as (name, bytes); their data come next."""
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, size in tensors:
        header[name] = {"dtype": "F32", "shape": [size // 4], "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    file = open(path, "wb")
    file.write(len(text).to_bytes(8, "little") + text)
    return file
