# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Samples per second of the trainer's models in PyTorch on two threads of the CPU.

torch_train.py cnn|gpt [TEXT]: prints one number. Same layers, batch of two ranks and optimiser as
`train`; the numbers of the images do not matter for the speed.
"""
import sys
import time

import torch
from torch import nn
from torch.nn import functional

WARM, STEPS = 20, 150


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.dense1 = nn.Linear(32 * 7 * 7, 128)
        self.dense2 = nn.Linear(128, 10)

    def forward(self, x):
        x = functional.relu(functional.max_pool2d(self.conv1(x), 2))
        x = functional.relu(functional.max_pool2d(self.conv2(x), 2))
        return self.dense2(functional.relu(self.dense1(x.flatten(1))))


class Block(nn.Module):
    def __init__(self, channels, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(channels), nn.LayerNorm(channels)
        self.qkv = nn.Linear(channels, 3 * channels)
        self.project = nn.Linear(channels, channels)
        self.mlp1 = nn.Linear(channels, 4 * channels)
        self.mlp2 = nn.Linear(4 * channels, channels)

    def attend(self, x):
        batch, length, channels = x.shape
        parts = self.qkv(x).view(batch, length, 3, self.heads, channels // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / (channels // self.heads) ** 0.5
        behind = torch.ones(length, length, dtype=torch.bool).triu(1)
        out = scores.masked_fill(behind, float("-inf")).softmax(-1) @ v
        return self.project(out.transpose(1, 2).reshape(batch, length, channels))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.mlp2(functional.gelu(self.mlp1(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, blocks=4, heads=4, channels=128, context=64):
        super().__init__()
        self.embedding = nn.Embedding(256, channels)
        self.position = nn.Parameter(torch.zeros(context, channels))
        self.blocks = nn.Sequential(*[Block(channels, heads) for _ in range(blocks)])
        self.norm = nn.LayerNorm(channels)

    def forward(self, x):
        x = self.norm(self.blocks(self.embedding(x) + self.position))
        return x @ self.embedding.weight.t()


def windows(path, batch, context):
    if path == "builtin":
        text = torch.randint(0, 256, (1 << 20,))
    else:
        text = torch.tensor(list(open(path, "rb").read()), dtype=torch.long)
    while True:
        at = torch.randint(0, len(text) - context - 1, (batch,))
        yield (torch.stack([text[i : i + context] for i in at]),
               torch.stack([text[i + 1 : i + context + 1] for i in at]))


def images(batch):
    while True:
        yield torch.rand(batch, 1, 28, 28), torch.randint(0, 10, (batch,))


def main():
    torch.set_num_threads(2)
    torch.manual_seed(1)
    if sys.argv[1] == "cnn":
        model, batch = Cnn(), 64
        optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
        source = images(batch)
    else:
        model, batch = Gpt(), 32
        optimizer = torch.optim.AdamW(model.parameters(), 0.002, weight_decay=0.1)
        source = windows(sys.argv[2], batch, 64)
    for step in range(WARM + STEPS):
        if step == WARM:
            began = time.monotonic()
        x, y = next(source)
        logits = model(x)
        loss = functional.cross_entropy(logits.flatten(0, -2), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(round(STEPS * batch / (time.monotonic() - began), 1))


main()
