# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""The hook for DistributedDataParallel, against DDP over gloo and against sums that are known."""

import contextlib
import os
import re
import signal

import libcomm
import numpy
import pytest
from worlds import Lost, forked, free_port, programs

torch = pytest.importorskip("torch", reason="no torch (package python3-torch)")
distributed = pytest.importorskip("torch.distributed", reason="a torch without distributed")

import libcomm.torch  # noqa: E402  it needs torch

STEPS, BATCH, INPUTS = 6, 16, 32
DDP = torch.nn.parallel.DistributedDataParallel
TOP_K = "net=topk:0.05+ef min=0 exempt=*.bias"


@contextlib.contextmanager
def group(folder, rank, size):
    torch.set_num_threads(1)
    where = f"file://{folder}/group"
    distributed.init_process_group("gloo", init_method=where, rank=rank, world_size=size)
    yield
    distributed.destroy_process_group()


def over_group(size, folder, work):
    """work(rank) on ranks with a process group of gloo."""

    def rank(number):
        with group(folder, number, size):
            return work(number)

    folder.mkdir(exist_ok=True)
    return forked(size, rank)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.first = torch.nn.Linear(INPUTS, 256)
        self.spare = torch.nn.Linear(256, 256)
        self.last = torch.nn.Linear(256, 10)

    def forward(self, x, spare=True):
        x = torch.relu(self.first(x))
        return self.last(torch.relu(self.spare(x)) if spare else x)


def trained(model, rank, steps=STEPS, accumulate=1, spare=lambda step: True):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    dice = torch.Generator().manual_seed(rank)
    for step in range(steps):
        optimizer.zero_grad()
        for part in range(accumulate):
            is_last = part == accumulate - 1
            with contextlib.nullcontext() if is_last else model.no_sync():
                x = torch.randn(BATCH, INPUTS, generator=dice)
                y = torch.randint(0, 10, (BATCH,), generator=dice)
                torch.nn.functional.cross_entropy(model(x, spare(step)), y).backward()
        optimizer.step()
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()]).numpy()


def hooked(model, policy, nodes=2, **options):
    state = libcomm.torch.State(policy=policy, model=model, nodes=nodes, **options)
    model.register_comm_hook(state, libcomm.torch.compress)
    return state


WAYS = {
    "plain": ({}, {}),
    "bucket_views": ({"gradient_as_bucket_view": True}, {}),
    "no_sync": ({}, {"accumulate": 3}),
    "unused_parameters": ({"find_unused_parameters": True}, {"spare": lambda step: step % 2 == 0}),
    "static_graph": ({"static_graph": True}, {}),
}


@pytest.mark.parametrize("way", WAYS)
def test_exact_training_has_the_weights_of_gloo(way, tmp_path):
    ddp, training = WAYS[way]

    def work(rank):
        model = DDP(Net(), bucket_cap_mb=0.1, **ddp)
        with contextlib.closing(hooked(model, "")):
            ours = trained(model, rank, **training)
        return ours, trained(DDP(Net(), bucket_cap_mb=0.1, **ddp), rank, **training)

    for ours, gloo in over_group(2, tmp_path, work):
        assert (ours == gloo).all()  # a sum of two has one order


@pytest.mark.parametrize("size", [1, 4])
def test_worlds_of_other_sizes_have_the_weights_of_gloo_but_for_rounding(size, tmp_path):
    def work(rank):
        model = DDP(Net())
        with contextlib.closing(hooked(model, "", nodes=1 if size == 1 else 2)):
            ours = trained(model, rank)
        return ours, trained(DDP(Net()), rank)

    said = over_group(size, tmp_path, work)
    for ours, gloo in said:
        assert numpy.abs(ours - gloo).max() < 1e-6 and (ours == said[0][0]).all()


@pytest.mark.parametrize("policy, error, times", [("net=int8 min=0", 1e-3, 3), (TOP_K, 0.05, 6)])
def test_compressed_training_is_alike_on_all_ranks_and_near(policy, error, times, tmp_path):
    def work(rank):
        model = DDP(Net(), bucket_cap_mb=0.1)
        with contextlib.closing(hooked(model, policy)) as state:
            ours, stats = trained(model, rank), state.comm.stats()
        sent = stats.sent_bytes["net"], stats.exact_bytes["net"]
        return ours, trained(DDP(Net()), rank), sent

    said = over_group(4, tmp_path, work)
    for ours, gloo, (sent, exact) in said:
        assert (ours == said[0][0]).all() and 0 < numpy.abs(ours - gloo).max() < error
        assert sent < exact / times


