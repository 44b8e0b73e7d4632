"""A cluster of three nodes on this machine, of which one is killed: the folder is that of one machine, byte for byte."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import ray
import truecast as tc
import truecast.ray as tr
from ray.cluster_utils import Cluster

SHARDS = 12
ROWS = 2048
# No test waits for so long: what is waited for happens, on however busy a machine, or the run is at an end.
HANGS = 900


def write_shard(path: Path, name: str, array: np.ndarray) -> None:
    header = {name: {"dtype": "F32", "shape": list(array.shape), "data_offsets": [0, array.nbytes]}}
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + array.tobytes())


@pytest.fixture(scope="session")
def source(tmp_path_factory) -> Path:
    """Shards of 8 MiB, an index, a configuration and a tokenizer."""
    folder, rng, weight_map = tmp_path_factory.mktemp("source"), np.random.default_rng(1), {}
    for shard in range(SHARDS):
        file = f"model-{shard + 1:05}-of-{SHARDS:05}.safetensors"
        write_shard(folder / file, f"l.{shard}.weight", rng.standard_normal((ROWS, 1024), np.float32))
        weight_map[f"l.{shard}.weight"] = file
    total = {"total_size": SHARDS * ROWS * 4096}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": total, "weight_map": weight_map}))
    (folder / "config.json").write_text('{"torch_dtype": "float32"}')
    (folder / "tokenizer.json").write_text("{}")
    return folder


@pytest.fixture(scope="session")
def expected(source, tmp_path_factory) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("whole") / "out"
    tc.convert(source, out, "f8e4m3fn")
    return files(out)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def cluster():
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    others = [cluster.add_node(num_cpus=1), cluster.add_node(num_cpus=1)]
    cluster.wait_for_nodes(timeout=HANGS)
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    yield cluster, others
    ray.shutdown()
    cluster.shutdown()


@pytest.mark.parametrize("after", [1, 5])
def test_a_node_is_killed(after, cluster, source, expected, tmp_path):
    cluster, others = cluster
    finished = []

    def progress(done, total, shard):
        finished.append(shard)
        if len(finished) == after:
            cluster.remove_node(others[0], allow_graceful=False)
            assert not others[0].any_processes_alive()

    conversion = tr.convert(source, tmp_path / "out", "f8e4m3fn", progress=progress)
    # The cluster notices at some time: this returns when two nodes are left.
    cluster.wait_for_nodes(timeout=HANGS)
    assert len(finished) == SHARDS and conversion.complete and conversion.bytes_in == SHARDS * ROWS * 4096
    assert files(tmp_path / "out") == expected
    assert tc.verify(source, tmp_path / "out")


def test_nodes_share_the_work(cluster, source, expected, tmp_path):
    conversion = tr.convert(source, tmp_path / "out", "f8e4m3fn")
    assert len(set(conversion.nodes)) > 1 and files(tmp_path / "out") == expected


def test_a_run_that_ended_is_resumed(cluster, source, expected, tmp_path):
    def stop(done, total, shard):
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        tr.convert(source, tmp_path / "out", "f8e4m3fn", progress=stop)
    with pytest.raises(tc.UsageError, match="exists and holds"):
        tr.convert(source, tmp_path / "out", "f8e4m3fn")
    assert tr.convert(source, tmp_path / "out", "f8e4m3fn", resume=True).complete
    assert files(tmp_path / "out") == expected


def test_an_earlier_result_is_replaced(cluster, source, expected, tmp_path):
    out = tmp_path / "out"
    tc.convert(source, out, "bf16")
    with pytest.raises(tc.UsageError, match="exists and holds"):
        tr.convert(source, out, "f8e4m3fn")
    assert tr.convert(source, out, "f8e4m3fn", force=True).complete and files(out) == expected
    (out / "other.safetensors").write_bytes(b"")
    with pytest.raises(tc.UsageError, match="other.safetensors"):
        tr.convert(source, out, "f8e4m3fn", force=True)


def test_what_is_wrong_is_one_error(cluster, source, tmp_path):
    with pytest.raises(tc.UsageError, match="no such"):
        tr.convert(source, tmp_path / "out", "f8e4m3fn", keep="no such")
    with pytest.raises(tc.UsageError, match="part"):
        tr.convert(source, tmp_path / "out", "f8e4m3fn", part="1/2")
    with pytest.raises(tc.UsageError, match="choose one"):
        tr.convert(source, tmp_path / "out", "f8e4m3fn", resume=True, force=True)
    # Of a value only the task that meets it can tell.
    with pytest.raises(tc.InputError, match="out of the destination's range"):
        rules = [("l.3.*", "u8"), ("*", None)]
        tr.convert(source, tmp_path / "out", rules=rules, spec="ieee", int_overflow="error", retries=0)


def test_the_command(source, expected, tmp_path):
    command = [sys.executable, "-m", "truecast.ray", source, tmp_path / "out", "--to", "f8e4m3fn", "--local", "2"]
    command += ["--max-memory", "64MiB", "--retries", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == SHARDS + 1 and files(tmp_path / "out") == expected
    done = subprocess.run([*command, "--quiet"], capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 2 and "exists and holds" in done.stderr and done.stdout == ""
