"""The same jobs by the packages that people use: reads every shard of SRC, converts it, writes it into DST.

    python benches/files/peers.py JOB SRC DST

Prints how long that took, without imports, and the name and version of the package.
"""

import sys
import time
from importlib.metadata import version
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file


def shards(src: Path):
    return sorted(src.glob("*.safetensors"))


def cast(src: Path, dst: Path, dtype: torch.dtype) -> None:
    for shard in shards(src):
        save_file({name: tensor.to(dtype) for name, tensor in load_file(shard).items()}, dst / shard.name)


def quantized(src: Path, dst: Path, preset: str) -> None:
    """Scales, codes and packing of compressed-tensors, tensor by tensor."""
    from compressed_tensors.compressors.base import BaseCompressor
    from compressed_tensors.quantization import preset_name_to_scheme
    from compressed_tensors.quantization.utils import calculate_qparams, generate_gparam

    scheme = preset_name_to_scheme(preset, ["Linear"])
    args = scheme.weights
    format = {
        "FP8_BLOCK": "float-quantized",
        "W4A16": "pack-quantized",
        "MXFP4A16": "mxfp4-pack-quantized",
        "NVFP4A16": "nvfp4-pack-quantized",
    }[preset]
    compressor = BaseCompressor.get_value_from_registry(format)
    for shard in shards(src):
        made = {}
        for name, weight in load_file(shard).items():
            rows, columns = weight.shape
            high, wide = args.block_structure or (1, args.group_size)
            grid = weight.reshape(rows // high, high, columns // wide, wide)
            low, top = grid.amin((1, 3)), grid.amax((1, 3))
            second = None
            if preset.startswith("NVFP4"):
                second = generate_gparam(weight.amin().reshape(1), weight.amax().reshape(1))
            scale, zero = calculate_qparams(low, top, args, global_scale=second)
            state = {"weight": weight, "weight_scale": scale, "weight_zero_point": zero}
            if second is not None:
                state["weight_global_scale"] = second
            for part, tensor in compressor.compress(state, scheme).items():
                made[name.removesuffix("weight") + part] = tensor.contiguous()
        save_file(made, dst / shard.name)


def dequantized(src: Path, dst: Path) -> None:
    from compressed_tensors.entrypoints.convert import FP8BlockDequantizer, convert_checkpoint

    convert_checkpoint(str(src), str(dst), FP8BlockDequantizer(targets=[r"re:.*proj$"]), max_workers=1, device="cpu")


def q8_0(src: Path, dst: Path) -> None:
    import gguf

    writer = gguf.GGUFWriter(dst / "model.gguf", "llama")
    kind = gguf.GGMLQuantizationType.Q8_0
    for shard in shards(src):
        for name, tensor in load_file(shard).items():
            writer.add_tensor(name, gguf.quants.quantize(tensor.float().numpy(), kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


CT = "compressed-tensors"
JOBS = {
    "bf16": ("torch", lambda src, dst: cast(src, dst, torch.bfloat16)),
    "f8e4m3fn": ("torch", lambda src, dst: cast(src, dst, torch.float8_e4m3fn)),
    "fp8": (CT, lambda src, dst: quantized(src, dst, "FP8_BLOCK")),
    "int4": (CT, lambda src, dst: quantized(src, dst, "W4A16")),
    "mxfp4": (CT, lambda src, dst: quantized(src, dst, "MXFP4A16")),
    "nvfp4": (CT, lambda src, dst: quantized(src, dst, "NVFP4A16")),
    "q8_0": ("gguf", q8_0),
    "dequantize": (CT, dequantized),
}

if __name__ == "__main__":
    package, job = JOBS[sys.argv[1]]
    src, dst = map(Path, sys.argv[2:])
    dst.mkdir(exist_ok=True)
    begin = time.perf_counter()
    job(src, dst)
    print(f"{time.perf_counter() - begin} {package} {version(package)}")
