# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Policies: in force, changed, asked, and previewed; counters and plans."""

import dataclasses

import libcomm
import numpy
import pytest
from worlds import raised, world

BIG = 1 << 20


def changed(comm):
    first = comm.policy
    comm.set_policy("net=int8 min=1K")
    second = comm.policy, comm.query("allreduce", 1000).selection
    kind, sentence = raised(comm.set_policy, "net=int8" if comm.rank else "net=bf16")
    assert kind == "MismatchError" and "bf16" in sentence
    assert raised(comm.set_policy, "net=int9")[0] == "PolicyError"
    assert comm.policy == second[0]
    assert (comm.allreduce(numpy.ones(4, numpy.float32)) == comm.size).all()
    return first, second


def test_a_policy_changes_on_all_ranks_or_on_none():
    for first, (policy, selection) in world(2, changed, nodes=2):
        assert first == "net=none"
        assert "net=int8" in policy and "min=1K" in policy
        assert selection is libcomm.Selection.LOSSY


def asked(comm):
    answer = comm.query("allreduce", BIG)
    assert answer == (libcomm.Selection.LOSSY, "")
    assert comm.query("allreduce", 10).selection is libcomm.Selection.NONE
    assert comm.query("allreduce", 10).why
    assert comm.query("broadcast", BIG, "int32").selection is not libcomm.Selection.LOSSY
    sent, exact = comm.call_bytes("allreduce", BIG)
    assert 0 < sent < exact / 3 and exact == comm.call_bytes("allreduce", BIG).exact
    assert comm.facts == libcomm.Facts(64 << 10, True, False, False, False, 0)
    with comm.preview(policy_text="net=topk:0.01+ef") as preview:
        assert preview.policy.startswith("net=topk") and preview.nodes == 2
        assert preview.query("allreduce", BIG).selection is libcomm.Selection.EF
        assert preview.facts.error_feedback
        few = preview.bytes("allreduce", BIG, error_feedback=True)
        assert few.sent < few.exact / 20
    assert raised(preview.query, "allreduce", 1)[0] == "StateError"
    with comm.preview(policy_text="net=int8 min=0 match=comm=grad*") as preview:
        assert preview.query("allreduce", BIG).selection is libcomm.Selection.NONE
        preview.name("gradients")
        assert preview.query("allreduce", BIG).selection is libcomm.Selection.LOSSY
    assert comm.preview(members=[comm.rank]).nodes == 1
    assert raised(comm.preview, policy_text="net=int9")[0] == "PolicyError"
    assert raised(comm.query, "scatter", 1)[0] == "ArgumentError"
    assert raised(comm.query, "allreduce", 1, "float128")[0] == "ArgumentError"


def test_calls_are_asked_and_previewed():
    world(2, asked, nodes=2, policy="net=int8")


def plans(comm):
    text = comm.plan(BIG, numpy.float32)
    assert "int8" in text and comm.plan(BIG, "float32", residual=True)
    assert "int8" not in comm.plan(BIG, libcomm.Dtype.INT32)
    before = comm.stats()
    assert before.operations == 0
    comm.allreduce(numpy.ones(BIG, numpy.float32))
    after = comm.stats()
    assert after.operations == 1 and after.sent_messages["net"] > 0
    assert set(after.sent_bytes) == {"self", "same-device", "nvlink", "pcie", "shm", "net"}
    assert after.memory_bytes > 0 and dataclasses.asdict(after)["run_misses"] == 1
    comm.reset_stats()
    assert comm.stats().operations == 0
    return comm.rank, comm.size, comm.node, comm.nodes, comm.local_rank, repr(comm)


def test_plans_are_told_in_words_and_counters_count():
    for rank, answers in enumerate(world(4, plans, nodes=2, policy="net=int8")):
        assert answers[:5] == (rank, 4, rank // 2, 2, rank % 2)
        assert f"rank {rank} of 4" in answers[5] and "net=int8" in answers[5]


def parts(comm):
    part = comm.split(comm.rank % 2, key=-comm.rank, policy="net=bf16")
    place = part.rank, part.size, part.policy
    total = part.allreduce(numpy.array([float(comm.rank)]))[0]
    part.close()
    assert comm.split(-1 if comm.rank == 0 else 0) is None or comm.rank > 0
    return place, total


def test_a_split_makes_parts_with_policies_of_their_own():
    said = world(4, parts, nodes=2)
    assert [place[:2] for place, _ in said] == [(1, 2), (1, 2), (0, 2), (0, 2)]
    assert [total for _, total in said] == [2, 4, 2, 4]
    assert all("net=bf16" in place[2] for place, _ in said)


def test_a_progress_that_does_not_exist_is_refused():
    assert raised(libcomm.Communicator.from_env, progress="always")[0] == "ArgumentError"


@pytest.mark.parametrize("progress", ["calls", "thread", "auto"])
def test_operations_move_in_each_way(progress):
    def work(comm):
        requests = [comm.iallreduce(numpy.ones(BIG, numpy.float32)) for _ in range(3)]
        return [float(request.wait()[-1]) for request in requests]

    assert world(2, work, progress=progress) == [[2.0] * 3] * 2
