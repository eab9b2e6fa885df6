# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""The backend "lcomm" in trouble: libcomm's exception on every rank, no hang, no growth."""

import os
import signal
import sys
import threading
import time

import pytest
from ddp_models import (  # skipped without torch
    DDP,
    Known,
    Net,
    distributed,
    group,
    over_group,
    over_group_that_breaks,
    raised,
    steps_of,
    torch,
)
from test_memory import held
from worlds import PATIENCE_S, Lost, forked, free_port, programs

from libcomm.torch import Options, communicator

NAMED = ("TransportError", "RemoteError", "PeerTimeoutError")


def test_a_killed_rank_is_named_by_calls_and_by_backward_on_every_other(tmp_path):
    def work(rank):
        model = DDP(Known())
        steps_of(model, rank, range(2))
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        calls = [
            lambda: [steps_of(model, rank, range(2)) for _ in range(100)],
            lambda: distributed.all_reduce(torch.ones(4)),
            distributed.barrier,
            lambda: distributed.all_reduce(torch.ones(4), async_op=True).get_future().wait(),
        ]
        return [raised(call) for call in calls]

    said = over_group_that_breaks(3, tmp_path, work, backend="lcomm")
    assert isinstance(said.pop(1), Lost)
    for backward, *calls, future in said:
        assert backward[0] in (*NAMED, "RuntimeError") and "rank 1" in backward[1], backward
        for kind, sentence in calls:
            assert kind in NAMED and "rank 1" in sentence, (kind, sentence)
        assert future[0] == "RuntimeError" and "rank 1" in future[1]


@pytest.mark.parametrize("size", [2, 4])
def test_shapes_that_differ_are_named_on_every_rank(size, tmp_path):
    def work(rank):
        return raised(distributed.all_reduce, torch.ones(10 + (rank == 1)))

    for kind, sentence in over_group_that_breaks(size, tmp_path, work, backend="lcomm"):
        assert kind == "MismatchError" and "rank" in sentence and "different" in sentence


def test_lengths_of_all_to_all_that_differ_are_named(tmp_path):
    def work(rank):
        parts = [torch.ones(2), torch.ones(3)]
        outs = [torch.ones(2), torch.ones(2)] if rank == 0 else [torch.ones(1), torch.ones(3)]
        return raised(distributed.all_to_all, outs, parts)

    said = over_group_that_breaks(2, tmp_path, work, backend="lcomm")
    assert [kind for kind, _ in said] == ["AbortedError", "ArgumentError"], said
    for _, sentence in said:
        assert "rank 0 sends 3 elements to rank 1, which expects 1" in sentence


def test_messages_of_other_lengths_are_named_where_they_are_received(tmp_path):
    def work(rank):
        if rank == 0:
            return raised(distributed.send, torch.ones(3), 1)
        return raised(distributed.recv, torch.ones(4), 0)

    _sender, (kind, sentence) = over_group_that_breaks(2, tmp_path, work, backend="lcomm")
    assert kind == "MismatchError" and "3" in sentence and "4" in sentence, sentence


def begun(folder, size, options_of):
    def rank(number):
        words = {"backend": "lcomm", "pg_options": options_of(number)}
        return raised(group(folder, number, size, **words).__enter__)

    return forked(size, rank)


def test_wrong_policies_are_refused_when_the_group_is_made(tmp_path):
    for kind, sentence in begun(tmp_path, 2, lambda rank: Options(policy="net=int9")):
        assert kind == "PolicyError" and "int9" in sentence


def test_policies_that_differ_are_named_on_every_rank(tmp_path):
    policies = ["net=int8", "net=bf16"]
    for kind, sentence in begun(tmp_path, 2, lambda rank: Options(policy=policies[rank])):
        assert kind == "MismatchError" and "int8" in sentence and "bf16" in sentence


