# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""The hook in trouble: a sentence on every rank, and no hang."""

import os
import re
import signal

import libcomm
from ddp_models import (  # skipped without torch
    DDP,
    Known,
    Net,
    hooked,
    over_group,
    over_group_that_breaks,
    raised,
    steps_of,
    torch,
)
from worlds import Lost, free_port, programs


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


def test_a_state_that_was_closed_says_so(tmp_path):
    def work(rank):
        model = DDP(Known())
        hooked(model, "").close()
        return raised(lambda: steps_of(model, rank, range(1)))

    for _, sentence in over_group_that_breaks(2, tmp_path, work):
        assert "the State of this model was closed" in sentence


def test_averages_of_earlier_steps_are_refused_on_every_rank(tmp_path):
    def work(rank):
        model = DDP(Known())
        said = [raised(lambda: hooked(model, "net=int8 stale=2"))]
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with libcomm._torch_state._over_group(None, "stale=1:drop", {}) as comm:
            said.append(raised(lambda: libcomm.torch.DistributedOptimizer(optimizer, comm)))
        return said

    for said in over_group_that_breaks(2, tmp_path, work):
        for kind, sentence in said:
            assert kind == "UnsupportedError"
            assert "with stale= averages come steps later" in sentence


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
