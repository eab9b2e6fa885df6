# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""The hook and trouble in programs that torchrun starts."""

import re

import pytest
from worlds import ROOT, by_torchrun

pytest.importorskip("torch.distributed", reason="no torch (package python3-torch)")

PROGRAM = str(ROOT / "tests" / "python" / "under_torchrun.py")
CASES = {  # what all ranks say
    "exact": r"alike True, off gloo's by (0\.0e\+00|\d\.\de-(0[7-9]|[1-9]\d))$",
    "net=int8 min=0": r"alike True, off gloo's by \d\.\de-0[4-7]$",
    "environment": "True",
    "wrong policy": r"\('PolicyError', .*column 5: unknown codec 'int9'",
    "other policies": r"\('MismatchError', (?=.*int8).*bf16",
    "other shapes": r"\('MismatchError', .*rank .*different",
}
LOST = r"\('RuntimeError', .*(Transport|Remote|PeerTimeout)Error: .*rank 1"


@pytest.mark.parametrize("size", [2, 4])
def test_ranks_of_torchrun_train_alike_and_all_are_told_what_is_wrong(size, tmp_path):
    status, output = by_torchrun(size, tmp_path, [PROGRAM])
    assert status != 0  # of the rank that was killed
    for rank in range(size):
        said = dict(re.findall(rf"rank {rank}: ([^:]+): (.*)", output))
        for case, words in CASES.items():
            assert re.match(words, said.get(case, "")), (rank, case, output)
        assert (rank == 1) != bool(re.match(LOST, said.get("lost rank", ""))), (rank, output)
