# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Train a few steps by DDP or FSDP over NCCL, on ranks that share a device, and compare the weights
with those of one process that sees the data of all. Exit status 1 where they differ, or where ranks
have different ones.

usage: nccl_torch.py ddp|fsdp [ERROR], as a rank of torchrun or mpirun; weights may be off by ERROR
(default 1e-4)
"""

import os
import sys

import torch
import torch.distributed as dist

STEPS, WIDTH, BATCH, RATE = 5, 256, 8, 0.05


def number(*names):
    """The first of some variables of launchers that is set."""
    return int(next(os.environ[name] for name in names if name in os.environ))


def make_model():
    torch.manual_seed(1)
    layers = [torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, 1)]
    return torch.nn.Sequential(*layers).cuda()


def data(rank, step):
    generator = torch.Generator().manual_seed(1000 * step + rank)
    return torch.randn(BATCH, WIDTH, generator=generator).cuda()


def train(model, parts):
    """`parts(step)` are the inputs whose mean loss a step goes down."""
    optimiser = torch.optim.SGD(model.parameters(), lr=RATE)
    for step in range(STEPS):
        optimiser.zero_grad()
        inputs = parts(step)
        (sum(model(x).square().mean() for x in inputs) / len(inputs)).backward()
        optimiser.step()


def wrap(kind):
    if kind == "ddp":
        return torch.nn.parallel.DistributedDataParallel(make_model(), device_ids=[0])
    from torch.distributed.fsdp import FullyShardedDataParallel

    return FullyShardedDataParallel(make_model(), device_id=0)


def weights(model, kind):
    if kind == "ddp":
        return [p.detach().clone() for p in model.module.parameters()]
    from torch.distributed.fsdp import FullyShardedDataParallel

    with FullyShardedDataParallel.summon_full_params(model):
        return [p.detach().clone().view(-1) for p in model.parameters()]


def main():
    kind = sys.argv[1]
    allowed = float(sys.argv[2]) if len(sys.argv) > 2 else 1e-4
    rank = number("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
    size = number("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
    torch.cuda.set_device(0)
    dist.init_process_group("nccl", rank=rank, world_size=size)
    model, alone = wrap(kind), make_model()
    train(model, lambda step: [data(rank, step)])
    train(alone, lambda step: [data(r, step) for r in range(size)])
    mine = torch.cat([w.reshape(-1) for w in weights(model, kind)])
    wanted = torch.cat([p.detach().reshape(-1) for p in alone.parameters()])
    error = (mine - wanted).abs().max().item()
    others = [torch.empty_like(mine) for _ in range(size)]
    dist.all_gather(others, mine)
    equal = all(torch.equal(mine, other) for other in others)
    replicas = "equal" if equal else "DIFFER"
    print(f"{kind}, rank {rank} of {size}: off by {error:g}, replicas {replicas}")
    dist.destroy_process_group()
    return 0 if error < allowed and equal else 1


if __name__ == "__main__":
    sys.exit(main())
