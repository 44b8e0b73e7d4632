"""The part of the CUDA driver that is used, through ctypes: no package of CUDA is needed."""

import ctypes
from contextlib import contextmanager

import numpy as np

COMPUTE_CAPABILITY = 75, 76
"""CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, .._MINOR"""
ERROR_LOG = 5, 6
"""CU_JIT_ERROR_LOG_BUFFER, .._SIZE_BYTES"""
THREADS = 256
"""In a block."""


class DriverError(RuntimeError):
    pass


class Gpu:
    """The first GPU. Raises `OSError` without a driver, `DriverError` where that finds no GPU."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        self.context, device, name = ctypes.c_void_p(), ctypes.c_int(), ctypes.create_string_buffer(256)
        self.call("cuInit", ctypes.c_uint(0))
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDeviceGetName", name, ctypes.c_int(len(name)), device)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)
        self.name = name.value.decode()
        major, minor = (self.attribute(which, device) for which in COMPUTE_CAPABILITY)
        self.number = 10 * major + minor

    def call(self, function: str, *arguments) -> None:
        code = getattr(self.library, function)(*arguments)
        if code:
            text = ctypes.c_char_p()
            self.library.cuGetErrorString(ctypes.c_int(code), ctypes.byref(text))
            raise DriverError(f"{function}: {(text.value or b'error').decode()} ({code})")

    def attribute(self, which: int, device: ctypes.c_int) -> int:
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), ctypes.c_int(which), device)
        return value.value

    def use(self) -> None:
        """In this thread."""
        self.call("cuCtxSetCurrent", self.context)

    def kernel(self, image: bytes, name: str) -> "Kernel":
        """From PTX text or a cubin."""
        module, function, log = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.create_string_buffer(4096)
        options = (ctypes.c_int * 2)(*ERROR_LOG)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), len(log))
        try:
            self.call("cuModuleLoadDataEx", ctypes.byref(module), image + b"\0", ctypes.c_uint(2), options, values)
        except DriverError as error:
            said = " ".join(log.value.decode(errors="replace").split())
            raise DriverError(f"{error} {said}".strip()) from None
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        return Kernel(self, function)

    @contextmanager
    def memory(self, size: int):
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        try:
            yield address
        finally:
            self.call("cuMemFree_v2", address)

    def upload(self, address: ctypes.c_uint64, array: np.ndarray) -> None:
        self.call("cuMemcpyHtoD_v2", address, ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes))

    def fill(self, address: ctypes.c_uint64, size: int) -> None:
        """With a byte that is no likely result, so that nothing of an earlier launch is left."""
        self.call("cuMemsetD8_v2", address, ctypes.c_ubyte(0xA5), ctypes.c_size_t(size))

    def download(self, address: ctypes.c_uint64, array: np.ndarray) -> None:
        self.call("cuMemcpyDtoH_v2", ctypes.c_void_p(array.ctypes.data), address, ctypes.c_size_t(array.nbytes))


class Kernel:
    def __init__(self, gpu: Gpu, function: ctypes.c_void_p):
        self.gpu, self.function = gpu, function

    def launch(self, blocks: int, threads: int, *arguments) -> None:
        """Arguments are values of ctypes. What fails is reported by the copy that follows."""
        pointers = (ctypes.c_void_p * len(arguments))(*(ctypes.addressof(argument) for argument in arguments))
        grid = (ctypes.c_uint(n) for n in (blocks, 1, 1, threads, 1, 1, 0))
        self.gpu.call("cuLaunchKernel", self.function, *grid, None, pointers, None)