class Known(torch.nn.Module):
    """The gradient of each parameter is what forward is given for it, whatever the weights."""

    SIZES = {"wide": 300000, "narrow": 1500, "bias": 70, "deep": 30000}

    def __init__(self):
        super().__init__()
        for name, count in self.SIZES.items():
            self.register_parameter(name, torch.nn.Parameter(torch.zeros(count)))

    def forward(self, given):
        # the order of use is not that of registration, so DDP makes other buckets after a step
        return sum((getattr(self, name) * given[name]).sum() for name in reversed(list(given)))


def given(rank, step):
    dice = numpy.random.default_rng([rank, step])
    sizes = Known.SIZES.items()
    return {n: torch.from_numpy(dice.standard_normal(c, dtype=numpy.float32)) for n, c in sizes}


def steps_of(model, rank, numbers, factor=1.0):
    """Averages that each step gives, summed."""
    total = {name: numpy.zeros(count) for name, count in Known.SIZES.items()}
    for step in numbers:
        model.zero_grad()
        (model(given(rank, step)) * factor).backward()
        for name, parameter in model.module.named_parameters():
            total[name] += parameter.grad.numpy()
    return total


def kept_of(state, name):
    """What all ranks keep of a parameter."""
    tensor = next(t for t in state._tensors.values() if t.name == name)
    kept = tensor.residual(numpy.empty(Known.SIZES[name], numpy.float32))
    return state.comm.allreduce(kept.astype("float64"))


