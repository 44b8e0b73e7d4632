"""Checkpoints of other quantizers: read by their own declarations, or refused by name; what they leave next to weights.

Expected values are computed here from the formulas of docs/spec/checkpoints.md §4.16 to §4.19 in float32, step by step,
and rounded once to the result. No parameter of a model may get lost, whatever its name is (§5.5).
"""

import json
from pathlib import Path

import container
import ml_dtypes
import numpy as np
import pytest
from dtypes import TYPES

BF16 = ml_dtypes.bfloat16
F8 = ml_dtypes.float8_e4m3fn
BY_NUMPY = {t.numpy: t for t in TYPES.values() if t.safetensors and t.bits in (8, 16, 32, 64)}
RANDOM = np.random.default_rng(46)

NF4 = np.array([-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
                -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
                0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023,
                1.0], np.float32)  # fmt: skip
_FP4 = np.array([0, 0.0625, 8, 12, 4, 6, 2, 3], np.float32) / np.float32(12)
FP4 = np.concatenate([_FP4, -_FP4])
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
E2M1 = np.concatenate([E2M1, -E2M1])


def floats(*shape: int) -> np.ndarray:
    return RANDOM.uniform(0.001, 0.1, shape).astype(np.float32)


def codes(dtype, *shape: int) -> np.ndarray:
    return RANDOM.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)


def fp8(*shape: int) -> np.ndarray:
    return RANDOM.normal(0, 50, shape).astype(np.float32).astype(F8)


