# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""What test_torchrun.py starts on each rank: prints `rank R: CASE: what came of it` of each."""

import contextlib
import os
import signal
import sys

import libcomm
import numpy
from ddp_models import DDP, Known, Net, distributed, hooked, raised, steps_of, torch, trained


def say(case, words):
    sys.stdout.write(f"rank {os.environ['RANK']}: {case}: {words}\n")
    sys.stdout.flush()


def train(rank, size):
    gloo = trained(DDP(Net()), rank)
    for policy in ("", "net=int8 min=0"):
        model = DDP(Net(), bucket_cap_mb=0.1)
        with contextlib.closing(hooked(model, policy)):
            ours = trained(model, rank)
        said = [None] * size
        distributed.all_gather_object(said, ours.tobytes())
        is_alike = all(each == said[0] for each in said)
        say(policy or "exact", f"alike {is_alike}, off gloo's by {abs(ours - gloo).max():.1e}")


def meet(size):
    with libcomm.Communicator.from_env() as comm:
        say("environment", float(comm.allreduce(numpy.ones(1))[0]) == size == comm.size)


def refuse(rank):
    say("wrong policy", raised(libcomm.torch.State, "net=int9"))
    say("other policies", raised(libcomm.torch.State, "net=int8" if rank else "net=bf16"))
    comm = libcomm.torch.State("").comm
    say("other shapes", raised(comm.allreduce, numpy.ones(10 + (rank == 1), numpy.float32)))


def lose(rank):
    """torchrun ends all ranks when one has ended, so these are deaf to it."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    model = DDP(Known())
    hooked(model, "net=int8")
    steps_of(model, rank, range(2))
    distributed.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    say("lost rank", raised(lambda: [steps_of(model, rank, range(2)) for _ in range(100)]))
    os._exit(0)  # gloo has lost it, too


torch.set_num_threads(1)
distributed.init_process_group("gloo")
here = distributed.get_rank(), distributed.get_world_size()
train(*here)
meet(here[1])
refuse(here[0])
lose(here[0])
