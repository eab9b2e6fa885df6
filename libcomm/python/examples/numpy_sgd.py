# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Softmax regression in numpy, trained by all ranks together: each has data of its own, and the
gradients are averaged by libcomm. Started by any of
    torchrun --nproc-per-node 4 numpy_sgd.py
    mpirun -np 4 python3 numpy_sgd.py --policy net=topk:0.05+ef --nodes 2
    MASTER_ADDR=node1 srun -N 2 -n 4 python3 numpy_sgd.py --policy net=int8
    python3 numpy_sgd.py
"""

import argparse

import libcomm
import numpy

INPUTS, CLASSES = 256, 10


def samples(dice, count, directions):
    """Points around the direction of their class."""
    labels = dice.integers(CLASSES, size=count)
    return directions[labels] + dice.standard_normal((count, INPUTS)), labels


def loss_and_gradient(weights, points, labels):
    scores = points @ weights
    scores = numpy.exp(scores - scores.max(axis=1, keepdims=True))
    shares = scores / scores.sum(axis=1, keepdims=True)
    rows = numpy.arange(len(labels))
    loss = -numpy.log(shares[rows, labels]).mean()
    shares[rows, labels] -= 1
    return loss, (points.T @ shares / len(labels)).astype(numpy.float32)


def train(comm, options):
    directions = 0.3 * numpy.random.default_rng(1).standard_normal((CLASSES, INPUTS))
    dice = numpy.random.default_rng([2, comm.rank])
    weights = numpy.zeros((INPUTS, CLASSES), numpy.float32)
    residual = comm.residual(weights.size, op="avg", name="weights")
    for step in range(options.steps):
        loss, gradient = loss_and_gradient(weights, *samples(dice, options.batch, directions))
        residual.allreduce(gradient)  # in place: now it is the average over the ranks
        weights -= options.rate * gradient
        if comm.rank == 0 and step % 20 == 0:
            print(f"step {step:3d}  loss {loss:.4f}")
    points, labels = samples(numpy.random.default_rng(3), 2000, directions)
    return weights, ((points @ weights).argmax(axis=1) == labels).mean()


def are_alike(comm, weights):
    """Do all ranks hold the same bits?"""
    of_rank_0 = comm.broadcast(weights.copy())
    differs = numpy.array([not numpy.array_equal(of_rank_0, weights)], dtype=numpy.uint8)
    return not comm.allreduce(differs, op="max")[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=32, help="samples of each rank in a step")
    parser.add_argument("--rate", type=float, default=0.1)
    parser.add_argument("--policy", help="what is compressed between nodes; LCOMM_POLICY, or exact")
    parser.add_argument("--nodes", type=int, default=0, help="ranks pose as so many nodes")
    options = parser.parse_args()
    with libcomm.Communicator.from_env(policy=options.policy, nodes=options.nodes) as comm:
        weights, accuracy = train(comm, options)
        alike, stats = are_alike(comm, weights), comm.stats()
        if comm.rank == 0:
            sent, exact = stats.sent_bytes["net"], stats.exact_bytes["net"]
            print(f"accuracy {accuracy:.3f} on {comm.size} ranks, replicas alike: {alike}")
            print(f"between nodes rank 0 sent {sent} bytes, float32 would have been {exact}")


if __name__ == "__main__":
    main()
