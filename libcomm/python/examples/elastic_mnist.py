# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""A convolutional network on Fashion-MNIST, on ranks that are lost, leave (SIGTERM) and join.
    libcomm-launch -n 4 --restarts 9 -- python3 elastic_mnist.py --min 2 --policy net=topk:0.01+ef
    srun -n 4 --no-kill --kill-on-bad-exit=0 python3 elastic_mnist.py --min 2
    torchrun --nproc-per-node 4 elastic_mnist.py       # ends all of a host when one is lost
Kill a rank while it trains, and see.
"""

import hashlib
import sys

import numpy
import torch
from ddp_mnist import Net, images_of, options_of
from libcomm.torch import elastic
from torch.nn.functional import cross_entropy


def are_alike(comm, model):
    """Do all ranks hold the same bits?"""
    words = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
    mine = numpy.frombuffer(hashlib.sha256(words).digest(), numpy.uint8)
    said = numpy.empty((comm.size, len(mine)), numpy.uint8)
    return bool((comm.allgather(mine, said) == mine).all())


def train(job, model, images, labels, options):
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr, momentum=0.9)
    sampler = elastic.Sampler(len(images), options.batch)
    state = elastic.State(model, optimizer, sampler)

    def step(batch):
        loss = cross_entropy(model(images[batch]), labels[batch])
        loss.backward()
        return loss.item()

    def after_epoch(epoch):
        alike = are_alike(job.comm, model)
        if job.comm.rank == 0:
            size = job.comm.size
            print(f"epoch {epoch + 1}  {size} ranks, replicas alike: {alike}", flush=True)

    def after_change(it):
        if job.comm.rank == 0:
            words = f"{it.lost} lost, {it.left} left, {it.joined} joined"
            print(f"ranks: {words}; {it.ranks} go on after step {it.steps}", flush=True)

    return job.run(step, state, options.epochs, after_epoch=after_epoch, after_change=after_change)


def main():
    parser = options_of(__doc__)
    parser.add_argument("--min", type=int, default=1, help="fewer ranks do not go on")
    parser.add_argument("--max", type=int, default=64, help="newcomers join up to so many")
    options = parser.parse_args()
    torch.manual_seed(0)
    model = Net()  # newcomers are waited for from the Job on, so what takes long is made before
    images, labels = images_of(options.data, "train", options.images)
    with elastic.Job(options.min, options.max, options.policy, nodes=options.nodes) as job:
        try:
            has_stayed = train(job, model, images, labels, options)
        except elastic.TooFewRanksError as why:
            sys.exit(f"{why}")  # here is where to save the model
        if has_stayed and job.comm.rank == 0:
            images, labels = images_of(options.data, "t10k", 10000)
            with torch.no_grad():
                right = (model(images).argmax(1) == labels).float().mean().item()
            print(f"accuracy {right:.4f} on {job.comm.size} ranks")


if __name__ == "__main__":
    main()
