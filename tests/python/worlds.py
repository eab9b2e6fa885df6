# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Worlds of forked ranks, and programs that are started by hand, for tests."""

import os
import pathlib
import pickle
import selectors
import signal
import socket
import subprocess
import sys
import time
import traceback

import libcomm

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATIENCE_S = float(os.environ.get("TEST_PART_S", "600"))
_ports = iter(range(12000 + os.getpid() % 8000, 20000 + 8000))


def free_port():
    """A port at which nobody listens, and that the system gives to no connection."""
    for port in _ports:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port
    raise RuntimeError("no port is free")


def environment(size, **more):
    """What ranks need to meet, but for RANK."""
    return {
        "WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1",
        "LCOMM_PORT": str(free_port()),
        "LCOMM_TOKEN": f"python-{os.getpid()}",
        **more,
    }


class Lost(Exception):
    """A rank ended without a word."""


def _child(rank, work, pipe):
    os.environ["RANK"] = str(rank)
    try:
        said = (True, work(rank))
    except BaseException:
        said = (False, traceback.format_exc())
    with os.fdopen(pipe, "wb") as out:
        out.write(pickle.dumps(said))
    os._exit(0)


def _read_all(pipes):
    """What was written into each pipe, until all are closed."""
    said = {pipe: b"" for pipe in pipes}
    end = time.monotonic() + PATIENCE_S
    with selectors.DefaultSelector() as selector:
        for pipe in pipes:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map() and time.monotonic() < end:
            for key, _ in selector.select(1):
                part = os.read(key.fd, 1 << 16)
                said[key.fd] += part
                if not part:
                    selector.unregister(key.fd)
        hung = [pipes.index(key.fd) for key in selector.get_map().values()]
    return [said[pipe] for pipe in pipes], hung


def forked(size, work, **variables):
    """What work(rank) returned on each rank; Lost for a rank that died. Raises if one raised."""
    saved = dict(os.environ)
    os.environ.update(environment(size, **variables))
    children, pipes = [], []
    for rank in range(size):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            _child(rank, work, write)
        os.close(write)
        children.append(child)
        pipes.append(read)
    os.environ.clear()
    os.environ.update(saved)
    said, hung = _read_all(pipes)
    for child, pipe in zip(children, pipes):
        if hung:
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(pipe)
    assert not hung, f"ranks {hung} did not end within {PATIENCE_S} s"
    answers = [pickle.loads(words) if words else (True, Lost()) for words in said]
    for rank, (is_well, answer) in enumerate(answers):
        assert is_well, f"rank {rank}: {answer}"
    return [answer for _, answer in answers]


def world(size, work, variables=None, **options):
    """The same with a communicator: work(comm). options: of Communicator.from_env."""

    def rank(_rank):
        with libcomm.Communicator.from_env(**options) as comm:
            return work(comm)

    return forked(size, rank, **(variables or {}))


def raised(call, *arguments, **options):
    """(name of the class, sentence) of what a call raises."""
    try:
        call(*arguments, **options)
    except libcomm.Error as trouble:
        return type(trouble).__name__, str(trouble)
    return None, "nothing was raised"


def _output(process):
    try:
        return process.communicate(timeout=PATIENCE_S)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[0] + "\n(no end)"


def _started(arguments, environments):
    """[(exit status, output)] of a Python program, once in each environment."""
    started = [
        subprocess.Popen(
            [sys.executable, *arguments],
            env={**os.environ, **each},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for each in environments
    ]
    outputs = [_output(process) for process in started]
    return [(process.returncode, text) for process, text in zip(started, outputs)]


def programs(size, arguments, **variables):
    """[(exit status, output)] of a Python program on each rank, started by hand."""
    shared = environment(size, **variables)
    return _started(arguments, [{**shared, "RANK": str(rank)} for rank in range(size)])


def by_srun(size, arguments, **variables):
    """The same with the variables of srun."""
    words = {"NTASKS": size, "JOB_ID": os.getpid(), "STEP_ID": 0, "STEP_NUM_NODES": 1}
    shared = {"SLURM_" + name: str(value) for name, value in words.items()}
    ports = {"MASTER_PORT": str(free_port()), "LCOMM_PORT": str(free_port())}
    ranks = [{"SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank)} for rank in range(size)]
    return _started(arguments, [{**shared, **ports, **variables, **each} for each in ranks])


def by_torchrun(size, folder, arguments):
    """(exit status, output) of a Python program on all ranks; folder: a new one for their words."""
    # what goes where is said by rank: torch 1.13 does not read less on Python 3.11
    each = ",".join(f"{rank}:1" for rank in range(size))
    words = f"--nproc_per_node {size} --redirects {each} --tee {each}"
    words += f" --log_dir {folder} --master_port {free_port()}"
    run = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", *words.split(), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_S,
    )
    return run.returncode, run.stdout


def launched(size, arguments, **variables):
    """(exit status, output) of a Python program on all ranks, by tools/build/launch."""
    run = subprocess.run(
        [str(ROOT / "tools/build/launch"), str(size), sys.executable, *arguments],
        env={**os.environ, "LCOMM_PORT": str(free_port()), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_S,
    )
    return run.returncode, run.stdout
