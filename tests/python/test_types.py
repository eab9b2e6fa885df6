# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Type hints hold together: programs that are checked by mypy see those of the package."""

import importlib.util
import pathlib
import subprocess
import sys

import libcomm
import pytest

PACKAGE = pathlib.Path(libcomm.__file__).parent
USE = """
import libcomm

with libcomm.Communicator.from_env(policy="net=int8", timeout=5.0) as comm:
    request: libcomm.Request = comm.iallreduce(bytearray(4))
    state: bytes = comm.state_dict()
    comm.load_state_dict([state, state])
    sent: int = comm.stats().sent_bytes["net"]
    name: int = comm.policy
"""


@pytest.mark.skipif(not importlib.util.find_spec("mypy"), reason="no mypy (package mypy)")
def test_hints_are_strict_and_those_of_programs_are_checked(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(USE)
    # what torch says of itself differs from version to version
    files = [str(each) for each in PACKAGE.glob("*.py") if "torch" not in each.name]
    words = ["--strict", "--cache-dir", str(tmp_path / "cache"), *files, str(program)]
    run = subprocess.run(
        [sys.executable, "-m", "mypy", *words], stdout=subprocess.PIPE, text=True, cwd=tmp_path
    )
    *said, end = run.stdout.splitlines()
    assert len(said) == 1 and "program.py:9: error: Incompatible types" in said[0], run.stdout
