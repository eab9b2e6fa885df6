# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""The examples run as their heads say, and come to their results."""

import importlib.util
import os
import pathlib
import re
import signal
import subprocess
import sys

import libcomm
import pytest
from test_meeting import needs_mpi
from worlds import ROOT, by_srun, by_torchrun, free_port, launched, programs

SGD = str(ROOT / "libcomm" / "python" / "examples" / "numpy_sgd.py")
DDP_MNIST = str(ROOT / "libcomm" / "python" / "examples" / "ddp_mnist.py")
ELASTIC = str(ROOT / "libcomm" / "python" / "examples" / "elastic_mnist.py")
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


@needs_torch
@pytest.mark.parametrize("size", [2, 4])
def test_numpy_sgd_learns_under_torchrun(size, tmp_path):
    status, output = by_torchrun(size, tmp_path, [SGD])
    assert status == 0 and accuracy_of(output, size) > 0.85, output


def test_numpy_sgd_learns_under_srun():
    (status, output), _ = by_srun(2, [SGD])
    assert status == 0 and accuracy_of(output, 2) > 0.85, output



def drawn(size, policy):
    """Arguments of a training on images that are drawn: as many steps on each number of ranks."""
    return f"--data nowhere --images {500 * size} --epochs 1 --nodes 2 --policy {policy}".split()


def learned(output, less):
    """By the example of DDP; less: how much less is sent than exactly."""
    assert float(re.search(r"accuracy ([0-9.]+)", output).group(1)) > 0.3, output
    sent, exact = re.search(r"between nodes: (\d+) bytes, exact (\d+)", output).groups()
    assert int(sent) < int(exact) / less, output


def progress_of(output):
    """Losses and accuracy of the example of DDP."""
    return re.findall(r"epoch \d+ +loss [0-9.]+|accuracy [0-9.]+ on \d+ ranks", output)


@needs_torch
def test_ddp_mnist_adds_fifteen_lines_at_most_to_ddp_which_trains_alike_without_them(tmp_path):
    lines = pathlib.Path(DDP_MNIST).read_text(encoding="utf-8").splitlines(keepends=True)
    ours = [line for line in lines if line.endswith("# libcomm\n")]
    plain = "".join(line for line in lines if line not in ours)
    assert 3 <= len(ours) <= 15, ours
    assert "libcomm" not in plain.split('"""', 2)[2]  # behind the head
    alone = tmp_path / "ddp_alone.py"
    alone.write_text(plain, encoding="utf-8")
    words = "--data nowhere --images 1000 --epochs 2".split()
    status, said = by_torchrun(2, tmp_path / "alone", [str(alone), *words])
    assert status == 0 and len(progress_of(said)) == 3, said
    status, with_libcomm = by_torchrun(2, tmp_path / "with", [DDP_MNIST, *words])
    # sums of two are the same in any order
    assert status == 0 and progress_of(with_libcomm) == progress_of(said), with_libcomm


@needs_torch
@needs_mpi
@pytest.mark.parametrize("size", [2, 4])
def test_ddp_mnist_learns_under_mpirun_with_top_k(size):
    words = [DDP_MNIST, *drawn(size, "net=topk:0.05+ef")]
    status, output = launched(size, words, MASTER_PORT=str(free_port()))
    assert status == 0, output
    learned(output, 5)


@needs_torch
@pytest.mark.parametrize("size", [2, 4])
def test_ddp_mnist_learns_under_torchrun_with_int8(size, tmp_path):
    words = [DDP_MNIST, *drawn(size, "net=int8")]
    status, output = by_torchrun(size, tmp_path, words)
    assert status == 0, output
    learned(output, 2)


@needs_torch
def test_ddp_mnist_learns_under_srun_with_int8():
    (status, output), _ = by_srun(2, [DDP_MNIST, *drawn(2, "net=int8")])
    assert status == 0, output
    learned(output, 2)


def has_fully_shard():
    try:
        from torch.distributed.fsdp import fully_shard  # noqa: F401
    except Exception:  # that of torch 1.13 cannot be imported by Python 3.11
        return False
    return True


needs_fully_shard = pytest.mark.skipif(
    not has_fully_shard(), reason="no torch, or one without fully_shard (2.6 has it)"
)


def learned_in_shards(output, size):
    assert f"on {size} ranks, parameters alike: True" in output
    learned(output, 1.1)


