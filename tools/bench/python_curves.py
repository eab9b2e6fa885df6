# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""What trainings by DistributedDataParallel come to: libcomm's hook, PyTorch's own hooks, none.

python_curves.py MODEL STEPS DATA WAY...: on each rank, which finds the others by the variables of
torchrun. Rank 0 prints a line of JSON for each way: the loss on data that was not trained on as it
fell, how far the weights are from those of the first way after 10 steps (later the least rounding
has grown), and whether all ranks have the same at the end.
"""

import gzip
import hashlib
import json
import pathlib
import sys

import libcomm.torch
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

BATCH, CONTEXT, TEST_EVERY, EARLY = 16, 48, 50, 10


class Cnn(nn.Sequential):
    def __init__(self):
        super().__init__(
            *(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(16, 32, 3), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Flatten(), nn.Linear(800, 128), nn.ReLU(), nn.Linear(128, 10)),
        )


class Transformer(nn.Module):
    def __init__(self, channels=96, heads=4, blocks=2):
        super().__init__()
        self.embedding = nn.Embedding(256, channels)
        self.position = nn.Parameter(torch.zeros(CONTEXT, channels))
        block = nn.TransformerEncoderLayer(channels, heads, 4 * channels, 0.0, batch_first=True)
        self.blocks = nn.TransformerEncoder(block, blocks, enable_nested_tensor=False)
        self.last = nn.Linear(channels, 256)
        self.behind = torch.full((CONTEXT, CONTEXT), float("-inf")).triu(1)

    def forward(self, x):
        return self.last(self.blocks(self.embedding(x) + self.position, self.behind))


def images(folder):
    """(batch of a generator, batch for the test)."""
    file = pathlib.Path(folder) / "fashion-mnist" / "train-images-idx3-ubyte.gz"
    if file.exists():
        pixels = bytearray(gzip.decompress(file.read_bytes())[16:])
        labels = gzip.decompress(file.with_name("train-labels-idx1-ubyte.gz").read_bytes())[8:]
        x = torch.frombuffer(pixels, dtype=torch.uint8).reshape(-1, 1, 28, 28)
        y = torch.tensor(list(labels))
    else:
        dice = torch.Generator().manual_seed(5)
        y = torch.randint(0, 10, (20000,), generator=dice)
        patterns = torch.randn(10, 1, 28, 28, generator=dice)
        x = 60 * (patterns[y] + 2 * torch.randn(len(y), 1, 28, 28, generator=dice)) + 128
    taught, tested = slice(0, -1000), slice(-1000, None)

    def batch(dice):
        some = torch.randint(0, len(y[taught]), (BATCH,), generator=dice)
        return x[taught][some].float() / 255, y[taught][some]

    return batch, (x[tested].float() / 255, y[tested])


def text(folder):
    file = pathlib.Path(folder) / "text" / "tinyshakespeare.txt"
    if file.exists():
        words = torch.tensor(list(file.read_bytes()[:600000]))
    else:  # each byte follows from the one before, but for some
        dice = torch.Generator().manual_seed(5)
        steps = torch.randint(1, 4, (300000,), generator=dice)
        words = steps.cumsum(0) % 61

    def windows(part, count, dice):
        at = torch.randint(0, len(part) - CONTEXT - 1, (count,), generator=dice)
        rows = torch.stack([part[i : i + CONTEXT + 1] for i in at])
        return rows[:, :-1], rows[:, 1:].reshape(-1)

    taught, tested = words[:-50000], words[-50000:]
    test = windows(tested, 64, torch.Generator().manual_seed(6))
    return lambda dice: windows(taught, BATCH, dice), test


def register(model, way):
    """The hook of a way; returns what is to be closed."""
    if way == "fp16_compress_hook":
        model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    elif way == "powerSGD_hook":
        rank = {"matrix_approximation_rank": 2, "start_powerSGD_iter": 10}
        state = powerSGD_hook.PowerSGDState(None, **rank)
        model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    elif way != "gloo":
        state = libcomm.torch.State(way, model=model)
        model.register_comm_hook(state, libcomm.torch.compress)
        return state
    return None


def weights_of(model):
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


def loss_of(model, x, y):
    return nn.functional.cross_entropy(model(x).flatten(0, -2), y)


def trained(model_of, batch, test, way, steps):
    """(weights after the first steps, and at the end, losses on the test)."""
    torch.manual_seed(1)
    model = nn.parallel.DistributedDataParallel(model_of())
    state = register(model, way)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    dice, curve = torch.Generator().manual_seed(10 + dist.get_rank()), []
    early = None
    for step in range(1, steps + 1):
        optimizer.zero_grad()
        loss_of(model, *batch(dice)).backward()
        optimizer.step()
        early = weights_of(model) if step == min(EARLY, steps) else early
        if step % TEST_EVERY == 0 or step == steps:
            with torch.no_grad():
                curve.append(round(loss_of(model.module.eval(), *test).item(), 5))
            model.train()
    if state is not None:
        state.close()
    return early, weights_of(model), curve


def main():
    name, steps, folder, *ways = sys.argv[1:]
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    batch, test = images(folder) if name == "cnn" else text(folder)
    first = None
    for way in ways:
        model = Cnn if name == "cnn" else Transformer
        early, weights, curve = trained(model, batch, test, way, int(steps))
        first = early if first is None else first
        hashes = [None] * dist.get_world_size()
        dist.all_gather_object(hashes, hashlib.sha256(weights.numpy().tobytes()).hexdigest())
        if dist.get_rank() == 0:
            off = ((early - first).norm() / first.norm()).item()
            alike = int(len(set(hashes)) == 1)
            words = {"model": name, "way": way, "loss": curve[-1], "off": off, "alike": alike}
            print(json.dumps({**words, "curve": curve}), flush=True)
    dist.destroy_process_group()


main()
