# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Training that goes on when ranks are killed, leave or join."""

import hashlib
import os
import signal
import time

import pytest
from libcomm import Communicator
from worlds import Lost, environment, forked

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


@pytest.mark.parametrize("policy", ["", TOP_K])
@pytest.mark.parametrize("victim", [0, 1])
def test_a_rank_is_killed_in_a_step_and_the_others_train_to_the_end(victim, policy, tmp_path):
    def work(rank):
        training = Training(rank, tmp_path)
        if rank == victim:
            at_step(training, 3, die)
        return training.run(policy=policy)

    said = forked(3, work)
    assert isinstance(said.pop(victim), Lost)
    for _, changes, _ in expect_alike(said):
        (change,) = changes
        assert (change.before, change.ranks, change.lost, change.steps) == (3, 2, 1, 3)
        assert (change.left, change.joined) == (0, 0) and 0 <= change.lost_residual < 1
    expect_each_sample_once(tmp_path)


@pytest.mark.parametrize("victim", [0, 2])
def test_a_step_that_one_rank_has_passed_counts_for_all(victim, tmp_path):
    def work(rank):
        training = Training(rank, tmp_path)
        after_step = training.after_step

        def after(batches):
            after_step(batches)
            if rank == victim and training.steps() == 4:
                die()

        training.after_step = after
        return training.run()

    said = forked(3, work)
    assert isinstance(said.pop(victim), Lost)
    for _, changes, _ in expect_alike(said):
        assert [(each.lost, each.steps) for each in changes] == [(1, 4)]
    expect_each_sample_once(tmp_path)


@pytest.mark.parametrize("leaver", [0, 2])
def test_a_rank_leaves_in_order_by_sigterm(leaver, tmp_path):
    def work(rank):
        training = Training(rank, tmp_path)
        if rank == leaver:
            at_step(training, 3, be_asked_to_leave)
        return training.run(policy=TOP_K)

    said = forked(3, work)
    assert said.pop(leaver)[0] == "left"
    for _, changes, _ in expect_alike(said):
        (change,) = changes
        assert (change.ranks, change.left, change.lost, change.lost_residual) == (2, 1, 0, 0.0)
    assert len(said) == 2
    expect_each_sample_once(tmp_path)


def until_all_are_there(training, size):
    """Steps of the first ranks take longer and longer, so that others can come."""

    def before_step():
        if training.job.comm.size < size and not training.changes:
            time.sleep(0.02 * 1.4 ** training.steps())

    training.before_step = before_step


def with_a_newcomer(folder, founders, **newcomers):
    """newcomers: of the Training of the last member."""
    shared = environment(founders)

    def work(member):
        os.environ.update(shared)
        is_newcomer = member == founders
        os.environ["LCOMM_JOIN"] = "on" if is_newcomer else "off"
        training = Training(member, folder, **(newcomers if is_newcomer else {}))
        until_all_are_there(training, founders + 1)
        return training.run(policy=TOP_K)

    return work


def test_a_newcomer_has_weights_optimiser_and_place_of_the_others(tmp_path):
    said = expect_alike(forked(3, with_a_newcomer(tmp_path, 2)))
    assert len(said) == 3
    for number, (_, changes, _) in enumerate(said):
        assert [each.joined for each in changes] == ([1] if number < 2 else [])
    expect_each_sample_once(tmp_path)


def test_a_newcomer_that_fails_before_it_trains_goes_alone(tmp_path):
    work = with_a_newcomer(tmp_path, 2)

    def or_end(member):
        if member < 2:
            return work(member)
        Training.run = failing
        with pytest.raises(OSError, match="no data here"):
            work(member)
        die()

    def failing(training, **_):
        with elastic.Job(1, 4):
            raise OSError("no data here")

    said = forked(3, or_end)
    assert isinstance(said.pop(), Lost) and len(expect_alike(said)) == 2


def test_no_more_than_max_are_let_in(tmp_path):
    shared = environment(2)

    def work(member):
        os.environ.update(shared)
        if member == 2:
            os.environ["LCOMM_JOIN"] = "on"
            while not (tmp_path / "is at work").exists():
                time.sleep(0.01)
            with pytest.raises(TimeoutError, match="it was not admitted"):
                elastic.Job(1, 2, timeout=3.0)
            (tmp_path / "has given up").touch()
            return "stayed out"
        training = Training(member, tmp_path)

        def before_step():
            """Many steps see it wait."""
            while not (tmp_path / "has given up").exists():
                time.sleep(0.2)
                if training.steps() < 20:
                    break
            if training.steps() == 2:
                (tmp_path / "is at work").touch()

        training.before_step = before_step
        return training.run(most=2)

    said = forked(3, work)
    assert said.pop() == "stayed out"
    assert [changes for _, changes, _ in expect_alike(said)] == [[], []]


