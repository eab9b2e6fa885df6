# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""The examples run as their heads say, and come to their results."""

import importlib.util
import re
import subprocess
import sys

import pytest
from test_meeting import needs_mpi
from worlds import PATIENCE_S, ROOT, free_port, launched, programs

SGD = str(ROOT / "libcomm" / "python" / "examples" / "numpy_sgd.py")
DDP_MNIST = str(ROOT / "libcomm" / "python" / "examples" / "ddp_mnist.py")
FSDP = str(ROOT / "libcomm" / "python" / "examples" / "fsdp.py")
needs_torch = pytest.mark.skipif(
    not importlib.util.find_spec("torch"), reason="no torch (package python3-torch)"
)


def accuracy_of(output, ranks):
    found = re.search(r"accuracy ([0-9.]+) on (\d+) ranks, replicas alike: True", output)
    assert found and int(found.group(2)) == ranks, output
    return float(found.group(1))


@needs_mpi
@pytest.mark.parametrize("size", [1, 4])
def test_numpy_sgd_learns_under_mpirun(size):
    status, output = launched(size, [SGD, "--steps", "60"])
    assert status == 0 and accuracy_of(output, size) > 0.85, output


def test_numpy_sgd_learns_with_top_k_and_sends_less():
    words = [SGD, "--steps", "60", "--policy", "net=topk:0.05+ef min=0", "--nodes", "2"]
    (status, output), _ = programs(2, words)
    assert status == 0 and accuracy_of(output, 2) > 0.8, output
    sent, exact = re.search(r"sent (\d+) bytes, float32 would have been (\d+)", output).groups()
    assert int(sent) < int(exact) / 5


def by_torchrun(folder, *program):
    # what goes where is said by rank: torch 1.13 does not read less on Python 3.11
    words = "--nproc_per_node 2 --redirects 0:1,1:1 --tee 0:1,1:1"
    words += f" --log_dir {folder} --master_port {free_port()}"
    run = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", *words.split(), *program],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_S,
    )
    return run.returncode, run.stdout


@needs_torch
def test_numpy_sgd_learns_under_torchrun(tmp_path):
    status, output = by_torchrun(tmp_path, SGD)
    assert status == 0 and accuracy_of(output, 2) > 0.85, output


DRAWN = "--data nowhere --images 1000 --epochs 1 --nodes 2 --policy"


@needs_torch
@needs_mpi
def test_ddp_mnist_learns_under_mpirun_with_top_k():
    words = [DDP_MNIST, *DRAWN.split(), "net=topk:0.05+ef"]
    status, output = launched(2, words, MASTER_PORT=str(free_port()))
    assert status == 0 and float(re.search(r"accuracy ([0-9.]+)", output).group(1)) > 0.3, output
    sent, exact = re.search(r"between nodes: (\d+) bytes, exact (\d+)", output).groups()
    assert int(sent) < int(exact) / 5


@needs_torch
def test_ddp_mnist_learns_under_torchrun_with_int8(tmp_path):
    status, output = by_torchrun(tmp_path, DDP_MNIST, *DRAWN.split(), "net=int8")
    assert status == 0 and float(re.search(r"accuracy ([0-9.]+)", output).group(1)) > 0.3, output


def has_fully_shard():
    try:
        from torch.distributed.fsdp import fully_shard  # noqa: F401
    except Exception:  # that of torch 1.13 cannot be imported by Python 3.11
        return False
    return True


needs_fully_shard = pytest.mark.skipif(
    not has_fully_shard(), reason="no torch, or one without fully_shard (2.6 has it)"
)


def learned_in_shards(output):
    found = re.search(r"accuracy ([0-9.]+) on 2 ranks, parameters alike: True", output)
    assert found and float(found.group(1)) > 0.3, output
    sent, exact = re.search(r"between nodes: (\d+) bytes, exact (\d+)", output).groups()
    assert int(sent) < 0.9 * int(exact)


@needs_fully_shard
def test_fsdp_learns_under_torchrun_with_int8(tmp_path):
    status, output = by_torchrun(tmp_path, FSDP, *DRAWN.split(), "net=int8")
    assert status == 0, output
    learned_in_shards(output)


@needs_fully_shard
@needs_mpi
def test_fsdp_learns_under_mpirun_with_int8():
    words = [FSDP, *DRAWN.split(), "net=int8"]
    status, output = launched(2, words, MASTER_PORT=str(free_port()))
    assert status == 0, output
    learned_in_shards(output)


def test_a_wrong_policy_is_a_sentence_on_every_rank():
    for status, output in programs(2, [SGD, "--policy", "net=int9"]):
        assert status == 1 and "libcomm.errors.PolicyError" in output and "int9" in output
