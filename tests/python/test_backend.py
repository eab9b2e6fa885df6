# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""The backend "lcomm" of torch.distributed: every call against what its numbers must be."""

import contextlib
import functools

import libcomm
import numpy
import pytest
from ddp_models import (  # skipped without torch
    DDP,
    Net,
    WAYS,
    distributed,
    over_group,
    torch,
    trained,
)

from libcomm.torch import Options, communicator

over_lcomm = functools.partial(over_group, backend="lcomm")
SIZES = [1, 2, 3]
Op = distributed.ReduceOp


def values(rank, dtype, count=12):
    """Small whole numbers, other ones on each rank."""
    dice = numpy.random.default_rng([rank, count])
    return torch.from_numpy(dice.integers(1, 4, count)).to(dtype)


FOLDS = {
    "SUM": torch.add,
    "AVG": torch.add,
    "MIN": torch.minimum,
    "MAX": torch.maximum,
    "PRODUCT": torch.mul,
    "BAND": torch.bitwise_and,
    "BOR": torch.bitwise_or,
    "BXOR": torch.bitwise_xor,
}
WHOLE, FLOAT = ["int32", "int64", "uint8", "int16"], ["float32", "float64", "float16", "bfloat16"]
OPS = [(op, dtype) for op in ("SUM", "MIN", "MAX", "PRODUCT") for dtype in WHOLE + FLOAT]
OPS += [(op, dtype) for op in ("BAND", "BOR", "BXOR") for dtype in WHOLE]
OPS += [("AVG", dtype) for dtype in FLOAT] + [("SUM", "complex64"), ("MAX", "bool")]


def expected(op, dtype, size, count=12):
    each = [values(rank, dtype, count) for rank in range(size)]
    total = functools.reduce(FOLDS[op], each)
    return total / size if op == "AVG" else total


def near(ours, theirs):
    return torch.allclose(ours, theirs, rtol=1e-2 if theirs.element_size() < 4 else 1e-6, atol=0)


@pytest.mark.parametrize("size", SIZES)
def test_sums_of_all_types_and_operations(size, tmp_path):
    def work(rank):
        for op, name in OPS:
            dtype = getattr(torch, name)
            ours = values(rank, dtype).view(3, 4)
            distributed.all_reduce(ours, op=getattr(Op, op))
            assert near(ours.view(-1), expected(op, dtype, size)), (op, name, ours)

    over_lcomm(size, tmp_path, work)


@pytest.mark.parametrize("size", SIZES)
def test_reductions_in_parts_and_to_one_rank(size, tmp_path):
    def work(rank):
        for op, name in OPS:
            dtype, how = getattr(torch, name), getattr(Op, op)
            whole = expected(op, dtype, size, 4 * size)
            mine = whole[4 * rank : 4 * rank + 4]
            out = torch.empty(4, dtype=dtype)
            distributed.reduce_scatter_tensor(out, values(rank, dtype, 4 * size), op=how)
            assert near(out, mine), (op, name)
            out.zero_()
            parts = list(values(rank, dtype, 4 * size).split(4))
            distributed.reduce_scatter(out, parts, op=how)
            assert near(out, mine), (op, name)
            kept = values(rank, dtype)
            distributed.reduce(kept, size - 1, op=how)
            want = expected(op, dtype, size) if rank == size - 1 else values(rank, dtype)
            assert near(kept, want), (op, name)

    over_lcomm(size, tmp_path, work)


MOVED = ["float32", "int64", "uint8", "bool", "int16", "complex64"]


