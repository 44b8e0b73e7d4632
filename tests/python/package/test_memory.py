"""Memory of large results: it is used again, by one array at a time, and whoever may still see an array keeps it."""

import gc
import os
import resource
import subprocess
import sys
import textwrap
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import pytest
import truecast as tc

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere libraries allocate results themselves")

MIB = 1 << 20
LARGE = 4 * MIB


@pytest.fixture(autouse=True)
def nothing_kept():
    gc.collect()
    tc.release_memory()
    yield
    gc.collect()
    tc.release_memory()


def source(seed: int = 1, elements: int = LARGE) -> np.ndarray:
    return np.random.default_rng(seed).integers(-100, 100, elements).astype(np.float32)


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def test_memory_is_used_again():
    x = source()
    y = tc.cast(x, "f16")
    first = address(y)
    assert first % (2 * MIB) == 0
    del y
    z = tc.cast(x, "bf16")
    assert address(z) == first and z.dtype == ml_dtypes.bfloat16
    assert np.array_equal(z.astype(np.float32), x)


def test_a_result_is_an_array_like_any_other():
    x = source().reshape(2048, -1)
    y = tc.cast(x, "f8e4m3fn")
    assert y.flags.writeable and y.flags.aligned and y.flags.c_contiguous and y.shape == x.shape
    assert y.dtype == ml_dtypes.float8_e4m3fn
    z = tc.cast(np.asfortranarray(x), "f64")
    assert z.flags.f_contiguous and not z.flags.c_contiguous and np.array_equal(z, x)
    y[0, 0] = 7
    assert y[0, 0] == 7
    assert tc.cast(x > 0, "i32").sum() == (x > 0).sum()


@pytest.mark.parametrize(
    "keep",
    [
        lambda y: y,
        lambda y: y[5:9],
        lambda y: y[::-1][:3],
        lambda y: y.view(np.uint16)[1:2],
        lambda y: y.reshape(1024, -1).T,
        lambda y: memoryview(y),
        lambda y: np.from_dlpack(y),
        lambda y: y.__dlpack__(),
        lambda y: np.broadcast_to(y[:1], (3, 1)),
        lambda y: y.flat,
        lambda y: y.base,
        lambda y: np.asarray(y.base.base),
        lambda y: y.ctypes,
        lambda y: np.lib.stride_tricks.as_strided(y, (2,), (4,)),
        lambda y: lambda: y,
    ],
)
def test_who_still_sees_an_array_keeps_its_memory(keep):
    x = source()
    y = tc.cast(x, "f16")
    first, bits = address(y), y.tobytes()
    copy = np.frombuffer(bits, np.float16)
    held = keep(y)
    shown = [np.asarray(keep(copy))] if isinstance(held, np.ndarray) and held.dtype != np.uint8 else None
    del y
    others = [tc.cast(-x, "f16") for _ in range(3)]
    assert first not in [address(other) for other in others]
    if shown:
        assert np.array_equal(held, shown[0])
    del held
    gc.collect()
    assert first in [address(tc.cast(x, "f16")), *map(address, others)] or tc.release_memory() > 0


