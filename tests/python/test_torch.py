# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""The hook for DistributedDataParallel, against DDP over gloo and against sums that are known."""

import contextlib
import io
import time

import libcomm
import numpy
import pytest
from ddp_models import (  # skipped without torch
    DDP,
    Known,
    Net,
    TOP_K,
    WAYS,
    distributed,
    given,
    hooked,
    over_group,
    steps_of,
    torch,
    trained,
)
from test_memory import held


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


def test_sums_end_while_backward_goes_on(tmp_path):
    def work(_rank):
        layers = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(4)))
        model = DDP(layers, bucket_cap_mb=0.5)
        with contextlib.closing(hooked(model, "bucket=4K")) as state:
            take, seen = state._take, []

            def late(bucket):
                """In the third step the last bucket waits until a sum has ended."""
                patience = 3000 if bucket.is_last() and len(seen) == 2 else 0
                while patience and state.comm.stats().operations == seen[1]:
                    time.sleep(0.01)
                    patience -= 1
                    assert patience, "no sum has ended before the last bucket"
                return take(bucket)

            state._take = late
            for _ in range(3):
                model(torch.ones(4, 512)).sum().backward()
                seen.append(state.comm.stats().operations)

    over_group(2, tmp_path, work)


def test_averages_by_int8_are_within_its_bound(tmp_path):
    def work(rank):
        model = DDP(Known())
        with contextlib.closing(hooked(model, "net=int8 min=0")):
            return steps_of(model, rank, [0])

    said = over_group(4, tmp_path, work)
    for name in Known.SIZES:
        each = [given(rank, 0)[name].double().numpy() for rank in range(4)]
        largest = [numpy.abs(each[n] + each[n + 1]).max() for n in (0, 2)]  # in the sum of a node
        # once of a node's sum and once of the whole one: half a step of 1/127 of the largest
        bound = 2 * sum(largest) / 254 / 4
        error = numpy.abs(said[0][name] - sum(each) / 4).max()
        assert bound / 100 < error <= bound, (name, error, bound)


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


def real_scaler():
    """torch's own, on the host; None where this version has none."""
    try:
        return torch.amp.GradScaler("cpu", init_scale=1024.0)
    except AttributeError:
        return None


@pytest.mark.skipif(real_scaler() is None, reason="this torch has no GradScaler for the host")
def test_a_step_that_the_grad_scaler_of_torch_skips_is_undone(tmp_path):
    def work(rank):
        scaler, model = real_scaler(), DDP(Known())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with contextlib.closing(hooked(model, TOP_K, scaler=scaler)) as state:
            for step, factor in enumerate([1.0, 1e38 if rank == 1 else 1.0, 1.0]):
                kept = [kept_of(state, name) for name in Known.SIZES] if step else []
                weights = [p.detach().clone() for p in model.parameters()]
                optimizer.zero_grad()
                scaler.scale(model(given(rank, step)) * factor).backward()
                scaler.step(optimizer)
                scaler.update()
                is_skipped = all(a.equal(b) for a, b in zip(weights, model.parameters()))
                assert is_skipped == (step == 1)
                if is_skipped:
                    after = [kept_of(state, name) for name in Known.SIZES]
                    assert all((a == b).all() for a, b in zip(kept, after))
            assert state.comm.stats().discarded == 1
            return [p.detach().numpy() for p in model.parameters()], scaler.get_scale()

    said = over_group(2, tmp_path, work)
    for weights, scale in said:
        assert all((a == b).all() for a, b in zip(weights, said[0][0])) and scale == 512.0


def checkpointed(state):
    """As a program keeps it: by torch's own functions, as they are by default."""
    file = io.BytesIO()
    torch.save({"communication": state}, file)
    file.seek(0)
    return torch.load(file)["communication"]


def test_a_state_goes_on_where_it_was_also_on_fewer_ranks(tmp_path):
    def work(rank):
        model = DDP(Known())
        with contextlib.closing(hooked(model, TOP_K)) as state:
            steps_of(model, rank, range(3))
            saved, kept = state.state_dict(), kept_of(state, "wide")
            expected = steps_of(model, rank, range(3, 5))
        model = DDP(Known())
        with contextlib.closing(hooked(model, TOP_K)) as state:
            state.load_state_dict(checkpointed(saved))
            again = steps_of(model, rank, range(3, 5))
            assert all((again[name] == expected[name]).all() for name in again)
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


def test_a_state_in_files_serves_more_ranks(tmp_path):
    folder = tmp_path / "state"

    def saved(rank):
        model = DDP(Known())
        with contextlib.closing(hooked(model, TOP_K)) as state:
            steps_of(model, rank, range(3))
            state.save(folder)
            return kept_of(state, "wide")

    def more(_rank):
        with contextlib.closing(hooked(DDP(Known()), TOP_K)) as state:
            state.load(folder)
            return kept_of(state, "wide")

    before = over_group(2, tmp_path / "two", saved)[0]
    for kept in over_group(4, tmp_path / "four", more):
        assert numpy.abs(kept / 4 - before / 2).max() < 1e-4 < numpy.abs(kept).max()


def test_without_a_model_a_state_is_restored_in_the_first_step(tmp_path):
    def work(rank):
        def hooked_alone():
            model, state = DDP(Known(), bucket_cap_mb=0.1), libcomm.torch.State(TOP_K, nodes=2)
            model.register_comm_hook(state, libcomm.torch.compress)
            return model, state

        model, first = hooked_alone()
        steps_of(model, rank, range(2))
        saved = first.state_dict()
        expected = steps_of(model, rank, range(2, 4))
        first.close()
        model, second = hooked_alone()
        second.load_state_dict(saved)
        again = steps_of(model, rank, range(2, 4))
        second.close()
        assert all((again[name] == expected[name]).all() for name in again)

    over_group(2, tmp_path, work)


def test_ten_thousand_steps_hold_nothing(tmp_path):
    def work(_rank):
        model = DDP(torch.nn.Linear(64, 8))

        def step(number):
            for _ in range(number):
                model(torch.ones(4, 64)).sum().backward()
            return held()

        with contextlib.closing(hooked(model, "net=int8+ef min=0")):
            before = step(1000)
            return [after - earlier for after, earlier in zip(step(10000), before)]

    for blocks, files, memory in over_group(2, tmp_path, work):
        assert blocks < 500 and files == 0 and memory < 4 << 20