def test_a_newcomer_that_does_not_fit_goes_alone(tmp_path):
    work = with_a_newcomer(tmp_path, 2, width=48)

    def or_end(member):
        if member < 2:
            return work(member)
        with pytest.raises(ValueError, match="rank 2 has another model"):
            work(member)
        die()

    said = forked(3, or_end)
    assert isinstance(said.pop(), Lost) and len(expect_alike(said)) == 2
    expect_each_sample_once(tmp_path)


DDP_WAYS = {
    "plain": {"bucket_cap_mb": 0.001},
    "bucket_views": {"gradient_as_bucket_view": True, "bucket_cap_mb": 0.001},
    "unused_parameters": {"find_unused_parameters": True},
    "static_graph": {"static_graph": True},
}


@pytest.mark.parametrize("way", DDP_WAYS)
@pytest.mark.parametrize("moment", ["in_a_step", "after_a_step"])
def test_in_ddp_the_hook_goes_on_without_a_killed_rank(moment, way, tmp_path):
    def work(rank):
        training = Training(rank, tmp_path, ddp=DDP_WAYS[way])
        if rank == 1 and moment == "in_a_step":
            at_step(training, 3, die)
        elif rank == 1:
            after_step = training.after_step
            training.after_step = lambda batches: die() if training.steps() == 4 else after_step(
                batches
            )
        return training.run(policy=TOP_K)

    said = forked(3, work)
    assert isinstance(said.pop(1), Lost)
    for _, changes, _ in expect_alike(said):
        (change,) = changes
        assert (change.ranks, change.steps) == (2, 3 if moment == "in_a_step" else 4)
    expect_each_sample_once(tmp_path)


def test_in_ddp_ranks_leave_and_join(tmp_path):
    shared = environment(2)

    def work(member):
        os.environ.update(shared)
        os.environ["LCOMM_JOIN"] = "on" if member == 2 else "off"
        training = Training(member, tmp_path, ddp={})
        until_all_are_there(training, 3)
        if member == 0:
            wait, left = training.before_step, []

            def leave_then():
                wait()
                if training.job.comm.size == 3 and not left:
                    left.append(be_asked_to_leave())

            training.before_step = leave_then
        elif member == 1:
            until_all_are_there(training, 2)
        return training.run(policy=TOP_K)

    said = forked(3, work)
    assert said.pop(0)[0] == "left" and len(expect_alike(said)) == 2
    expect_each_sample_once(tmp_path)


def test_a_process_group_of_several_ranks_is_refused(tmp_path):
    def work(rank):
        where = f"file://{tmp_path}/group"
        torch.distributed.init_process_group("gloo", init_method=where, rank=rank, world_size=2)
        model, sampler = torch.nn.parallel.DistributedDataParallel(net()), elastic.Sampler(10, 1)
        with pytest.raises(ValueError, match="process group of 2 ranks, and groups cannot change"):
            elastic.State(model, torch.optim.SGD(model.parameters(), 0.1), sampler)
        return True

    assert forked(2, work) == [True, True]


def weights_of(training):
    return torch.cat([p.detach().reshape(-1) for p in training.model.parameters()])


def die_when_all_have_averages(training, number, folder, victim):
    """In that step, when nobody has passed the barrier behind the sums: it counts all the same."""
    tensors, todo = [], [None]
    add, wait = Communicator.add_tensor, Communicator.wait_tensors

    def keeping(comm, *arguments, **options):
        tensors.append(add(comm, *arguments, **options))
        return tensors[-1]

    def have(ranks):
        return all((folder / f"rank {rank} has them").exists() for rank in ranks)

    def waiting(comm):
        if training.steps() == number and todo:
            todo.pop()
            while not all(tensor.test() for tensor in tensors):
                time.sleep(0.001)
            (folder / f"rank {comm.rank} has them").touch()
            while comm.rank == victim and not have(range(comm.size)):
                time.sleep(0.001)
            if comm.rank == victim:
                die()
        wait(comm)

    Communicator.add_tensor, Communicator.wait_tensors = keeping, waiting


