# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Seconds of a training step by DistributedDataParallel, with different sums in turn.

Started on each rank by mpirun. Rank 0 prints a line of JSON for each way: "gloo" is what DDP does
without libcomm, the others are policies of libcomm's hook.
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
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

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
        self.states = {
            way: None if way == "gloo" else libcomm.torch.State(way, model=model) for way in ways
        }
        self.way = ways[0]

    def take(self, bucket):
        state = self.states[self.way]
        if state is None:
            return default_hooks.allreduce_hook(None, bucket)
        return libcomm.torch.compress(state, bucket)

    def close(self):
        for state in self.states.values():
            if state is not None:
                state.close()


def hook(switch: Switch, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    return switch.take(bucket)


def timed(model, optimizer, x, y, steps):
    seconds = []
    for _ in range(steps):
        began = time.perf_counter()
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        seconds.append(time.perf_counter() - began)
    return seconds


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
    seconds = {way: [] for way in options.ways}
    for number in range(-1, options.rounds):
        for switch.way in options.ways:
            dist.barrier()
            took = timed(model, optimizer, x, y, options.steps)
            seconds[switch.way] += took if number >= 0 else []  # the first round is no measure
    if dist.get_rank() == 0:
        count = sum(p.numel() for p in model.parameters())
        for way, took in seconds.items():
            words = {"way": way, "step_s": statistics.median(took), "parameters": count}
            print(json.dumps({**words, "fastest_s": min(took), "slowest_s": max(took)}), flush=True)
    switch.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
