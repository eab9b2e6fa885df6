# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""A training of several members for tests; who imports it is skipped without torch."""

import hashlib
import os
import signal
import time

import pytest

torch = pytest.importorskip("torch", reason="no torch (package python3-torch)")

from libcomm.torch import elastic  # noqa: E402  it needs torch

SAMPLES, EPOCHS, TOP_K = 240, 2, "net=topk:0.1+ef min=0"
IMAGES = torch.randn(SAMPLES, 16, generator=torch.Generator().manual_seed(1))
LABELS = torch.randint(0, 4, (SAMPLES,), generator=torch.Generator().manual_seed(2))


def net(width=32):
    """Drawn anew by each rank: rank 0's counts."""
    torch.manual_seed(os.getpid())
    layers = torch.nn.Linear(16, width), torch.nn.BatchNorm1d(width), torch.nn.ReLU()
    return torch.nn.Sequential(*layers, torch.nn.Linear(width, 4))


def alone_in_ddp(model, **options):
    """DDP over a process group of this rank alone."""
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    return torch.nn.parallel.DistributedDataParallel(model, **options)


class Training:
    """That of one member. folder: where it notes the samples of its finished steps."""

    def __init__(self, member, folder, width=32, batch=10, ddp=None):
        torch.set_num_threads(1)
        self.member, self.changes = member, []
        self.model = net(width) if ddp is None else alone_in_ddp(net(width), **ddp)
        self.sampler = elastic.Sampler(SAMPLES, batch, seed=5)
        optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
        self.state = elastic.State(self.model, optimizer, self.sampler, schedule=schedule)
        self.schedule = schedule
        self.notes = open(folder / f"member {member}", "w", buffering=1)
        self.before_step = self.in_epoch_end = lambda: None

    def step(self, batch):
        self.before_step()
        loss = torch.nn.functional.cross_entropy(self.model(IMAGES[batch]), LABELS[batch])
        loss.backward()
        return batch

    def after_step(self, batches):
        epoch, numbers = self.sampler.epoch, [n for batch in batches for n in batch]
        self.notes.write(f"{epoch} {self.state.steps} {' '.join(map(str, numbers))}\n")

    def after_epoch(self, _epoch):
        self.in_epoch_end()
        self.job.comm.barrier()
        if self.sampler.epoch == self.schedule.last_epoch:  # this may be called again
            self.schedule.step()

    def run(self, least=1, most=4, policy="", batches=None, epochs=EPOCHS):
        nodes = min(2, int(os.environ["WORLD_SIZE"]))
        with elastic.Job(least, most, policy, timeout=30.0, nodes=nodes) as self.job:
            stayed = self.job.run(
                self.step,
                self.state,
                epochs,
                batches,
                self.after_step,
                self.after_epoch,
                self.changes.append,
            )
            if not stayed:
                return "left", self.changes, self.hash()
        return "stayed", self.changes, self.hash()

    def hash(self):
        """Of all weights, and of the optimiser's moments."""
        moments = self.state.optimizer.state_dict()["state"]
        there = [p.detach() for p in self.model.parameters()]
        there += [moments[i][name] for i in sorted(moments) for name in ("exp_avg", "exp_avg_sq")]
        words = b"".join(each.numpy().tobytes() for each in there)
        return hashlib.sha256(words).hexdigest()[:16], self.state.steps, self.schedule.last_epoch

    def steps(self):
        return self.state.steps


def at_step(training, number, deed):
    """Once, before the gradients of a step."""
    todo = [deed]

    def before_step():
        if training.steps() == number and todo:
            todo.pop()()

    training.before_step = before_step


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def be_asked_to_leave():
    os.kill(os.getpid(), signal.SIGTERM)


def until_all_are_there(training, size):
    """Steps of the first ranks take longer and longer, so that others can come."""

    def before_step():
        if training.job.comm.size < size and not training.changes:
            time.sleep(0.02 * 1.4 ** training.steps())

    training.before_step = before_step


def expect_each_sample_once(folder):
    """By whichever member, in each epoch; of a step by its members alone."""
    for epoch in range(EPOCHS):
        seen = []
        for notes in folder.glob("member *"):
            lines = [line.split() for line in notes.read_text().splitlines()]
            seen += [n for at, _, *numbers in lines if int(at) == epoch for n in numbers]
        assert len(seen) == len(set(seen)) > SAMPLES / 2, epoch


def expect_alike(said):
    """All that have stayed: hashes of weights and moments, steps and schedules."""
    stayed = [told for told in said if told[0] == "stayed"]
    assert stayed and all(told[2] == stayed[0][2] for told in stayed), stayed
    return stayed