def test_residuals_stay_with_the_parameters_when_buckets_are_made_anew(tmp_path):
    def work(rank):
        model = DDP(Known(), bucket_cap_mb=0.1)
        seen, size = [], distributed.get_world_size()
        with contextlib.closing(hooked(model, "net=topk:0.05+ef min=0 exempt=bias")) as state:
            take = state._take

            def noting(bucket):
                seen.append([state._tensors[id(p)].name for p in bucket.parameters()])
                return take(bucket)

            state._take = noting
            applied = steps_of(model, rank, range(5))
            for name in Known.SIZES:
                total = sum(given(r, s)[name].double() for r in range(size) for s in range(5))
                missing = kept_of(state, name)
                assert numpy.abs(size * applied[name] + missing - total.numpy()).max() < 1e-3, name
                assert missing.any() == (name != "bias")
        return seen

    first, *others = over_group(4, tmp_path, work)
    assert all(seen == first for seen in others)
    assert first[0] not in first[len(first) // 2 :]  # DDP did make other buckets


def test_patterns_fit_the_names_of_the_parameters(tmp_path):
    def work(_rank):
        model = DDP(Net())
        policy = "net[first*]=bf16 net=int8 min=0 exempt=*.bias"
        with contextlib.closing(hooked(model, policy)) as state:
            return {tensor.name: tensor.codec() for tensor in state._tensors.values()}

    codecs = over_group(2, tmp_path, work)[0]
    assert codecs["first.weight"] == "bf16" and codecs["last.weight"].startswith("int8")
    assert codecs["first.bias"] == codecs["last.bias"] == "none" and len(codecs) == 6


def test_without_a_model_parameters_are_known_from_the_first_step(tmp_path):
    def work(rank):
        model = DDP(Net(), bucket_cap_mb=0.1)
        state = libcomm.torch.State(policy="")
        model.register_comm_hook(state, libcomm.torch.compress)
        ours = trained(model, rank)
        names = [tensor.name for tensor in state._tensors.values()]
        state.close()
        return ours, trained(DDP(Net()), rank), names

    for ours, gloo, names in over_group(2, tmp_path, work):
        assert (ours == gloo).all() and names == [f"parameter.{i}" for i in range(6)]


class Scaler:
    """What the hook asks of a GradScaler."""

    scale = 1024.0

    def get_scale(self):
        return self.scale


def test_a_step_that_the_scaler_skips_is_undone_and_scales_do_not_matter(tmp_path):
    def work(rank):
        scaler, model = Scaler(), DDP(Known())
        with contextlib.closing(hooked(model, TOP_K, scaler=scaler)) as state:
            steps_of(model, rank, [0], scaler.scale)
            before = [kept_of(state, name) for name in Known.SIZES]
            one_bad = 1e38 if rank == 1 else 1.0
            bad = steps_of(model, rank, [1], scaler.scale * one_bad)
            assert not all(numpy.isfinite(values).all() for values in bad.values())
            after = [kept_of(state, name) for name in Known.SIZES]
            assert all((a == b).all() for a, b in zip(before, after))
            assert state.comm.stats().discarded == 1
            scaler.scale = 256.0
            scaled = steps_of(model, rank, [2], scaler.scale)
        other = DDP(Known())
        with contextlib.closing(hooked(other, TOP_K)):
            steps_of(other, rank, [0])
            plain = steps_of(other, rank, [2])
        return max(float(numpy.abs(scaled[n] / 256.0 - plain[n]).max()) for n in plain)

    assert max(over_group(2, tmp_path, work)) < 1e-5


def test_a_state_goes_on_where_it_was_also_on_fewer_ranks(tmp_path):
    def work(rank):
        model = DDP(Known())
        with contextlib.closing(hooked(model, TOP_K)) as state:
            steps_of(model, rank, range(3))
            saved, kept = state.state_dict(), kept_of(state, "wide")
            expected = steps_of(model, rank, range(3, 5))
        for with_model in (True, False):
            model = DDP(Known())
            state = libcomm.torch.State(TOP_K, model if with_model else None, nodes=2)
            model.register_comm_hook(state, libcomm.torch.compress)
            if with_model:
                state.load_state_dict(saved)
                again = steps_of(model, rank, range(3, 5))
                assert all((again[name] == expected[name]).all() for name in again)
            state.close()
        return saved, kept

    said = over_group(4, tmp_path / "four", work)
    states = [saved for saved, _ in said]

    def fewer(_rank):
        with contextlib.closing(hooked(DDP(Known()), TOP_K)) as state:
            state.load_state_dict(states)
            return kept_of(state, "wide") / 2

    # residuals of averages weigh less among fewer ranks: their sum over size is what stays
    for kept in over_group(2, tmp_path / "two", fewer):
        assert numpy.abs(kept - said[0][1] / 4).max() < 1e-4 < numpy.abs(kept).max()


def raised(call):
    try:
        call()
    except Exception as trouble:
        return type(trouble).__name__, str(trouble)
    return None, "nothing was raised"


def test_a_killed_rank_is_named_by_backward_on_every_other(tmp_path):
    def work(rank):
        model = DDP(Known())
        state = hooked(model, "net=int8")
        steps_of(model, rank, range(2))
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        said = [raised(lambda: steps_of(model, rank, range(2))) for _ in range(2)]
        raised(state.close)
        return said

    said = over_group_that_breaks(3, tmp_path, work)
    assert isinstance(said.pop(1), Lost)
    for (kind, sentence), again in said:
        assert kind == "RuntimeError" and "rank 1" in sentence, sentence
        assert re.search(r"(Transport|Remote|PeerTimeout)Error: rank ", sentence), sentence
        assert again[0] == "RuntimeError"


def over_group_that_breaks(size, folder, work):
    def rank(number):
        context = group(folder, number, size)
        context.__enter__()
        return work(number)

    return forked(size, rank)


def test_a_state_of_another_model_is_refused_on_every_rank(tmp_path):
    def work(rank):
        model, other = DDP(Known()), DDP(Net())
        state = hooked(other, "")
        model.register_comm_hook(state, libcomm.torch.compress)
        said = raised(lambda: steps_of(model, rank, range(1)))
        raised(state.close)
        return said

    for kind, sentence in over_group_that_breaks(2, tmp_path, work):
        assert kind == "RuntimeError" and "a State belongs to one model" in sentence
        assert "Error: " in sentence


PROGRAM = """
import torch, torch.distributed as dist, libcomm.torch
torch.set_num_threads(1)
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
model.register_comm_hook(libcomm.torch.State(model=model), libcomm.torch.compress)
for step in range(3):
    model(torch.ones(4, 8)).sum().backward()
    {line}
"""


def run(line):
    return programs(2, ["-c", PROGRAM.format(line=line)], MASTER_PORT=str(free_port()))


def test_programs_that_close_nothing_end_without_a_crash():
    said = run("pass")
    assert [status for status, _ in said] == [0, 0] and "libcomm" not in said[0][1], said


def test_an_exception_in_one_program_is_raised_by_backward_of_the_others():
    # after the second step: before it DDP itself talks over gloo
    said = run("if step == 1 and dist.get_rank(): raise ValueError('a broken image')")
    assert [status for status, _ in said] == [1, 1], said
    assert "rank 1 ends with ValueError: a broken image" in said[0][1]


def test_wrong_policies_and_no_process_group_are_sentences(tmp_path):
    said = raised(lambda: libcomm.torch.State("net=int8"))
    assert said[0] == "StateError" and "init_process_group" in said[1]

    def work(rank):
        wrong = raised(lambda: libcomm.torch.State("net=int9"))
        differ = raised(lambda: libcomm.torch.State("net=int8" if rank else "net=bf16"))
        return wrong, differ

    for (wrong, sentence), (differ, both) in over_group(2, tmp_path, work):
        assert wrong == "PolicyError" and "int9" in sentence
        assert differ == "MismatchError" and "int8" in both and "bf16" in both
