# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Seconds of a training step by DistributedDataParallel, with different sums in turn.

Started on each rank by mpirun. Rank 0 prints a line of JSON for each way: "gloo" is what DDP does
without libcomm, "nothing" is no sum at all, the others are policies of libcomm's hook. The first
step after another way is not counted. processor_s is what all threads of rank 0 take of the
processors in a step.
"""

import argparse
import json
import os
import statistics
import time

import libcomm.torch
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import debugging_hooks, default_hooks

WIDTHS = {"small": [784, 1024, 1000, 10], "large": [1024, 4096, 4096, 1000]}


def take_from_mpirun():
    names = {"RANK": "RANK", "WORLD_SIZE": "SIZE", "LOCAL_RANK": "LOCAL_RANK"}
    for name, theirs in names.items():
        os.environ.setdefault(name, os.environ.get("OMPI_COMM_WORLD_" + theirs, "0"))


def net(widths):
    torch.manual_seed(1)
    layers = []
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class Switch:
    """The hook of one model, which calls another for each way."""

    def __init__(self, model, ways):
        ours = [way for way in ways if way not in ("gloo", "nothing")]
        self.states = {way: libcomm.torch.State(way, model=model) for way in ours}
        self.way = ways[0]

    def take(self, bucket):
        if self.way == "gloo":
            return default_hooks.allreduce_hook(None, bucket)
        if self.way == "nothing":
            return debugging_hooks.noop_hook(None, bucket)
        return libcomm.torch.compress(self.states[self.way], bucket)

    def close(self):
        for state in self.states.values():
            state.close()


def hook(switch: Switch, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    return switch.take(bucket)


def timed(model, optimizer, x, y, steps):
    """(seconds, seconds of processors) of each step."""
    took = []
    for _ in range(steps):
        began, used = time.perf_counter(), time.process_time()
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        took.append((time.perf_counter() - began, time.process_time() - used))
    return took


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=WIDTHS, default="small")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=2, help="of a round")
    parser.add_argument("ways", nargs="+")
    options = parser.parse_args()
    take_from_mpirun()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    widths = WIDTHS[options.size]
    model = nn.parallel.DistributedDataParallel(net(widths))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    switch = Switch(model, options.ways)
    model.register_comm_hook(switch, hook)
    torch.manual_seed(dist.get_rank())
    x, y = torch.randn(2, widths[0]), torch.randint(0, widths[-1], (2,))
    took = {way: [] for way in options.ways}
    for number in range(-1, options.rounds):
        for switch.way in options.ways:
            dist.barrier()
            # Plans are made, and buckets anew; later, TCP forgets windows of idle connections.
            timed(model, optimizer, x, y, 1)
            if number >= 0:
                took[switch.way] += timed(model, optimizer, x, y, options.steps)
    if dist.get_rank() == 0:
        count = sum(p.numel() for p in model.parameters())
        for way, steps in took.items():
            seconds, used = zip(*steps)
            words = {"way": way, "step_s": statistics.median(seconds), "parameters": count}
            words.update(fastest_s=min(seconds), slowest_s=max(seconds))
            print(json.dumps({**words, "processor_s": statistics.median(used)}), flush=True)
    switch.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