@needs_fully_shard
@pytest.mark.parametrize("size", [2, 4])
def test_fsdp_learns_under_torchrun_with_int8(size, tmp_path):
    status, output = by_torchrun(size, tmp_path, [FSDP, *drawn(size, "net=int8")])
    assert status == 0, output
    learned_in_shards(output, size)


@needs_fully_shard
@needs_mpi
@pytest.mark.parametrize("size", [2, 4])
def test_fsdp_learns_under_mpirun_with_int8(size):
    words = [FSDP, *drawn(size, "net=int8")]
    status, output = launched(size, words, MASTER_PORT=str(free_port()))
    assert status == 0, output
    learned_in_shards(output, size)


# ------------------------------------------------------------------------ elastic

LAUNCH = pathlib.Path(libcomm.library_path).parent / "tools" / "launch"
needs_launch = pytest.mark.skipif(not LAUNCH.exists(), reason="a build without tools/launch")


def pid_of(rank, launch):
    """Of a program that launch has started."""
    for pid in pathlib.Path(f"/proc/{launch}/task/{launch}/children").read_text().split():
        if f"\0RANK={rank}\0" in pathlib.Path(f"/proc/{pid}/environ").read_text():
            return int(pid)
    raise ProcessLookupError(f"there is no rank {rank}")


class Elastic:
    """The example under launch, whose output can be waited for."""

    def __init__(self, *options):
        images = "--data nowhere --images 960 --batch 8 --nodes 2 --min 2 --epochs 100000".split()
        words = [str(LAUNCH), "-n", "3", *options, "--", sys.executable, ELASTIC, *images]
        port = {"MASTER_PORT": str(free_port()), "LCOMM_TIMEOUT_S": "60"}
        self.said = ""
        self._run = subprocess.Popen(
            [*words, "--policy", "net=topk:0.05+ef"],
            env={**os.environ, **port},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def wait_for(self, pattern, times=1):
        while len(re.findall(pattern, self.said)) < times:
            line = self._run.stdout.readline()
            assert line, f"it has ended without {pattern!r}: {self.said}"
            self.said += line

    def signal(self, rank, number):
        os.kill(pid_of(rank, self._run.pid), number)

    def stop(self):
        self._run.send_signal(signal.SIGTERM)
        self.said += self._run.stdout.read()
        return self._run.wait()


@needs_torch
@needs_launch
def test_elastic_mnist_goes_on_without_rank_0_which_is_started_anew_and_joins():
    run = Elastic("--restarts", "1")
    run.wait_for("epoch 1 .* 3 ranks, replicas alike: True")
    run.signal(0, signal.SIGKILL)
    run.wait_for("1 lost, 0 left, 0 joined; 2 go on after step")
    run.wait_for("0 lost, 0 left, 1 joined; 3 go on after step")
    run.wait_for("3 ranks, replicas alike: True", times=2 + len(re.findall("3 ranks, ", run.said)))
    assert run.stop() == 1 and "alike: False" not in run.said, run.said
    # who is told a step before the others has left in order
    assert len(re.findall("ranks ask to leave, and . are too few for min=2", run.said)) in (2, 3)


@needs_torch
@needs_launch
def test_elastic_mnist_goes_on_without_a_rank_that_leaves():
    run = Elastic("--elastic")
    run.wait_for("epoch 1 .* 3 ranks, replicas alike: True")
    run.signal(1, signal.SIGTERM)
    run.wait_for("0 lost, 1 left, 0 joined; 2 go on after step")
    run.wait_for("2 ranks, replicas alike: True", times=2)
    run.stop()
    assert "Traceback" not in run.said and "launch: rank" not in run.said, run.said


@needs_torch
def test_elastic_mnist_learns_under_torchrun(tmp_path):
    status, output = by_torchrun(2, tmp_path, [ELASTIC, *drawn(2, "net=int8"), "--min", "2"])
    assert status == 0 and "replicas alike: True" in output, output
    assert float(re.search(r"accuracy ([0-9.]+) on 2", output).group(1)) > 0.3, output


def test_a_wrong_policy_is_a_sentence_on_every_rank():
    for status, output in programs(2, [SGD, "--policy", "net=int9"]):
        assert status == 1 and "libcomm.errors.PolicyError" in output and "int9" in output