def trained_exactly(folder, victim, in_ddp, is_finished):
    """By SGD and without batch norm, so that only rounding depends on ranks. Of two ranks."""

    def work(rank):
        training = Training(rank, folder)
        model = torch.nn.Linear(16, 4)
        torch.nn.init.zeros_(model.weight), torch.nn.init.zeros_(model.bias)
        training.model = alone_in_ddp(model) if in_ddp else model
        optimizer = torch.optim.SGD(training.model.parameters(), lr=0.1)
        training.state = elastic.State(training.model, optimizer, training.sampler)
        training.after_epoch = training.hash = lambda *_: None
        if victim is not None and is_finished:
            die_when_all_have_averages(training, 4, folder, victim)
        elif rank == victim:
            at_step(training, 4, die)
        _, changes, _ = training.run()
        return weights_of(training), training.sampler.accumulate, [c.steps for c in changes]

    folder.mkdir()
    return forked(2, work)


@pytest.mark.parametrize("is_finished", [False, True])
@pytest.mark.parametrize("in_ddp", [False, True])
def test_a_lost_rank_changes_nothing_where_samples_can_be_spread_evenly(
    in_ddp, is_finished, tmp_path
):
    """The step that was broken off is made again, or was finished; those after it are the same."""
    (plain, once, _), _ = trained_exactly(tmp_path / "plain", None, in_ddp, is_finished)
    lost, left = trained_exactly(tmp_path / "lost", 0, in_ddp, is_finished)
    weights, twice, steps = left
    assert isinstance(lost, Lost) and (once, twice, steps) == (1, 2, [5 if is_finished else 4])
    assert float((weights - plain).abs().max()) < 1e-5 < float(plain.abs().max())
    expect_each_sample_once(tmp_path / "lost")


def test_who_is_killed_between_two_epochs_is_lost_there(tmp_path):
    def work(rank):
        training = Training(rank, tmp_path)
        calls = []

        def in_epoch_end():
            calls.append(training.sampler.epoch)
            if rank == 1:
                die()

        training.in_epoch_end = in_epoch_end
        return (*training.run(), calls)

    said = forked(3, work)
    assert isinstance(said.pop(1), Lost)
    for _, changes, _, calls in expect_alike(said):
        assert [each.lost for each in changes] == [1] and calls == [0, 0, 1]
    expect_each_sample_once(tmp_path)


def test_who_has_begun_the_next_epoch_comes_back_to_those_who_have_not(tmp_path):
    def work(rank):
        training, calls = Training(rank, tmp_path), []

        def after_epoch(epoch):
            """Rank 2 waits in vain for rank 1, and rank 0 for nobody."""
            calls.append(epoch)
            if rank == 1:
                while not (tmp_path / "next epoch").exists():
                    time.sleep(0.001)
                die()
            if rank == 2 and len(calls) == 1:
                training.job.comm.recv(torch.zeros(1), 1)

        def before_step():
            if training.sampler.epoch == 1:
                (tmp_path / "next epoch").touch()

        training.after_epoch, training.before_step = after_epoch, before_step
        return (*training.run(), calls)

    said = forked(3, work)
    assert isinstance(said.pop(1), Lost)
    for _, changes, _, calls in expect_alike(said):
        assert [each.lost for each in changes] == [1] and calls == [0, 0, 1]
    expect_each_sample_once(tmp_path)


def test_with_too_few_ranks_all_that_are_left_say_so(tmp_path):
    def work(rank):
        training = Training(rank, tmp_path)
        if rank == 1:
            at_step(training, 3, die)
        with pytest.raises(elastic.TooFewRanksError) as told:
            training.run(least=3)
        return str(told.value), training.hash()

    said = forked(3, work)
    assert isinstance(said.pop(1), Lost) and said[0] == said[1]
    assert said[0][0] == "2 of the ranks are left, too few for min=3; stopped after step 3"


def test_when_all_are_asked_to_leave_all_stop_after_one_step(tmp_path):
    def work(rank):
        training = Training(rank, tmp_path)
        at_step(training, 3 if rank else 2, be_asked_to_leave)
        with pytest.raises(elastic.TooFewRanksError) as told:
            training.run(least=2)
        return str(told.value), training.hash()

    said = forked(2, work)
    assert said[0] == said[1]
    assert said[0][0].startswith("1 of 2 ranks ask to leave, and 1 are too few for min=2; stopped")


def test_batches_may_come_from_a_loader(tmp_path):
    def work(rank):
        training = Training(rank, tmp_path)
        numbers = torch.utils.data.TensorDataset(torch.arange(SAMPLES))
        loader = torch.utils.data.DataLoader(numbers, batch_sampler=training.sampler)
        step = training.step
        training.step = lambda batch: step(batch[0].tolist())
        if rank == 2:
            at_step(training, 5, die)
        return training.run(batches=loader)

    said = forked(3, work)
    assert isinstance(said.pop(), Lost) and len(expect_alike(said)) == 2
    expect_each_sample_once(tmp_path)