def write(folder: Path, tensors: dict[str, np.ndarray], config=None, metadata=None, **files) -> Path:
    """A checkpoint of one file, with a configuration and other JSON files."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(
        json.dumps({"model_type": "llama"} | ({"quantization_config": config} if config else {}))
    )
    for name, value in files.items():
        (folder / f"{name}.json").write_text(json.dumps(value))
    container.write_safetensors(
        folder / "model.safetensors", {n: (BY_NUMPY[a.dtype], a) for n, a in tensors.items()}, metadata
    )
    return folder


def read(folder: Path) -> dict[str, np.ndarray]:
    return container.read_safetensors(folder / "model.safetensors")[0]


def text(value) -> np.ndarray:
    return np.frombuffer(json.dumps(value).encode(), np.uint8).copy()


def check(truecast, path: Path, tensors, expected, config=None, options=(), **more) -> dict:
    """Converts to f32 and to bf16, verifies, compares all bits; the result holds nothing else."""
    for name, dtype in (("f32", np.float32), ("bf16", BF16)):
        source = write(path / f"source-{name}", tensors, config, **more)
        report = truecast.json("convert", source, path / name, "--to", name, *options)
        truecast("verify", source, path / name, "--to", name, *options)
        found = read(path / name)
        assert found.keys() == expected.keys()
        for key, values in expected.items():
            if values.dtype == np.float32:
                values = values.astype(dtype)
            assert found[key].dtype == values.dtype and found[key].shape == values.shape
            assert found[key].tobytes() == values.tobytes(), key
    return report


def error(truecast, path: Path, tensors, config=None, options=(), **more) -> str:
    """The message of a refusal; nothing is written."""
    source = write(path / "source", tensors, config, **more)
    done = truecast.run("convert", source, path / "out", "--to", "bf16", *options)
    assert done.returncode == 3 and not (path / "out").exists(), done.stderr
    return done.stderr.decode()


# bitsandbytes


@pytest.mark.parametrize("kind, table", [("nf4", NF4), ("fp4", FP4)])
@pytest.mark.parametrize(
    "shape, block, group",
    [
        ([32, 64], 64, None),
        ([6, 96], 64, None),
        ([3, 7], 64, None),
        ([32, 64], 64, 256),
        ([64, 512], 64, 256),
        ([9, 100], 32, 4),
    ],
)
def test_bitsandbytes_of_four_bits(truecast, tmp_path, kind, table, shape, block, group):
    n = int(np.prod(shape))
    blocks = -(-n // block)
    of_element = codes(np.uint8, n + n % 2) & 15
    state = {"quant_type": kind, "blocksize": block, "dtype": "bfloat16", "shape": shape}
    tensors = {"a.weight": (of_element[::2] << 4 | of_element[1::2])[:, None], "a.weight.quant_map": table}
    if group is None:
        absmax = tensors["a.weight.absmax"] = floats(blocks)
    else:
        book, second, offset = (
            np.sort(RANDOM.uniform(-1, 1, 256).astype(np.float32)),
            floats(-(-blocks // group)),
            np.float32(0.1322),
        )
        quantized = codes(np.uint8, blocks)
        state |= {"nested_blocksize": group, "nested_dtype": "float32", "nested_offset": float(offset)}
        tensors |= {"a.weight.absmax": quantized, "a.weight.nested_absmax": second, "a.weight.nested_quant_map": book}
        absmax = book[quantized] * second.repeat(group)[:blocks] + offset
    tensors[f"a.weight.quant_state.bitsandbytes__{kind}"] = text(state)
    expected = (table[of_element[:n]] * absmax.repeat(block)[:n]).reshape(shape)
    config = {
        "quant_method": "bitsandbytes",
        "load_in_4bit": True,
        "bnb_4bit_quant_type": kind,
        "bnb_4bit_use_double_quant": True,
    }
    check(truecast, tmp_path, tensors, {"a.weight": expected}, config)
    (tmp_path / "file").mkdir()
    truecast(
        "convert", tmp_path / "source-f32" / "model.safetensors", tmp_path / "file" / "model.safetensors", "--to", "f32"
    )
    assert read(tmp_path / "file")["a.weight"].tobytes() == expected.tobytes()
    for name, wrong in (("absmax", tensors["a.weight.absmax"][1:]), ("quant_map", table[::-1].copy())):
        assert f"a.weight.{name}" in error(truecast, tmp_path, tensors | {f"a.weight.{name}": wrong}, config)
    for key, wrong in (("blocksize", 0), ("shape", [2**63, 2**63]), ("shape", 5), ("nested_blocksize", 2**40)):
        broken = {f"a.weight.quant_state.bitsandbytes__{kind}": text(state | {key: wrong})}
        assert "a.weight" in error(truecast, tmp_path, tensors | broken, config)


@pytest.mark.parametrize("is_declared", [True, False])
def test_bitsandbytes_of_eight_bits(truecast, tmp_path, is_declared):
    weight, scale = codes(np.int8, 32, 64), floats(32)
    config = (
        {"quant_method": "bitsandbytes", "load_in_8bit": True, "llm_int8_skip_modules": ["lm_head"]}
        if is_declared
        else None
    )
    tensors = {
        "a.weight": weight,
        "a.SCB": scale,
        "a.weight_format": np.zeros((), np.uint8),
        "lm_head.weight": floats(8, 8),
    }
    expected = weight.astype(np.float32) * scale[:, None] * np.float32(7.874015718698502e-3)
    check(truecast, tmp_path, tensors, {"a.weight": expected, "lm_head.weight": tensors["lm_head.weight"]}, config)
    assert "expected 0" in error(truecast, tmp_path, tensors | {"a.weight_format": np.ones((), np.uint8)}, config)


# AutoRound


def packed(values: np.ndarray, axis: int) -> np.ndarray:
    """Four bits, eight along an axis in a word."""
    values = np.moveaxis(values.astype(np.uint32), axis, -1)
    words = (values.reshape(*values.shape[:-1], -1, 8) << np.arange(0, 32, 4, dtype=np.uint32)).sum(-1, dtype=np.uint32)
    return np.ascontiguousarray(np.moveaxis(words, -1, axis)).view(np.int32)


AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]


@pytest.mark.parametrize(
    "packing, less",
    [("auto_round:auto_gptq", 1), ("auto_round", 0), ("auto_round:gptqmodel", 0), ("auto_round:auto_awq", 0)],
)
def test_autoround_of_integers(truecast, tmp_path, packing, less):
    """Inputs by outputs in the file; the zero points of GPTQ's first format are stored less 1."""
    q, zeros, scales = codes(np.uint8, 64, 32) & 15, RANDOM.integers(1, 16, (2, 32)), floats(2, 32).astype(np.float16)
    reorder = (
        (lambda a: a.reshape(len(a), -1, 8)[:, :, AWQ_ORDER].reshape(a.shape)) if "awq" in packing else (lambda a: a)
    )
    tensors = {
        "a.qweight": packed(reorder(q), 1 if "awq" in packing else 0),
        "a.qzeros": packed(reorder(zeros - less), 1),
        "a.scales": scales,
    }
    expected = (q.astype(np.float32) - zeros.repeat(32, 0).astype(np.float32)) * scales.astype(np.float32).repeat(32, 0)
    config = {"quant_method": "auto-round", "packing_format": packing, "bits": 4, "group_size": 32, "data_type": "int"}
    config |= {"sym": False, "provider": "auto-round", "extra_config": {"lm_head": {"bits": 16}}}
    check(truecast, tmp_path, tensors, {"a.weight": np.ascontiguousarray(expected.T)}, config)
    other = config | {"bits": 2 if "awq" not in packing else 4, "group_size": 64}
    for name in ("a", "^a$"):
        again = tmp_path / name
        again.mkdir()
        own = other | {"extra_config": {name: {"bits": 4, "group_size": 32}}}
        check(truecast, again, tensors, {"a.weight": np.ascontiguousarray(expected.T)}, own)
    for more, why in (
        ({"act_bits": 8}, "auto-round:"),
        ({"rotation_config": {"a": 1}}, "rotation_config"),
        ({"packing_format": "autoround:x"}, "autoround:x"),
    ):
        assert why in error(truecast, tmp_path, tensors, config | more)


