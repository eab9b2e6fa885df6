# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""How ranks meet: through MPI, through a store, through an all-gather in Python."""

import os
import pathlib
import re
import time

import libcomm
import numpy
import pytest
from worlds import forked, launched, programs, raised

SUM = """
total = comm.allreduce(numpy.array([comm.rank + 1.0]))[0]
print(f"rank {comm.rank} of {comm.size}: {total}, {comm.transports}")
"""
ALONE = "import libcomm, numpy\ncomm = libcomm.Communicator.from_mpi()\n" + SUM
WITH_MPI4PY = """
from mpi4py import MPI
import libcomm, numpy
turned = MPI.COMM_WORLD.Split(0, -MPI.COMM_WORLD.Get_rank())
comm = libcomm.Communicator.from_mpi(turned, policy="net=int8")
assert comm.rank == comm.size - 1 - MPI.COMM_WORLD.Get_rank()
turned.Free()
""" + SUM
NO_MPI4PY = """
import libcomm
try:
    libcomm.Communicator.from_mpi(7)
except libcomm.ArgumentError as trouble:
    print(trouble)
"""
FROM_ENVIRONMENT = "import libcomm, numpy\ncomm = libcomm.Communicator.from_env()\n" + SUM

has_mpi = os.environ.get("MPI", "openmpi") != "none" and any(
    pathlib.Path(libcomm.library_path).parent.glob("libcomm-with-mpi.so*")
)
needs_mpi = pytest.mark.skipif(not has_mpi, reason="a build without MPI")


def lines_of(size):
    total = size * (size + 1) / 2
    return [f"rank {rank} of {size}: {total}" for rank in range(size)]


def check(size, status, output):
    said = re.findall(r"rank \d+ of \d+: [0-9.]+", output)  # ranks may share a line
    assert (status, sorted(said)) == (0, lines_of(size)), output


@needs_mpi
@pytest.mark.parametrize("size", [1, 4])
def test_ranks_of_mpirun_meet_over_mpi_without_mpi4py(size):
    check(size, *launched(size, ["-c", ALONE]))


@needs_mpi
def test_ranks_of_mpirun_meet_by_the_environment():
    check(2, *launched(2, ["-c", FROM_ENVIRONMENT]))


@needs_mpi
def test_ranks_of_mpi4py_are_numbered_as_its_communicator():
    pytest.importorskip("mpi4py", reason="no mpi4py (package python3-mpi4py)")
    status, output = launched(2, ["-c", WITH_MPI4PY])
    if "was built for" in output:
        pytest.skip("mpi4py is of another MPI than this build: " + output.splitlines()[-1][:200])
    check(2, status, output)


@needs_mpi
def test_what_is_no_communicator_of_mpi4py_is_refused():
    status, output = launched(1, ["-c", NO_MPI4PY])
    assert status == 0 and "7 is no communicator of mpi4py" in output


def test_ranks_meet_by_the_environment_of_torchrun():
    """RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, where torchrun itself listens."""
    for rank, (status, output) in enumerate(programs(2, ["-c", FROM_ENVIRONMENT])):
        assert status == 0 and f"rank {rank} of 2: 3.0" in output


class Store:
    """As torch.distributed.FileStore; get() waits."""

    def __init__(self, folder, patience_s=60.0):
        self.folder, self.patience_s = folder, patience_s

    def _file(self, key):
        return self.folder / key.replace("/", "|")

    def set(self, key, value):
        new = self.folder / f"new {os.getpid()}"
        new.write_bytes(value)
        new.rename(self._file(key))

    def get(self, key):
        end = time.monotonic() + self.patience_s
        while not self._file(key).exists():
            if time.monotonic() > end:
                raise TimeoutError(f"nobody has set {key}")
            time.sleep(0.001)
        return self._file(key).read_bytes()

    def add(self, key, number):
        total = int(self.get(key)) + number if self._file(key).exists() else number
        self.set(key, str(total).encode())
        return total


@pytest.mark.parametrize("size", [1, 2, 4])
def test_ranks_meet_in_a_store_as_often_as_they_like(size, tmp_path):
    def work(rank):
        store, totals = Store(tmp_path), []
        for _ in range(3):
            with libcomm.Communicator.from_store(store, rank, size) as comm:
                totals.append(float(comm.allreduce(numpy.array([rank + 1.0]))[0]))
        return totals

    assert forked(size, work) == [[size * (size + 1) / 2] * 3] * size


def test_a_store_that_fails_is_the_cause_of_the_error(tmp_path):
    def work(rank):
        try:
            libcomm.Communicator.from_store(Store(tmp_path, 0.5), rank, 3)
        except libcomm.Error as trouble:
            return str(trouble), type(trouble.__cause__).__name__

    for sentence, cause in forked(2, work):  # the third does not come
        assert "nobody has set" in sentence and cause == "TimeoutError"


def test_an_allgather_of_the_wrong_length_is_refused():
    kind, sentence = raised(libcomm.Communicator.from_allgather, 0, 2, lambda mine: [mine])
    assert kind and "for 2 ranks" in sentence


def test_torch_stores_serve(tmp_path):
    distributed = pytest.importorskip("torch.distributed", reason="no torch (python3-torch)")

    def work(rank):
        store = distributed.FileStore(str(tmp_path / "store"), 2)
        with libcomm.Communicator.from_store(store, rank, 2) as comm:
            return float(comm.allreduce(numpy.array([1.0]))[0])

    assert forked(2, work) == [2.0, 2.0]
