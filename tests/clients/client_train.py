#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# The training of client_train.c in mpi4py and numpy: a network of two hidden layers, SGD with
# momentum, in every step one all-reduce for the gradients of each layer and one for the loss.
import argparse
import time

import numpy
from mpi4py import MPI

INPUTS, CLASSES, HELD_OUT = 1024, 10, 256

comm = MPI.COMM_WORLD
rank, ranks = comm.Get_rank(), comm.Get_size()


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=5)
    parser.add_argument("--hidden", type=int, default=1150)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rate", type=float, default=0.005)
    return parser.parse_args()


def samples(number, count, directions):
    """Classes are directions under noise; one label in five is drawn by lot."""
    dice = numpy.random.default_rng([7, number, rank])
    classes = dice.integers(CLASSES, size=count)
    x = directions[classes] + dice.standard_normal((count, INPUTS), dtype=numpy.float32)
    wrong = dice.random(count) < 0.2
    return x, numpy.where(wrong, dice.integers(CLASSES, size=count), classes)


class Network:
    def __init__(self, widths):
        dice = numpy.random.default_rng(42)
        self.weights, self.velocities = [], []
        for inputs, outputs in zip(widths, widths[1:]):
            weights = numpy.zeros((inputs + 1, outputs), dtype=numpy.float32)  # biases last
            if outputs != CLASSES:
                weights[:-1] = dice.standard_normal((inputs, outputs)) * (2 / inputs) ** 0.5
            self.weights.append(weights)
            self.velocities.append(numpy.zeros_like(weights))

    def forward(self, x, labels):
        """Mean loss, what goes into each layer, and the gradient of the logits."""
        inputs = []
        for weights in self.weights:
            inputs.append(x)
            x = x @ weights[:-1] + weights[-1]
            if weights is not self.weights[-1]:
                x = numpy.maximum(x, 0)
        x = numpy.exp(x - x.max(axis=1, keepdims=True))
        x /= x.sum(axis=1, keepdims=True)
        rows = numpy.arange(len(labels))
        loss = -numpy.log(x[rows, labels]).mean()
        x[rows, labels] -= 1
        return loss, inputs, x / len(labels)

    def step(self, x, labels, rate):
        loss, inputs, delta = self.forward(x, labels)
        gradients = [None] * len(self.weights)
        for i in reversed(range(len(self.weights))):
            gradients[i] = numpy.concatenate((inputs[i].T @ delta, delta.sum(axis=0)[None]))
            if i:
                delta = (delta @ self.weights[i][:-1].T) * (inputs[i] > 0)
            comm.Allreduce(MPI.IN_PLACE, gradients[i], op=MPI.SUM)
        for weights, velocities, gradient in zip(self.weights, self.velocities, gradients):
            velocities *= 0.9
            velocities += gradient / ranks
            weights -= rate * velocities
        return mean_over_ranks(loss)


def mean_over_ranks(value):
    return comm.allreduce(float(value), op=MPI.SUM) / ranks


def main():
    options = parse()
    directions = 0.2 * numpy.random.default_rng(1).standard_normal((CLASSES, INPUTS))
    directions = directions.astype(numpy.float32)
    network = Network([INPUTS, 4 * options.hidden, options.hidden, CLASSES])
    for step in range(options.warmup + options.steps):
        if step == options.warmup:
            begin = time.monotonic()
        loss = network.step(*samples(step, options.batch, directions), options.rate)
        if rank == 0 and step % 10 == 0:
            print(f"step {step} loss {loss:.9g}")
    rate = options.steps / (time.monotonic() - begin)
    final = mean_over_ranks(network.forward(*samples(1 << 40, HELD_OUT, directions))[0])
    if rank == 0:
        print(f"last loss {loss:.9g}\nfinal_loss {final:.9g}\nsteps_per_s {rate:.4g}")


main()