@pytest.mark.parametrize("size", SIZES)
def test_moves_are_exact_for_all_types_and_odd_lengths(size, tmp_path):
    def work(rank):
        for name in MOVED:
            dtype = getattr(torch, name)
            each = [values(other, dtype, 7) for other in range(size)]
            mine = each[rank].clone()
            distributed.broadcast(mine, size - 1)
            assert mine.equal(each[-1]), name
            outs = [torch.empty_like(mine) for _ in each]
            distributed.all_gather(outs, each[rank])
            assert all(a.equal(b) for a, b in zip(outs, each)), name
            whole = torch.empty(7 * size, dtype=dtype)
            distributed.all_gather_into_tensor(whole, each[rank])
            assert whole.equal(torch.cat(each)), name
            outs = [torch.empty_like(mine) for _ in each] if rank == 0 else None
            distributed.gather(each[rank], outs, dst=0)
            assert rank or all(a.equal(b) for a, b in zip(outs, each)), name
            distributed.scatter(mine, each if rank == 0 else None, src=0)
            assert mine.equal(each[rank]), name
        distributed.barrier()

    over_lcomm(size, tmp_path, work)


def block(sender, receiver, count):
    return torch.full((count, 2), 10.0 * sender + receiver)


@pytest.mark.parametrize("size", SIZES)
def test_all_to_all_of_equal_and_of_different_lengths(size, tmp_path):
    def work(rank):
        others = range(size)
        equal = torch.cat([block(rank, other, 3) for other in others])
        out = torch.empty_like(equal)
        distributed.all_to_all_single(out, equal)
        assert out.equal(torch.cat([block(other, rank, 3) for other in others]))
        lengths = [[(sender + 2 * receiver) % 4 for receiver in others] for sender in others]
        sent, received = lengths[rank], [lengths[other][rank] for other in others]
        mine = torch.cat([block(rank, other, n) for other, n in enumerate(sent)])
        want = [block(other, rank, n) for other, n in enumerate(received)]
        out = torch.empty(sum(received), 2)
        distributed.all_to_all_single(out, mine, received, sent)
        assert out.equal(torch.cat(want))
        outs = [torch.empty_like(part) for part in want]
        distributed.all_to_all(outs, [block(rank, other, n) for other, n in enumerate(sent)])
        assert all(a.equal(b) for a, b in zip(outs, want))

    over_lcomm(size, tmp_path, work)


def test_tensors_with_gaps_and_views_are_as_any_others(tmp_path):
    def work(rank):
        image = torch.arange(24.0).reshape(1, 2, 3, 4).to(memory_format=torch.channels_last)
        distributed.all_reduce(image)
        assert image.equal(2 * torch.arange(24.0).reshape(1, 2, 3, 4))
        column = torch.zeros(4, 3)
        column[:, rank] = 1.0
        distributed.broadcast(column[:, 1], 1)
        want = torch.zeros(4, 3)
        want[:, 1] = want[:, rank] = 1.0
        assert column.equal(want)
        parameter = torch.nn.Parameter(torch.full((3,), float(rank)))
        distributed.broadcast(parameter, 1)
        assert parameter.tolist() == [1.0, 1.0, 1.0]
        distributed.all_reduce(torch.empty(0))

    over_lcomm(2, tmp_path, work)


def test_objects_travel(tmp_path):
    def work(rank):
        said = [None, None, None]
        distributed.all_gather_object(said, {"rank": rank, "text": "x" * (10 * rank)})
        assert [each["rank"] for each in said] == [0, 1, 2] and len(said[2]["text"]) == 20
        told = [("a", 1)] if rank == 1 else [None]
        distributed.broadcast_object_list(told, src=1)
        assert told == [("a", 1)]

    over_lcomm(3, tmp_path, work)


def test_calls_that_were_begun_end_in_their_order(tmp_path):
    def work(rank):
        tensors = [torch.full((1000 + i,), float(i)) for i in range(50)]
        works = [distributed.all_reduce(each, async_op=True) for each in tensors]
        futures = [each.get_future() for each in works]
        for each in reversed(works):
            each.wait()
        assert all(each.is_completed() and each.is_success() for each in works)
        for i, (tensor, future) in enumerate(zip(tensors, futures)):
            assert tensor.eq(2.0 * i).all() and future.wait()[0] is tensor

    over_lcomm(2, tmp_path, work)


