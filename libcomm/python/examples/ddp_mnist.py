# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""A convolutional network on Fashion-MNIST, by DistributedDataParallel with libcomm's hook.
    torchrun --nproc-per-node 4 ddp_mnist.py --policy net=int8 --nodes 2
    mpirun -np 4 python3 ddp_mnist.py --policy net=topk:0.01+ef --nodes 2
    MASTER_ADDR=node1 srun -N 2 -n 4 python3 ddp_mnist.py --policy net=int8
Lines that end with a comment "libcomm" are all that it adds; without them DDP sums by itself:
    sed '/# libcomm$/d' ddp_mnist.py >ddp_alone.py && torchrun --nproc-per-node 4 ddp_alone.py
Without the files of Fashion-MNIST (make data) images are drawn: of each class another pattern.
"""

import argparse
import gzip
import os
import pathlib

import libcomm.torch  # libcomm
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy


def images_of(folder, part, count):
    """Images and labels as tensors; drawn ones where the folder has no files."""
    file = pathlib.Path(folder) / f"{part}-images-idx3-ubyte.gz"
    if not file.exists():
        dice = torch.Generator().manual_seed(len(part))
        labels = torch.randint(0, 10, (count,), generator=dice)
        patterns = torch.randn(10, 1, 28, 28, generator=torch.Generator().manual_seed(1))
        return patterns[labels] + torch.randn(count, 1, 28, 28, generator=dice), labels
    pixels = bytearray(gzip.decompress(file.read_bytes())[16:])
    labels = gzip.decompress(file.with_name(f"{part}-labels-idx1-ubyte.gz").read_bytes())[8:]
    images = torch.frombuffer(pixels, dtype=torch.uint8).float().reshape(-1, 1, 28, 28) / 255
    return images[:count], torch.tensor(list(labels[:count]))


class Net(nn.Sequential):
    def __init__(self):
        super().__init__(
            *(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(16, 32, 3), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Flatten(), nn.Linear(800, 128), nn.ReLU(), nn.Linear(128, 10)),
        )


def train(model, images, labels, options):
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr, momentum=0.9)
    rank, size = dist.get_rank(), dist.get_world_size()
    whole = len(images) - len(images) % (options.batch * size)
    for epoch in range(options.epochs):
        order = torch.randperm(len(images), generator=torch.Generator().manual_seed(epoch))
        for batch in order[:whole].split(options.batch * size):
            mine = batch[rank::size]
            optimizer.zero_grad()
            loss = cross_entropy(model(images[mine]), labels[mine])
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch + 1}  loss {loss.item():.4f}", flush=True)


def options_of(documentation):
    """Options of an example, which adds its own."""
    parser = argparse.ArgumentParser(description=documentation.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32, help="images of each rank in a step")
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--data", default="data/fashion-mnist", help="folder of Fashion-MNIST")
    parser.add_argument("--images", type=int, default=60000)
    parser.add_argument("--policy", help="what is compressed; LCOMM_POLICY, or exact")  # libcomm
    parser.add_argument("--nodes", type=int, default=0, help="ranks pose as so many")  # libcomm
    return parser


def take_from_launcher():
    """The variables of torchrun, where mpirun or srun has set its own, or nobody any."""
    ranks = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
    sizes = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")
    local_ranks = ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")
    there = [pair for pair in zip(ranks, sizes) if pair[0] in os.environ]
    rank, size = there[0] if there else ("", "")
    local = [os.environ[name] for name in local_ranks if there and name in os.environ]
    os.environ.setdefault("RANK", os.environ.get(rank, "0"))
    os.environ.setdefault("WORLD_SIZE", os.environ.get(size, "1"))
    os.environ.setdefault("LOCAL_RANK", local[0] if local else "0")
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")  # several hosts: that of rank 0
    os.environ.setdefault("MASTER_PORT", "29500")


def main():
    options = options_of(__doc__).parse_args()
    take_from_launcher()
    cuda = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")
    dist.init_process_group("nccl" if cuda else "gloo")

    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(Net().to(device))
    state = libcomm.torch.State(options.policy, model, nodes=options.nodes)  # libcomm
    model.register_comm_hook(state, libcomm.torch.compress)  # libcomm

    train(model, *(t.to(device) for t in images_of(options.data, "train", options.images)), options)
    images, labels = (t.to(device) for t in images_of(options.data, "t10k", 10000))
    if dist.get_rank() == 0:
        right = (model.module(images).argmax(1) == labels).float().mean().item()
        print(f"accuracy {right:.4f} on {dist.get_world_size()} ranks")
        sent, exact = state.comm.stats().sent_bytes, state.comm.stats().exact_bytes  # libcomm
        print(f"between nodes: {sent['net']} bytes, exact {exact['net']}")  # libcomm
    state.close()  # libcomm
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
