"""Safetensors files and ONNX models that the acceptance scripts make; standard library only."""

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


def create_model_f32(path: Path, tensors: Iterable[tuple[str, int]], data: str) -> BinaryIO:
    """A model whose initializers are two-dimensional f32 tensors in the new file of external data, which is returned;
    their data come next, without gaps. Nothing uses them."""
    initializers, offset = b"", 0
    for name, size in tensors:
        where = {"location": data, "offset": str(offset), "length": str(size)}
        entries = b"".join(_field(13, _field(1, key.encode()) + _field(2, value.encode())) for key, value in where.items())
        shape = _number(1, size // 4096) + _number(1, 1024)
        initializers += _field(5, shape + _number(2, 1) + _field(8, name.encode()) + entries + _number(14, 1))
        offset += size
    path.write_bytes(_number(1, 8) + _field(7, _field(2, b"weights") + initializers) + _field(8, _number(2, 17)))
    return open(path.with_name(data), "wb")


def _varint(value: int) -> bytes:
    return bytes([value]) if value < 0x80 else bytes([value & 0x7F | 0x80]) + _varint(value >> 7)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content
