# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Programs that are checked by mypy see the type hints of the package."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import libcomm
import pytest

FOLDER = pathlib.Path(libcomm.__file__).parents[1]
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
def test_programs_that_are_checked_see_the_hints(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(USE)
    # what torch says of itself differs from version to version; the package has a check of its own
    words = ["--strict", "--follow-imports", "silent", "--cache-dir", str(tmp_path / "cache")]
    run = subprocess.run(
        [sys.executable, "-m", "mypy", *words, str(program)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(FOLDER)},
    )
    *said, end = run.stdout.splitlines()
    assert len(said) == 1 and "program.py:9: error: Incompatible types" in said[0], run.stdout