def test_an_exception_of_the_program_ends_all_ranks(tmp_path):
    def work(rank):
        training = Training(rank, tmp_path)

        def fail():
            raise OSError("a broken image")

        if rank == 0:
            at_step(training, 2, fail)
        try:
            training.run()
        except Exception as trouble:
            return f"{type(trouble).__name__}: {trouble}"

    said = forked(2, work)
    assert said[0] == "OSError: a broken image" and said[1].startswith("AbortedError: ")
    assert "a broken image" in said[1]


def refusal(*arguments, **options):
    try:
        elastic.Job(*arguments, **options)
    except Exception as trouble:
        return str(trouble)
    return "nothing"


def test_what_cannot_be_is_refused_on_every_rank(tmp_path):
    def work(rank):
        said = [refusal(3, 4), refusal(1, 1), refusal(2, 1)]
        rank, size = os.environ.pop("RANK"), os.environ.pop("WORLD_SIZE")
        os.environ["OMPI_COMM_WORLD_RANK"] = rank
        said.append(refusal(1, 2))
        del os.environ["OMPI_COMM_WORLD_RANK"]
        os.environ.update(RANK=rank, WORLD_SIZE=size)
        training = Training(rank, tmp_path, width=32 + int(rank))
        try:
            training.run()
        except ValueError as trouble:
            said.append(str(trouble))
        return said

    for words in forked(2, work):
        asks = "there are 2 ranks, and elastic.Job asks for"
        begins = [f"{asks} 3 to 4", f"{asks} 1 to 1", "elastic.Job: min=2 and max=1", "elastic.Job"]
        begins.append("rank 1 has another model, optimiser, sampler or state than rank 0")
        assert [word.startswith(begin) for word, begin in zip(words, begins)] == [True] * 5, words
        assert "mpirun" in words[3]


def test_one_rank_alone_trains_too(tmp_path):
    def work(rank):
        training = Training(rank, tmp_path)
        alone = training.run()
        other = Training(rank, tmp_path)
        at_step(other, 3, be_asked_to_leave)
        with pytest.raises(elastic.TooFewRanksError, match="the only rank asks to leave"):
            other.run()
        return alone

    assert forked(1, work)[0][0] == "stayed"


# ---------------------------------------------------------------------- the deal


def dealt(sampler, size):
    """What all ranks get until the end of the epoch, in the order of steps."""
    each = []
    for rank in range(size):
        sampler._deal(rank, size)
        each.append(list(sampler))
        assert len(each[-1]) == len(sampler) == sampler.steps_left * sampler.accumulate
    return [n for batches in zip(*each) for batch in batches for n in batch]


def test_all_ranks_together_take_the_samples_in_one_order():
    order = dealt(elastic.Sampler(100, 5, seed=3), 4)
    assert sorted(order) == list(range(100)) and order != sorted(order)
    assert dealt(elastic.Sampler(100, 10, seed=3), 2) == order  # whoever they are
    assert dealt(elastic.Sampler(100, 5, seed=4), 4) != order
    assert dealt(elastic.Sampler(103, 5, shuffle=False), 4) == list(range(100))


def test_what_is_left_is_dealt_to_those_who_are_left():
    sampler = elastic.Sampler(100, 4, seed=3)
    order = dealt(sampler, 5)
    sampler._use()
    assert dealt(sampler, 5) == order[20:]
    for size, samples, accumulate, rate in [(2, 20, 3, 1.0), (3, 12, 1, 0.6), (10, 20, 1, 1.0)]:
        left = dealt(sampler, size)
        assert left == order[20 : 20 + len(left)] and len(left) > 80 - samples
        told = sampler.step_samples, sampler.accumulate, sampler.rate
        assert told[0] == samples and told[2] == rate, (size, told)
        assert accumulate == told[1] or size == 2


def test_another_sampler_goes_on_where_one_was():
    sampler, other = elastic.Sampler(100, 5), elastic.Sampler(100, 5)
    dealt(sampler, 2)
    sampler._use()
    sampler._end_epoch()
    sampler._use()
    other.load_state_dict(sampler.state_dict())
    assert dealt(other, 4) == dealt(sampler, 4) and other.epoch == 1 and other.used == 10
    for each in (sampler, other):
        each._end_epoch()
        each._go_back(1)
        assert (each.epoch, each.used) == (1, 10)
        each._go_back(1)
        assert each.epoch == 1