def test_other_options_and_what_the_backend_cannot_do_are_sentences(tmp_path):
    def work(rank):
        gloo = distributed.new_group(backend="gloo")
        return [
            raised(distributed.new_group, backend="lcomm", pg_options="net=int8"),
            raised(distributed.recv, torch.ones(1)),
            raised(communicator, gloo),
        ]

    for options, anybody, other in over_group(2, tmp_path, work, backend="lcomm"):
        assert options[0] == "ArgumentError" and "libcomm.torch.Options" in options[1]
        assert anybody[0] == "UnsupportedError" and "give src" in anybody[1]
        assert other[0] == "StateError" and "lcomm" in other[1]


PROGRAM = """
import torch, torch.distributed as dist, libcomm.torch
torch.set_num_threads(1)
dist.init_process_group("lcomm")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
other = 1 - dist.get_rank()
waiting = dist.irecv(torch.ones(2), other)
dist.send(torch.ones(2), other)
for step in range(3):
    model(torch.ones(4, 8)).sum().backward()
    {line}
"""


def run(line):
    return programs(2, ["-c", PROGRAM.format(line=line)], MASTER_PORT=str(free_port()))


@pytest.mark.parametrize("line", ["pass", "if step == 2: dist.destroy_process_group()"])
def test_programs_end_without_a_crash_whether_they_close_or_not(line):
    assert run(line) == [(0, ""), (0, "")]


def test_an_exception_in_one_program_is_raised_by_the_calls_of_the_others():
    said = run("if step == 1 and dist.get_rank(): raise ValueError('a broken image')")
    assert [status for status, _ in said] == [1, 1], said
    assert "rank 1 ends with ValueError: a broken image" in said[0][1]


def test_groups_that_were_destroyed_hold_nothing(tmp_path):
    def work(rank):
        def make(number):
            for _ in range(number):
                part = distributed.new_group(backend="lcomm")
                distributed.all_reduce(torch.ones(10), group=part)
                distributed.destroy_process_group(part)
            distributed.barrier()

        def settled():
            end = time.monotonic() + PATIENCE_S / 4
            while threading.active_count() > 1 and time.monotonic() < end:
                time.sleep(0.01)  # threads of the groups end by themselves
            assert threading.active_count() == 1
            return held()

        make(5)
        before = settled()
        make(20)
        return [after - earlier for after, earlier in zip(settled(), before)]

    for blocks, files, memory in over_group(2, tmp_path, work):
        assert blocks < 4000 and files <= 2 and memory < 8 << 20


def test_ten_thousand_iterations_hold_nothing(tmp_path):
    def work(rank):
        values, whole = torch.ones(64), torch.ones(128)
        model = DDP(Net())

        def iterate(number):
            for i in range(number):
                distributed.all_reduce(values)
                distributed.all_gather_into_tensor(whole, values, async_op=True)
                distributed.broadcast(values, 1)
                if i % 100 == 0:
                    model(torch.ones(2, 32)).sum().backward()
                    distributed.send(values, 1) if rank == 0 else distributed.recv(values, 0)
            distributed.barrier()
            return held()

        before = iterate(1000)
        return [after - earlier for after, earlier in zip(iterate(10000), before)]

    for blocks, files, memory in over_group(2, tmp_path, work, backend="lcomm"):
        assert blocks < 1000 and files == 0 and memory < 4 << 20


def test_a_tensor_is_held_no_longer_than_its_call(tmp_path):
    def work(rank):
        values = torch.ones(1000)
        before = sys.getrefcount(values)
        for _ in range(20):
            distributed.all_reduce(values)
        distributed.distributed_c10d._get_default_group()._works.clear()
        end = time.monotonic() + PATIENCE_S / 4
        while sys.getrefcount(values) > before and time.monotonic() < end:
            time.sleep(0.01)  # the thread is about to put it away
        return sys.getrefcount(values) - before

    assert over_group(2, tmp_path, work, backend="lcomm") == [0, 0]