def test_many_live_results_are_apart():
    """Made, kept and dropped at random: what lives has what was written to it, and no two share a byte."""
    rng, live = np.random.default_rng(3), []
    for turn in range(300):
        if live and rng.random() < 0.5:
            live.pop(rng.integers(len(live)))
        elements = int(rng.integers(MIB // 2, 3 * MIB))
        y = tc.cast(np.full(elements, turn, np.float32), "i32")
        live.append((turn, y))
        assert all(y[0] == y[-1] == of and y[len(y) // 2] == of for of, y in live)
    spans = sorted((address(y), address(y) + y.nbytes) for _, y in live)
    assert all(end <= begin for (_, end), (begin, _) in zip(spans, spans[1:]))
    assert all((y == of).all() for of, y in live)


def test_bounds():
    """Sixteen results and 1 GiB at most; a result is not given memory that is more than twice as large."""
    x = source(elements=MIB)
    results = [tc.cast(x, "f16") for _ in range(20)]
    del results
    assert tc.release_memory() == 16 * 2 * MIB
    assert tc.release_memory() == 0
    codes = np.zeros(300 * MIB, np.uint8)
    results = [tc.cast(codes, "i8") for _ in range(4)]
    del results
    assert tc.release_memory() == 900 * MIB
    large = tc.cast(source(elements=2 * MIB + 1), "f64")
    first = address(large)
    del large
    small = tc.cast(x, "f32", from_="f32")
    assert address(small) != first
    half = tc.cast(source(elements=MIB * 5 // 4), "f64")
    assert address(half) == first


def test_small_results_are_of_numpy():
    y = tc.cast(np.zeros(MIB // 2 - 1, np.float32), "f16")
    assert y.flags.owndata
    del y
    assert tc.release_memory() == 0


def test_results_that_fail_leave_nothing():
    x = source()
    x[-1] = np.inf
    for _ in range(5):
        with pytest.raises(tc.InputError):
            tc.cast(x, "i16", spec="ieee", int_overflow="error")
    assert tc.release_memory() in (LARGE * 2, LARGE * 4)


def test_scaled_tensors_use_it_too():
    x = source().reshape(2048, -1)
    q = tc.quantize(x, "mxfp8")
    first = address(q.codes)
    y = tc.dequantize(q)
    del q
    again = tc.quantize(x, "mxfp8")
    assert address(again.codes) == first
    assert np.array_equal(tc.dequantize(again), y)


def test_threads_make_and_drop_results():
    wrong, start = [], threading.Barrier(8)

    def work(number: int) -> None:
        rng, held = np.random.default_rng(number), []
        start.wait()
        for turn in range(60):
            value = (number * 60 + turn) % 2048
            y = tc.cast(np.full(int(rng.integers(MIB // 2, 2 * MIB)), value, np.float32), "f16")
            held.append((value, y))
            for of, y in held:
                if not (y == of).all():
                    wrong.append((number, turn, of))
            if len(held) > 2:
                held.pop(int(rng.integers(3)))
            if turn % 17 == 0:
                tc.release_memory()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert not wrong


def test_results_die_in_other_threads():
    x, box = source(), []

    def work() -> None:
        box.append(tc.cast(x, "f16"))

    for _ in range(20):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert np.array_equal(box.pop(), x)
    assert 0 < tc.release_memory() <= 2 * LARGE * 2


def test_references():
    y = tc.cast(source(), "f16")
    assert sys.getrefcount(y) == 2
    gone = weakref.ref(y)
    del y
    assert gone() is None and tc.release_memory() == 2 * LARGE


def test_many_calls_leave_nothing():
    x = source(elements=MIB)
    for _ in range(50):
        tc.cast(x, "f16")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(2_000):
        tc.cast(x, "f16")
        tc.cast(x, "f8e4m3fn", layout="codes")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8 << 10


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_forks_share_nothing():
    """What the parent keeps or holds, the child has copies of; neither sees what the other writes."""
    assert (
        run(
            """
            import os, warnings
            warnings.simplefilter("ignore")
            import numpy as np, truecast as tc
            n = 1 << 22
            held = tc.cast(np.full(n, 1, np.float32), "f16")
            kept = tc.cast(np.full(n, 2, np.float32), "f16")
            del kept
            children = []
            for child in range(3):
                pid = os.fork()
                if pid == 0:
                    right = True
                    for turn in range(20):
                        value = 10 + child * 20 + turn
                        y = tc.cast(np.full(n, value, np.float32), "f16")
                        right &= bool((held == 1).all() and (y == value).all())
                    del y
                    held[:] = 99
                    os._exit(0 if right and tc.release_memory() > 0 else 9)
                children.append(pid)
            for turn in range(40):
                y = tc.cast(np.full(n, turn, np.float32), "f16")
                assert (y == turn).all() and (held == 1).all()
            print([os.waitpid(pid, 0)[1] for pid in children], (held == 1).all())
            """
        )
        == "[0, 0, 0] True"
    )


def test_forks_while_threads_convert():
    """A fork may come when another thread has the kept memory in its hands: the child does without."""
    assert (
        run(
            """
            import os, threading, warnings
            warnings.simplefilter("ignore")
            import numpy as np, truecast as tc
            x, stop = np.ones(1 << 20, np.float32), threading.Event()
            def work():
                while not stop.is_set():
                    tc.cast(x, "f16")
                    tc.release_memory()
            tc.set_num_threads(1)
            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads: thread.start()
            codes = []
            for turn in range(40):
                pid = os.fork()
                if pid == 0:
                    import signal
                    signal.alarm(60)
                    tc.set_num_threads(1)
                    from truecast import _truecast
                    bytes_ = tc.release_memory()
                    os._exit(0 if bytes_ >= 0 else 9)
                codes.append(os.waitpid(pid, 0)[1])
            stop.set()
            for thread in threads: thread.join()
            print(set(codes))
            """
        )
        == "{0}"
    )


def test_the_system_may_take_what_is_kept():
    """Kept memory is marked: /proc counts it as lazily freed, and none of it when it was given back or is used again."""

    def lazy() -> int:
        with open("/proc/self/smaps_rollup") as rollup:
            return sum(int(line.split()[1]) for line in rollup if line.startswith("LazyFree")) << 10

    if not os.path.exists("/proc/self/smaps_rollup"):
        pytest.skip("this system does not tell")
    x = source(elements=16 * MIB)
    y = tc.cast(x, "f16")
    before = lazy()
    del y
    assert lazy() - before == 32 * MIB
    y = tc.cast(x, "f16")
    assert lazy() == before
    del y
    assert tc.release_memory() == 32 * MIB and lazy() == before