def test_messages_in_both_directions_with_tags_and_before_a_new_group(tmp_path):
    def work(rank):
        right, left = (rank + 1) % 3, (rank + 2) % 3
        got = torch.empty(5)
        waiting = distributed.irecv(got, left, tag=7)
        other = distributed.new_group(backend="lcomm")  # while a message is waited for
        first, second = torch.full((3,), float(rank)), torch.full((4, 2), -float(rank))
        sent = [distributed.isend(first, right), distributed.isend(second.t(), right)]
        distributed.send(torch.full((5,), 100.0 + rank), right, tag=7)
        waiting.wait()
        assert got.eq(100.0 + left).all()
        one, two = torch.empty(3), torch.empty(2, 4)
        distributed.recv(one, left)
        distributed.recv(two, left)
        assert one.eq(left).all() and two.eq(-left).all()
        for each in sent:
            each.wait()
        total = torch.ones(2)
        distributed.all_reduce(total, group=other)
        assert total.tolist() == [3.0, 3.0]

    over_lcomm(3, tmp_path, work)


def test_messages_have_the_codec_of_pipe_and_what_else_moves_is_exact(tmp_path):
    def work(rank):
        rounded = Options(policy="net=int8 min=0 pipe=bf16", nodes=2)
        group = distributed.new_group(backend="lcomm", pg_options=rounded)
        values = torch.linspace(0.1, 1.0, 5000)
        got, numbers = torch.empty(5000), torch.arange(5000) * (1 - rank)
        if rank == 0:
            distributed.send(values, 1, group=group)
            distributed.send(numbers, 1, group=group)
        else:
            distributed.recv(got, 0, group=group)
            distributed.recv(numbers, 0, group=group)
            assert got.equal(values.bfloat16().float()) and numbers.equal(torch.arange(5000))
        same = values.clone() if rank == 0 else torch.empty(5000)
        distributed.broadcast(same, 0, group=group)
        assert same.equal(values)

    over_lcomm(2, tmp_path, work)


def test_it_works_beside_gloo(tmp_path):
    def work(rank):
        ours = distributed.new_group(backend="lcomm")
        pair = distributed.new_group([0, 2], backend="lcomm")
        for group in (None, ours, None, ours):
            total = torch.tensor([float(rank)])
            distributed.all_reduce(total, group=group)
            assert total.item() == 3.0
        if rank != 1:
            total = torch.tensor([float(rank)])
            distributed.all_reduce(total, group=pair)
            assert total.item() == 2.0
        assert distributed.get_backend(ours) == "lcomm"
        assert distributed.get_backend() == "gloo"
        return communicator(ours).rank, communicator(ours).size

    assert over_group(3, tmp_path, work) == [(0, 3), (1, 3), (2, 3)]


@pytest.mark.skipif(
    not hasattr(distributed.distributed_c10d, "BackendConfig"),
    reason="this torch has one backend for all devices",
)
def test_it_is_named_for_each_kind_of_device(tmp_path):
    def work(rank):
        total = torch.tensor([float(rank)])
        distributed.all_reduce(total)
        said = [None] * distributed.get_world_size()
        distributed.all_gather_object(said, rank)
        assert said == [0, 1]
        return total.item(), communicator().size

    named = over_group(2, tmp_path, work, backend="cpu:lcomm,cuda:lcomm")
    assert named == [(1.0, 2), (1.0, 2)]


INT8 = Options(policy="net=int8 min=0", nodes=2)