def mxfp4(rows: int, cols: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    of_element, scales = (
        codes(np.uint8, rows, cols) & 15,
        RANDOM.integers(110, 130, (rows, cols // 32)).astype(np.uint8),
    )
    values = E2M1[of_element] * np.exp2(scales.astype(np.float32) - 127).repeat(32, 1)
    return of_element[:, ::2] | of_element[:, 1::2] << 4, scales, values


def test_autoround_of_floats(truecast, tmp_path):
    nibbles, scales, values = mxfp4(8, 64)
    common = {"quant_method": "auto-round", "group_size": 32}
    config = common | {"packing_format": "auto_round:llm_compressor", "bits": 4, "data_type": "mx_fp", "act_bits": 4}
    check(truecast, tmp_path, {"a.weight_packed": nibbles, "a.weight_scale": scales}, {"a.weight": values}, config)
    weight, scale = fp8(8, 64), floats(8).astype(BF16)
    config = common | {
        "packing_format": "auto_round:fp8_static",
        "bits": 8,
        "data_type": "fp",
        "group_size": -1,
        "act_bits": 8,
    }
    tensors = {"a.weight": weight, "a.weight_scale": scale, "a.input_scale": floats(1)}
    expected = weight.astype(np.float32) * scale.astype(np.float32)[:, None]
    (tmp_path / "fp8").mkdir()
    check(truecast, tmp_path / "fp8", tensors, {"a.weight": expected}, config)
    (tmp_path / "fake").mkdir()
    config = {"quant_method": "auto-round", "packing_format": "auto_round:fake", "bits": 4}
    check(truecast, tmp_path / "fake", {"a.weight": values}, {"a.weight": values}, config)


# ModelSlim, AMD Quark


def test_modelslim(truecast, tmp_path):
    q, scale, offset = codes(np.int8, 32, 64), floats(32, 1), RANDOM.normal(0, 9, (32, 1)).astype(np.float32)
    tensors = {
        "a.weight": q,
        "a.weight_scale": scale,
        "a.weight_offset": offset,
        "a.input_offset": floats(1),
        "b.weight": floats(4, 4),
    }
    described = {
        "model_quant_type": "W8A8",
        "a.weight": "W8A8_DYNAMIC",
        "a.weight_scale": "W8A8_DYNAMIC",
        "b.weight": "FLOAT",
    }
    expected = {"a.weight": (q.astype(np.float32) - offset) * scale, "b.weight": tensors["b.weight"]}
    check(truecast, tmp_path, tensors, expected, quant_model_description=described)
    assert not (tmp_path / "f32" / "quant_model_description.json").exists()
    # A bias within integers for integer activations does not get lost.
    folded = {"a.quant_bias": codes(np.int32, 32), "a.deq_scale": floats(32)}
    (tmp_path / "folded").mkdir()
    check(truecast, tmp_path / "folded", tensors | folded, expected | folded, quant_model_description=described)
    assert "weight_offset" in error(truecast, tmp_path, tensors, options=("--from-scheme", "ct:int-quantized"))
    for wrong, why in (
        ({"a.weight": "W4A8_DYNAMIC"}, "W4A8_DYNAMIC"),
        ({"a.weight": 8}, "expected"),
        ({"optional": {"quarot": {}}}, "optional"),
    ):
        assert why in error(truecast, tmp_path, tensors, quant_model_description=described | wrong)


def quark(weight: dict, **more) -> dict:
    return {
        "quant_method": "quark",
        "global_quant_config": {"weight": weight},
        "export": {"pack_method": "reorder"},
    } | more


QUARK_FP4 = {
    "dtype": "fp4",
    "qscheme": "per_group",
    "group_size": 32,
    "scale_format": "e8m0",
    "symmetric": None,
    "ch_axis": -1,
}
QUARK_FP8 = {"dtype": "fp8_e4m3", "qscheme": "per_tensor", "group_size": None, "is_dynamic": False}


def test_quark(truecast, tmp_path):
    nibbles, scales, values = mxfp4(8, 64)
    weight, scale, rows = fp8(16, 32), floats(1, 1), floats(16)
    experts = {"a.weight": nibbles, "a.weight_scale": scales}
    attention = {"attn.q.weight": weight, "attn.q.weight_scale": scale, "attn.q.input_scale": floats()}
    in_memory = {
        "attn.q.weight": weight,
        "attn.q.weight_quantizer.scale": scale,
        "attn.q.input_quantizer.scale": floats(),
    }
    wide = weight.astype(np.float32)
    both = {"a.weight": values, "attn.q.weight": wide * scale}
    named = quark(QUARK_FP4, layer_quant_config={"*attn*": {"weight": QUARK_FP8}})
    by_row = (attention | {"attn.q.weight_scale": rows}, quark(QUARK_FP8 | {"qscheme": "per_channel", "ch_axis": 0}))
    all_cases = [
        (experts, quark(QUARK_FP4), {"a.weight": values}),
        (experts | attention, named, both),
        (experts | in_memory, named, both),
        (experts | attention, quark(QUARK_FP4, exclude=["attn.q"]), both),
        (*by_row, {"attn.q.weight": wide * rows[:, None]}),
    ]
    for number, (tensors, config, expected) in enumerate(all_cases):
        path = tmp_path / str(number)
        path.mkdir()
        check(truecast, path, tensors, expected, config)
    for config, why in [
        (quark(QUARK_FP4 | {"dtype": "mx6"}), "quark:mx6"),
        (quark(QUARK_FP4 | {"group_size": 16}), "quark:fp4"),
        (quark(QUARK_FP4 | {"is_scale_quant": True}), "is_scale_quant"),
        (quark([QUARK_FP8, QUARK_FP4]), "quark:[fp8_e4m3, fp4]"),
        (quark(QUARK_FP8 | {"qscheme": "per_channel", "ch_axis": 1}), "ch_axis"),
        (quark(QUARK_FP4, algo_config=[{"name": "rotation"}]), "rotate"),
        (quark(QUARK_FP4, export={"weight_format": "fake_quantized"}), "fake_quantized"),
        (quark(QUARK_FP4, export={"pack_method": "tiled"}), "reorder or order"),
        (quark(QUARK_FP4, global_quant_config={"weight": QUARK_FP4, "bias": QUARK_FP8}), "global_quant_config.bias"),
    ]:
        assert why in error(truecast, tmp_path, experts, config)


@pytest.mark.parametrize("dtype, table", [("fp6_e2m3", ml_dtypes.float6_e2m3fn), ("fp6_e3m2", ml_dtypes.float6_e3m2fn)])
def test_quark_of_six_bits(truecast, tmp_path, dtype, table):
    """Four codes in three bytes, the first in the lowest bits."""
    q, scales = codes(np.uint8, 8, 64) & 63, RANDOM.integers(110, 130, (8, 2)).astype(np.uint8)
    word = (q.reshape(8, -1, 4).astype(np.uint32) << np.arange(0, 24, 6, dtype=np.uint32)).sum(-1, dtype=np.uint32)
    stored = np.stack([word >> 8 * byte & 255 for byte in range(3)], -1).astype(np.uint8).reshape(8, -1)
    expected = q.view(table).astype(np.float32) * np.exp2(scales.astype(np.float32) - 127).repeat(32, 1)
    config = quark(QUARK_FP4 | {"dtype": dtype})
    both = {name: {"weight": QUARK_FP4 | {"dtype": name}} for name in ("fp6_e2m3", "fp6_e3m2")}
    why = error(truecast, tmp_path, {"a.weight": stored, "a.weight_scale": scales}, config | {"layer_type_quant_config": both})
    assert "tell apart" in why
    check(truecast, tmp_path, {"a.weight": stored, "a.weight_scale": scales}, {"a.weight": expected}, config)


def nibble_words(values: np.ndarray, order: str) -> np.ndarray:
    """Along the last dimension; a single number is a word."""
    if values.ndim == 0:
        return values.astype(np.int32)
    along = np.arange(8) if order == "order" else np.array(AWQ_ORDER)
    return packed((values & 15).reshape(*values.shape[:-1], -1, 8)[..., along].reshape(values.shape), -1)


@pytest.mark.parametrize("order", ["order", "reorder"])
@pytest.mark.parametrize("scheme", ["per_tensor", "per_channel", "per_group"])
@pytest.mark.parametrize("dtype", ["int4", "uint4", "int8", "uint8"])
def test_quark_of_integers(truecast, tmp_path, dtype, scheme, order):
    """Outputs by inputs, but of groups inputs by outputs."""
    low, high = {"int4": (-8, 8), "uint4": (0, 16), "int8": (-128, 128), "uint8": (0, 256)}[dtype]
    shape = {"per_tensor": (), "per_channel": (32,), "per_group": (2, 32)}[scheme]
    q = RANDOM.integers(low, high, (64, 32) if scheme == "per_group" else (32, 64))
    zeros, scales = np.asarray(RANDOM.integers(low, high, shape)), floats(*shape)
    grown = {
        "per_tensor": lambda a: a,
        "per_channel": lambda a: a[:, None],
        "per_group": lambda a: a.repeat(32, 0),
    }[scheme]
    expected = (q - grown(zeros)).astype(np.float32) * grown(scales)
    expected = np.ascontiguousarray(expected.T if scheme == "per_group" else expected)
    store = (lambda a: nibble_words(a, order)) if dtype.endswith("4") else (lambda a: a.astype(dtype))
    tensors = {"a.weight": store(q), "a.weight_scale": scales, "a.weight_zero_point": store(zeros)}
    weight = {"dtype": dtype, "qscheme": scheme, "group_size": 32 if scheme == "per_group" else None}
    weight |= {"ch_axis": {"per_tensor": None, "per_channel": 0, "per_group": -1}[scheme], "symmetric": False}
    config = lambda **more: quark(weight | more, export={"pack_method": order})
    check(truecast, tmp_path, tensors, {"a.weight": expected}, config(zero_point_type="int32"))
    # Zero points that are lost, floats, or not what is stated.
    without = {name: value for name, value in tensors.items() if "zero" not in name}
    assert "weight_zero_point" in error(truecast, tmp_path, without, config())
    assert "zero_point_type" in error(truecast, tmp_path, tensors, config(zero_point_type="float32"))
    some = tensors | {"a.weight_zero_point": store(np.full_like(zeros, 5))}
    if not dtype.startswith("u"):
        assert "every zero point is 0" in error(truecast, tmp_path, some, config(symmetric=True))
    if dtype.endswith("4"):
        assert "pack_method" in error(truecast, tmp_path, tensors, quark(weight, export={}))
    (tmp_path / "symmetric").mkdir()
    if dtype == "int8" and scheme != "per_group":
        values = q.astype(np.float32) * grown(scales)
        check(truecast, tmp_path / "symmetric", without, {"a.weight": values}, config(symmetric=True))
    else:
        assert "weight_zero_point" in error(truecast, tmp_path / "symmetric", without, config(symmetric=True))


# ComfyUI, torchao


@pytest.mark.parametrize("shape", [(32,), (32, 1)])
def test_comfy_rows(truecast, tmp_path, shape):
    q, scale = codes(np.int8, 32, 64), floats(*shape)
    marked = lambda **more: {
        "a.weight": q,
        "a.weight_scale": scale,
        "a.comfy_quant": text({"format": "int8_tensorwise"} | more),
    }
    expected = {"a.weight": q.astype(np.float32) * scale.reshape(32, 1)}
    named = ("--from-scheme", "comfy:int8_tensorwise")
    for number, (more, options) in enumerate(
        [({"per_row": True}, ()), ({"per_row": True}, named), ({}, named), ({"odd": 1}, named)]
    ):
        (tmp_path / str(number)).mkdir()
        check(truecast, tmp_path / str(number), marked(**more), expected, options=options)
    for options in ((), named):
        said = error(truecast, tmp_path, marked(convrot=True, convrot_groupsize=64), options=options)
        assert "rotated" in said and "--from-scheme" not in said
    for other in ("comfy:int8_blockwise,group=32", "ct:int-quantized", "plain"):
        assert "the request says" in error(truecast, tmp_path, marked(), options=("--from-scheme", other))
    assert "does not know its layout" in error(truecast, tmp_path, marked(format="int8_rowwise"))
    assert "per_row" in error(truecast, tmp_path, marked(format="int8_blockwise", group_size=32, per_row=True))


def test_torchao_integers_in_bytes(truecast, tmp_path):
    q, scale, zero = codes(np.int8, 32, 64) >> 4, floats(32, 2).astype(BF16), codes(np.int8, 32, 2) >> 4
    tensors = {"a._weight_qdata": q, "a._weight_scale": scale, "a._weight_zero_point": zero}
    data = {"block_size": [1, 32], "activation_quantization": "int8_asym_per_token"}
    data |= {
        "target_dtype": {"_type": "torch.dtype", "_data": "int4"},
        "dtype": {"_type": "torch.dtype", "_data": "bfloat16"},
    }
    metadata = lambda kind: {"tensor_names": '["a.weight"]', "a.weight": json.dumps({"_type": kind, "_data": data})}
    expected = (q.astype(np.float32) - zero.astype(np.float32).repeat(32, 1)) * scale.astype(np.float32).repeat(32, 1)
    check(
        truecast,
        tmp_path,
        tensors,
        {"a.weight": expected},
        {"quant_method": "torchao"},
        metadata=metadata("IntxUnpackedToInt8Tensor"),
    )
    said = error(truecast, tmp_path, tensors, {"quant_method": "torchao"}, metadata=metadata("IntxOpaqueTensor"))
    assert "torchao reads it" in said and "--from-scheme" not in said


# Formats without a declaration

ZEROS = {"f8": F8, "b16": BF16} | {name: np.dtype(name) for name in ("i1", "u1", "i2", "i4", "u4", "i8", "f2", "f4")}


def shaped(lines: str) -> dict[str, np.ndarray]:
    """`name type shape, ..` as zeros."""
    words = (line.split() for line in lines.split(","))
    return {
        name: np.zeros([int(n) for n in shape.split("x") if n], ZEROS[kind])
        for name, kind, shape in ([*w, ""][:3] for w in words)
    }


@pytest.mark.parametrize(
    "name, lines",
    [
        ("EXL2", "a.q_weight i4 8x32, a.q_scale i4 2x4, a.q_scale_max f2 2, a.q_groups i2 4, a.q_invperm i2 64"),
        ("EXL3", "a.trellis i2 4x2x64, a.suh f2 64, a.svh f2 32, a.mcg i4"),
        ("HQQ", "a.W_q u1 16x64, a.scale f2 32x1, a.zero f2 32x1, a.axis i8"),
        ("HQQ", "a.W_q b16 16x64, a.scale f2 32x1, a.zero f2 32x1"),
        ("quanto", "a.weight._data i1 32x64, a.weight._scale b16 32x1, a.input_scale b16"),
        ("quanto", "a.weight._data f8 32x64, a.weight._scale b16 32x1"),
        ("AQLM", "a.codes i2 32x8x1, a.codebooks f2 1x256x1x8, a.scales f2 32x1x1x1"),
        ("QuIP#", "a.Qidxs i8 32x8, a.SU f2 64, a.SV f2 32"),
        ("VPTQ", "a.indices i4 1x32x8, a.centroids.weight f2 1x256"),
        ("SpQR", "a.dense_weights i8 32x8, a.row_offsets i4 33, a.col_vals i4 5"),
        ("HIGGS", "a.weight i2 32x8, a.scales f2 32x1, a.tables f2 16, a.tables2 f2 16x16"),
        ("EETQ", "a.weight i1 64x32, a.weight_scales f2 32"),
        ("Marlin", "a.B i4 4x64, a.s f2 1x32"),
        ("Nunchaku", "a.qweight i1 32x32, a.wscales b16 1x32, a.smooth_factor b16 64"),
        ("SqueezeLLM", "a.qweight i4 8x32, a.lookup_table f2 32x16"),
        ("gemv_fast", "a.qweight i2 8x64, a.scales f2 8x32, a.qzeros f2 8x32"),
        ("TensorRT-LLM", "a.weight i1 32x64, a.weights_scaling_factor f4 32"),
        ("DFloat11", "a.encoded_exponent u1 99, a.sign_mantissa u1 128, a.luts u1 3x256"),
        # Formats that nobody knows.
        ('u8 codes with "a.lut"', "a.w u1 32x32, a.lut f2 16"),
        ('i32 codes with "a.down_proj_scale"', "a.down_proj i4 4x32, a.down_proj_scale b16 32"),
        ('i8 codes with "a.codebook"', "a.kernel i1 4x32, a.codebook f4 4"),
    ],
)
def test_codes_of_others_are_refused_by_name(truecast, tmp_path, name, lines):
    tensors = shaped(f"{lines}, norm.weight b16 64")
    said = error(truecast, tmp_path, tensors)
    assert name in said and " is not supported: " in said and "--from-scheme" not in said
    file = tmp_path / "source" / "model.safetensors"
    truecast("convert", file, tmp_path / "out.safetensors", "--to", "bf16", code=3)


def test_integers_of_ordinary_models_are_copied(truecast, tmp_path):
    tensors = shaped(
        "embeddings.position_ids i8 1x512, attn.relative_position_index i8 49x49, attn.logit_scale f4 8x1x1, attn.scale f4,"
        "bn.num_batches_tracked i8, bn.scale f4 64, vq.codes i4 8x1024, tokens.table i4 512x4, codebook.embed f4 8x64,"
        "masks.causal u1 64x64, hash.seeds u1 4, pool.indices i4 4x4, mixer.B b16 64x64, mixer.s b16 64, head.W_q b16 64x64"
    )
    source = write(tmp_path / "source", tensors)
    done = truecast.run("convert", source, tmp_path / "out", "--to", "bf16")
    assert (done.returncode, done.stderr) == (0, b"")
    assert {n: a.shape for n, a in read(tmp_path / "out").items()} == {n: a.shape for n, a in tensors.items()}


# Tensors next to quantized weights


def converted(truecast, path: Path, modules: str, name: str, shape: str, more: dict):
    """Whether the result has this tensor next to these quantized modules (`!`: not quantized), and the warnings."""
    lines = ["norm.weight b16 64", "attn.q_norm.weight b16 64", f"{name} b16 {shape}"]
    for module in modules.split():
        is_plain = module.endswith("!")
        module = module.rstrip("!")
        lines += (
            [f"{module}.weight b16 64x64"] if is_plain else [f"{module}.weight f8 64x64", f"{module}.weight_scale f4"]
        )
    source = write(path / "source", shaped(",".join(lines)), {"quant_method": "fp8", "weight_block_size": None} | more)
    done = truecast.run("convert", source, path / "out", "--to", "bf16")
    assert done.returncode == 0, done.stderr
    # The codes are all 0, which is no matter here.
    warnings = [line for line in done.stderr.decode().splitlines() if not line.endswith("are all 0")]
    return name in read(path / "out"), "\n".join(warnings)


@pytest.mark.parametrize(
    "modules, name, shape, more",
    [
        ("mlp.up_proj", "mlp.up_proj.input_scale", "", {}),
        ("mlp.up_proj", "mlp.up_proj.input_zero_point", "1", {}),
        ("mlp.up_proj", "mlp.up_proj.output_zero_point", "1x1", {}),
        ("mlp.up_proj", "mlp.up_proj.weight_input_scale", "", {}),
        ("experts.w13", "experts.w13_input_scale", "", {}),
        ("attn.k_proj", "attn.k_proj.output_scale", "1", {}),
        ("attn.k_proj", "attn.k_scale", "", {}),
        ("attn.k_proj attn.v_proj", "attn.v_zero_point", "1", {}),
        ("attn.qkv_proj", "attn.attn.q_scale", "1", {}),
        ("attn.Wqkv", "attn.attn.prob_scale", "1", {}),
        ("attn.query_key_value", "attn.kv_scale", "", {}),
        ("attn.indexer.wk", "attn.indexer.k_scale", "1", {}),
        ("attn.kv_a_proj_with_mqa", "attn.mla_attn.k_scale", "1", {}),
        # Attention that is not quantized; its cache is.
        ("mlp.up_proj attn.k_proj!", "attn.k_proj.k_scale", "", {"kv_cache_quant_algo": "FP8"}),
        ("mlp.up_proj attn.to_k!", "attn.k_scale", "4x1x1", {"kv_cache_scheme": {"strategy": "attn_head"}}),
    ],
)
def test_scales_of_activations_and_caches_are_dropped(truecast, tmp_path, modules, name, shape, more):
    assert converted(truecast, tmp_path, modules, name, shape, more) == (False, "")


@pytest.mark.parametrize(
    "modules, name, shape, is_told",
    [
        # Gemma 3n.
        ("altup.modality_router", "altup.correct_output_scale", "64", False),
        ("altup.modality_router", "altup.correct_output_scale", "1", False),
        # Swin V2, CLIP, CaiT, ConvNeXt.
        ("attn.q_proj", "attn.logit_scale", "8x1x1", False),
        ("attn.q_proj", "logit_scale", "", False),
        ("attn.q_proj", "attn.layer_scale", "64", False),
        ("attn.qkv", "ls1.gamma_input_scale", "1", False),
        # Learned for each head or channel.
        ("attn.q_proj", "attn.q_scale", "8", True),
        ("attn.k_proj attn.v_proj", "attn.k_scale", "64", True),
        ("attn.q_proj", "attn.q_norm.k_scale", "64", True),
        # Of a module that is not quantized.
        ("mlp.up_proj", "mixer.conv.output_scale", "1", True),
        ("mlp.up_proj", "attn.k_scale", "1", True),
        ("mlp.up_proj", "mlp.up_proj.input_scale", "64", True),
        ("encoder.proj", "encoder.input_scale", "1", True),
    ],
)
def test_parameters_of_models_are_kept(truecast, tmp_path, modules, name, shape, is_told):
    is_kept, said = converted(truecast, tmp_path, modules, name, shape, {})
    assert is_kept and (name in said) == is_told, said
