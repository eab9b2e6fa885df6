# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""What the library tells on its own: log sentences, and what checks of guard= found."""

import sys

import libcomm
import numpy
import pytest
from libcomm import LogLevel
from worlds import forked, programs, raised, world

COUNTS = {"wide": 1 << 15, "narrow": 2000}
POLICY = "net=topk:0.01+ef min=0 guard=2,residual=1e9"


def steps(comm, tensors, number):
    dice = numpy.random.default_rng(comm.rank)
    for _ in range(number):
        for name, tensor in tensors.items():
            tensor.ready(dice.standard_normal(COUNTS[name], dtype=numpy.float32))
        comm.wait_tensors()


def test_a_function_is_told_what_each_check_found_alike_on_all_ranks():
    def work(comm):
        tensors = {n: comm.add_tensor(n, numpy.zeros(c, numpy.float32)) for n, c in COUNTS.items()}
        told = []
        assert tensors["wide"].guard().checks == 0
        comm.on_guard(told.append)
        steps(comm, tensors, 4)
        last = [tensors[name].guard() for name in COUNTS]
        comm.on_guard(None)
        steps(comm, tensors, 2)
        return told, last, tensors["wide"].guard().checks

    said = world(2, work, policy=POLICY, nodes=2)
    assert said[0] == said[1]
    told, last, checks = said[0]
    assert [(each.tensor, each.checks) for each in told] == [
        (name, check) for check in (1, 2) for name in COUNTS
    ]
    assert told[-2:] == last and checks == 3
    wide = told[0]
    assert wide.samples > 0 and 0 < wide.error < 2 and wide.residual > 0 and not wide.beyond
    assert wide.codec.startswith("topk:0.01") and wide.next == wide.codec


def test_what_is_beyond_its_limit_is_told_with_its_next_codec():
    def work(comm):
        tensors = {n: comm.add_tensor(n, numpy.zeros(c, numpy.float32)) for n, c in COUNTS.items()}
        told = []
        comm.on_guard(told.append)
        steps(comm, tensors, 1)
        return told[0].beyond, told[0].next, told[0].fallbacks

    beyond, following, fallbacks = world(
        2, work, policy="net=topk:0.01 min=0 guard=1,limit=0.01", nodes=2
    )[0]
    assert beyond is True and following.startswith("int4") and fallbacks == 1


def test_calls_with_a_residual_are_checked_likewise():
    def work(comm):
        residual = comm.residual(COUNTS["wide"], name="layer")
        told, dice = [], numpy.random.default_rng(comm.rank)
        before = residual.guard()
        comm.on_guard(told.append)
        for _ in range(6):
            residual.allreduce(dice.standard_normal(COUNTS["wide"], dtype=numpy.float32))
        return before.checks, told, residual.guard()

    said = world(2, work, policy=POLICY, nodes=2)
    assert said[0] == said[1]
    before, told, last = said[0]
    assert before == 0 and told[-1] == last and last.tensor == "layer" and last.samples > 0
    assert 0 < last.error < 2 and last.codec.startswith("topk:0.01")


def test_a_function_that_raises_disturbs_no_step():
    def work(comm):
        ignored = []
        sys.unraisablehook = lambda trouble: ignored.append(trouble.exc_type)
        tensors = {n: comm.add_tensor(n, numpy.zeros(c, numpy.float32)) for n, c in COUNTS.items()}
        comm.on_guard(lambda guard: 1 / 0)
        steps(comm, tensors, 2)
        assert ignored == [ZeroDivisionError] * 2
        return tensors["wide"].guard().checks

    assert world(2, work, policy=POLICY, nodes=2) == [1, 1]


def test_sentences_up_to_a_level_go_to_a_function_and_nowhere_else(capfd):
    def work(_rank):
        told = []
        libcomm.log(lambda level, sentence: told.append((level, sentence)), "info")
        with libcomm.Communicator.from_env(policy="net=int8") as comm:
            comm.allreduce(numpy.ones(10, numpy.float32))
        before = len(told)
        libcomm.log(None)
        raised(libcomm.Communicator.from_env, policy="net=int9")
        return told, before == len(told)

    said = forked(2, work)
    for told, is_silent in said:
        assert is_silent and {level for level, _ in told} == {LogLevel.INFO}
    assert any("int8" in sentence for told, _ in said for _, sentence in told)
    assert "INFO" not in capfd.readouterr().err


def test_errors_are_told_with_their_level():
    def work(_rank):
        told = []
        libcomm.log(lambda level, sentence: told.append((level, sentence)), "error")
        with pytest.raises(libcomm.PolicyError) as caught:
            libcomm.Communicator.from_env(policy="net=int9")
        return told, str(caught.value)

    for told, sentence in forked(1, work):
        assert (LogLevel.ERROR, sentence) in told


def test_a_level_that_does_not_exist_is_refused():
    said = raised(libcomm.log, print, "loud")
    assert said[0] == "ArgumentError" and "warn" in said[1]


PROGRAM = """
import libcomm, numpy
libcomm.log(lambda level, sentence: print(level.name, sentence), "trace")
comm = libcomm.Communicator.from_env(progress="thread")
for _ in range(20):
    comm.allreduce(numpy.ones(10, numpy.float32))
"""


def test_programs_that_end_while_the_library_tells_end_well():
    for status, output in programs(2, ["-c", PROGRAM]):
        assert status == 0 and "TRACE" in output, output
