"""What the package does to a process: imports, threads, forks, time."""

import os
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
import truecast as tc


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_nothing_else_is_imported():
    assert run(
        """
        import sys, truecast as tc
        print([name for name in ("numpy", "ml_dtypes", "torch", "jax", "onnx") if name in sys.modules])
        import numpy as np
        tc.cast(np.zeros(3, np.float32), "f16")
        print([name for name in ("ml_dtypes", "torch", "jax", "onnx") if name in sys.modules])
        """
    ).split("\n")[:2] == ["[]", "[]"]


@pytest.mark.parametrize(
    "line, shown",
    [
        ("help(tc)", "NAME\n    truecast"),
        ("from truecast import *; print(cast, onnx)", "<function cast"),
        ("print(hasattr(tc, 'torch'), hasattr(tc.onnx, 'Backend'), 'torch' in dir(tc))", "False False False"),
        ("import inspect; print({*tc.__all__} <= {name for name, _ in inspect.getmembers(tc)})", "True"),
        ("import inspect; print('cast_like' in dict(inspect.getmembers(tc.onnx)))", "True"),
        ("import pydoc; print(pydoc.render_doc(tc.onnx))", "truecast.onnx"),
    ],
)
def test_without_torch_and_onnx(line, shown):
    """They are not installed, or so it looks: the package is looked at as if they were not wanted."""
    hidden = "import sys; sys.modules.update(torch=None, onnx=None); import truecast as tc; "
    assert shown in run(hidden + line)


def test_the_error_says_what_is_missing():
    said = run("import sys; sys.modules['torch'] = None\nimport truecast as tc\ntry: tc.torch\nexcept AttributeError as e: print(e)")
    assert said == "truecast.torch needs torch, which is not installed\n"


def test_threads_work_at_the_same_time():
    x = np.random.default_rng(2).standard_normal(300_000).astype(np.float32)
    expected = tc.cast(x, "f8e5m2").tobytes()
    wrong = []

    def work():
        for _ in range(20):
            if tc.cast(x, "f8e5m2").tobytes() != expected:
                wrong.append(threading.get_ident())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(getattr(sys, "_is_gil_enabled", lambda: True)(), reason="this interpreter has a global lock")
def test_the_global_lock_stays_off():
    assert run("import sys, truecast as tc, numpy as np; tc.cast(np.ones(3), 'f16'); print(sys._is_gil_enabled())") == "False\n"


def test_threads_share_plans_and_settings():
    """Plans are made, found and forgotten by several threads at once, which also change how many threads there are."""
    x = np.linspace(-300, 300, 4096, dtype=np.float32)
    names = ["f16", "bf16", "f8e4m3fn", "f8e5m2", "i8", "u8", "i16", "f64"]
    expected = {(name, mode): tc.cast(x, name, spec="ieee", rounding=mode, int_overflow="saturate").tobytes()
                for name in names for mode in ("up", "down", "toward-zero", "nearest-even")}
    wrong, start = [], threading.Barrier(8)

    def work(seed):
        order = list(expected.items())
        np.random.default_rng(seed).shuffle(order)
        start.wait()
        for _ in range(10):
            for (name, mode), right in order:
                if tc.cast(x, name, spec="ieee", rounding=mode, int_overflow="saturate").tobytes() != right:
                    wrong.append((name, mode))
            tc.set_num_threads(1 + seed % 3)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tc.set_num_threads(None)
    assert not wrong


def test_the_interpreter_is_released():
    """Another thread counts while one long conversion runs."""
    x = np.zeros(200_000, np.float64).astype(str)
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    big = np.zeros(1 << 25, np.float32)
    thread = threading.Thread(target=tick)
    thread.start()
    for _ in range(5):
        begin = time.monotonic()
        tc.cast(big, "f64", spec="ieee")
        end = time.monotonic()
        if any(begin < at < end for at in ticks):
            break
    done.set()
    thread.join()
    assert any(begin < at < end for at in ticks)
    assert len(x)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_forked_processes_convert():
    """The threads of the parent are not there; the child makes its own."""
    assert (
        run(
            """
            import os, sys, warnings
            warnings.simplefilter("ignore")
            import numpy as np, truecast as tc
            x = np.ones(1 << 22, np.float32)
            tc.cast(x, "f16")
            stack = np.ones((4, 32, 32), np.float32)
            tc.quantize(stack, "fp8-block")
            # Work that is cut into pieces and not worth threads.
            tc.cast(x[:200_000], "f16", seed=1)
            tc.cast_with_report(x[:200_000], "f16")
            child = os.fork()
            if child == 0:
                y = tc.cast(x, "f16")
                tc.cast(x[:200_000], "f16", seed=1)
                tc.cast_with_report(x[:200_000], "f16")
                q = tc.quantize(stack, "fp8-block")
                z = tc.dequantize(q)
                os._exit(0 if (y == 1).all() and (z == 1).all() else 9)
            deadline = 60
            import time
            begin = time.monotonic()
            while True:
                pid, status = os.waitpid(child, os.WNOHANG)
                if pid or time.monotonic() - begin > deadline:
                    break
                time.sleep(0.01)
            print(pid == child and status == 0)
            """
        ).strip()
        == "True"
    )


def test_the_command():
    line = ["promote", "i8", "f32", "--system", "openvino"]
    done = subprocess.run([sys.executable, "-m", "truecast", *line], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "f32\n")
    done = subprocess.run([sys.executable, "-m", "truecast", "promot"], capture_output=True, text=True)
    assert done.returncode == 2 and "did you mean promote" in done.stderr
    script = os.path.join(os.path.dirname(sys.executable), "truecast")
    if os.path.exists(script):
        done = subprocess.run([script, "--version"], capture_output=True, text=True)
        assert done.stdout.strip() == f"truecast {tc.__version__}"
