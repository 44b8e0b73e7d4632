"""The bytes of safetensors and .npy files, read and written by hand.

So that what truecast reads was not written by the package that also judges its output, and element codes survive
untouched (NumPy and safetensors know few of the narrow types). Not here: shards, .npz, validation.
Layout: docs/spec/checkpoints.md §1 and docs/interfaces.md §1 (packed elements are LSB first and contiguous).
"""

import ast
import json
from pathlib import Path

import numpy as np
from dtypes import TYPES, Type

BY_SAFETENSORS = {t.safetensors: t for t in TYPES.values() if t.safetensors}


def pack(array: np.ndarray, t: Type) -> bytes:
    """Element codes in t.bits each, LSB first."""
    codes = t.codes(array)
    if t.bits in (8, 16, 32, 64):
        return codes.astype(t.uint.newbyteorder("<")).tobytes()
    bits = (codes[:, None] >> np.arange(t.bits, dtype=codes.dtype)) & 1
    return np.packbits(bits.astype(np.uint8).reshape(-1), bitorder="little").tobytes()


def unpack(data: bytes, t: Type, n: int) -> np.ndarray:
    """The inverse of `pack`."""
    if t.bits in (8, 16, 32, 64):
        return t.from_codes(np.frombuffer(data, dtype=t.uint.newbyteorder("<"), count=n).astype(t.uint))
    bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8), bitorder="little")[: n * t.bits].reshape(n, t.bits)
    return t.from_codes((bits.astype(t.uint) << np.arange(t.bits, dtype=t.uint)).sum(axis=1, dtype=t.uint))


def write_safetensors(path: Path, tensors: dict[str, tuple[Type, np.ndarray]], metadata=None, pad: bool = True) -> Path:
    """Tensors in the order given."""
    header, parts, offset = {}, [], 0
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, (t, array) in tensors.items():
        data = pack(array, t)
        span = [offset, offset + len(data)]
        header[name] = {"dtype": t.safetensors, "shape": list(array.shape), "data_offsets": span}
        offset += len(data)
        parts.append(data)
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    if pad:
        text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(parts))
    return path


def read_safetensors(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str], list[str]]:
    """Tensors by name in data order, metadata, and the names in the order of the header."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    metadata = header.pop("__metadata__", {})
    payload = data[8 + length :]
    tensors = {}
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        t = BY_SAFETENSORS[entry["dtype"]]
        begin, end = entry["data_offsets"]
        n = int(np.prod(entry["shape"], dtype=np.int64))
        assert (end - begin) * 8 == n * t.bits, name
        tensors[name] = unpack(payload[begin:end], t, n).reshape(entry["shape"])
    return tensors, metadata, list(header)


def payload_start(path: Path) -> int:
    """Offset of the first element in a .safetensors or .npy file."""
    data = path.read_bytes()
    if path.suffix == ".safetensors":
        return 8 + int.from_bytes(data[:8], "little")
    assert data[:6] == b"\x93NUMPY", path
    return 10 + int.from_bytes(data[8:10], "little") if data[6] == 1 else 12 + int.from_bytes(data[8:12], "little")


def write_npy(path: Path, array: np.ndarray) -> Path:
    """As NumPy writes it, ml_dtypes arrays included."""
    np.save(path, array)
    return path


def read_npy(path: Path, t: Type) -> tuple[np.ndarray, str]:
    """An array with one element of `t` per item, and the descriptor in its header."""
    data = path.read_bytes()
    start = payload_start(path)
    header = ast.literal_eval(data[10 if data[6] == 1 else 12 : start].decode())
    assert header["fortran_order"] is False
    array = np.frombuffer(data, dtype=t.uint.newbyteorder("<"), offset=start).astype(t.uint).view(t.numpy)
    return array.reshape(header["shape"]), header["descr"]