def test_sums_are_compressed_by_the_policy_and_moves_are_exact(tmp_path):
    def work(rank):
        dice = torch.Generator().manual_seed(rank)
        mine, size = torch.randn(40000, generator=dice), distributed.get_world_size()
        stats = communicator().stats

        def sent(call):
            before = stats()
            call()
            distributed.barrier()
            now = stats()
            return (
                now.sent_bytes["net"] - before.sent_bytes["net"],
                now.exact_bytes["net"] - before.exact_bytes["net"],
            )

        part, whole = torch.empty(40000 // size), torch.empty(40000 * size)
        lossy = sent(lambda: distributed.reduce_scatter_tensor(part, mine.clone()))
        assert lossy[0] < lossy[1] / 3 or lossy[1] == 0
        lossy = sent(lambda: distributed.all_reduce(mine.clone()))
        assert lossy[0] < lossy[1] / 3 or lossy[1] == 0
        exact = sent(lambda: distributed.all_gather_into_tensor(whole, mine))
        assert exact[0] >= exact[1]
        dice = [torch.Generator().manual_seed(other) for other in range(size)]
        pieces = [torch.randn(40000, generator=each) for each in dice]
        assert whole.equal(torch.cat(pieces))
        total, begin = sum(pieces), rank * len(part)
        error = (part - total[begin : begin + len(part)]).abs().max()
        assert 0 < error < 0.1
        return exact[0] > 0

    assert any(over_lcomm(4, tmp_path, work, pg_options=INT8))


@pytest.mark.parametrize("way", WAYS)
def test_exact_training_by_ddp_has_the_weights_of_gloo(way, tmp_path):
    ddp, training = WAYS[way]

    def work(rank):
        gloo = distributed.new_group(backend="gloo")
        ours = trained(DDP(Net(), bucket_cap_mb=0.1, **ddp), rank, **training)
        other = DDP(Net(), bucket_cap_mb=0.1, process_group=gloo, **ddp)
        return ours, trained(other, rank, **training)

    for ours, gloo in over_lcomm(2, tmp_path, work):
        assert (ours == gloo).all()  # a sum of two has one order


def test_compressed_training_by_ddp_is_alike_on_all_ranks_and_near(tmp_path):
    def work(rank):
        gloo = distributed.new_group(backend="gloo")
        ours = trained(DDP(Net(), bucket_cap_mb=0.1), rank)
        stats = communicator().stats()
        theirs = trained(DDP(Net(), process_group=gloo), rank)
        return ours, theirs, (stats.sent_bytes["net"], stats.exact_bytes["net"])

    said = over_lcomm(4, tmp_path, work, pg_options=INT8)
    for ours, gloo, (sent, exact) in said:
        assert (ours == said[0][0]).all() and 0 < numpy.abs(ours - gloo).max() < 1e-3
        assert sent < exact / 2


def test_the_hook_works_over_it(tmp_path):
    def work(rank):
        model = DDP(Net())
        with contextlib.closing(libcomm.torch.State("", model)) as state:
            model.register_comm_hook(state, libcomm.torch.compress)
            ours = trained(model, rank)
        return ours, trained(DDP(Net()), rank)

    for ours, without in over_lcomm(2, tmp_path, work):
        assert (ours == without).all()


def test_a_sharded_optimizer_has_the_weights_of_a_whole_one(tmp_path):
    from torch.distributed.optim import ZeroRedundancyOptimizer

    def work(rank):
        def steps(optimizer_of):
            model = DDP(Net())
            optimizer = optimizer_of(model.parameters())
            dice = torch.Generator().manual_seed(rank)
            for _ in range(4):
                optimizer.zero_grad()
                model(torch.randn(8, 32, generator=dice)).square().mean().backward()
                optimizer.step()
            return torch.cat([p.detach().reshape(-1) for p in model.parameters()]).numpy()

        adam = functools.partial(torch.optim.Adam, lr=0.01)
        sharded = functools.partial(
            ZeroRedundancyOptimizer, optimizer_class=torch.optim.Adam, lr=0.01
        )
        return steps(sharded), steps(adam)

    for sharded, whole in over_lcomm(2, tmp_path, work):
        assert (sharded == whole).all()
