# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Which libcomm.so is taken, and what is said when it is none, or another."""

import importlib.util
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

import libcomm
import pytest
from worlds import ROOT

COMPILER = shlex.split(os.environ.get("CC", "gcc"))
PACKAGE = pathlib.Path(libcomm.__file__).parent
BUILT = pathlib.Path(libcomm.library_path).resolve()

needs_compiler = pytest.mark.skipif(
    not shutil.which(COMPILER[-1]), reason=f"no {COMPILER[-1]} in PATH"
)


def imported(library=None, path=PACKAGE.parent, code="print(libcomm.library_path)"):
    """What a new Python says when it imports the package of `path`."""
    environment = {**os.environ, "PYTHONPATH": str(path)}
    environment.pop("LIBCOMM_LIBRARY", None)
    if library is not None:
        environment["LIBCOMM_LIBRARY"] = str(library)
    run = subprocess.run(
        [sys.executable, "-c", f"import libcomm; {code}"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return run.returncode, run.stdout.strip().splitlines()[-1]


def compiled(folder, text):
    (folder / "other.c").write_text(text)
    library = folder / "libcomm.so"
    subprocess.run([*COMPILER, "-shared", "-fPIC", folder / "other.c", "-o", library], check=True)
    return library


def test_a_variable_names_the_library_or_its_folder():
    assert imported(BUILT) == (0, str(BUILT))
    status, said = imported(BUILT.parent)
    assert status == 0 and pathlib.Path(said).parent == BUILT.parent


def test_a_library_that_is_not_there_is_said_with_a_remedy(tmp_path):
    status, said = imported(tmp_path / "libcomm.so")
    assert status == 1 and "LibraryError" in said and str(tmp_path) in said
    assert "make install" in said and "LIBCOMM_LIBRARY" in said
    assert imported(tmp_path)[0] == 1


@needs_compiler
@pytest.mark.parametrize("number, name", [(200, "0.2.0"), (99, "0.0.99"), (10000, "1.0.0")])
def test_another_version_is_refused_with_both_versions(tmp_path, number, name):
    library = compiled(tmp_path, f"int lcomm_version(void) {{ return {number}; }}")
    status, said = imported(library)
    assert status == 1 and f"is libcomm {name}" in said and libcomm.__version__ in said


@needs_compiler
def test_what_is_no_libcomm_is_refused(tmp_path):
    status, said = imported(compiled(tmp_path, "int nothing;"))
    assert status == 1 and "is no libcomm" in said
    status, said = imported(compiled(tmp_path, "int lcomm_version(void) { return 100; }"))
    assert status == 1 and "lacks a function" in said and "lcomm_last_error" in said


def test_a_library_above_the_package_is_found(tmp_path):
    """As `make install` puts them."""
    folder = tmp_path / "lib" / "python3" / "dist-packages"
    shutil.copytree(PACKAGE, folder / "libcomm")
    shutil.copy(BUILT, tmp_path / "lib" / "libcomm.so.0.1")
    assert imported(path=folder) == (0, str(tmp_path / "lib" / "libcomm.so.0.1"))


def test_the_build_of_a_source_tree_is_found():
    if not (ROOT / "build" / "latest" / "libcomm.so").exists():
        pytest.skip("there is no build/latest")
    assert imported() == (0, str(ROOT / "build" / "latest" / "libcomm.so.0.1"))


def test_pip_installs_the_package_and_its_types(tmp_path):
    needed = ("pip", "setuptools", "wheel")
    missing = [name for name in needed if not importlib.util.find_spec(name)]
    if missing:
        pytest.skip("no " + ", ".join(f"{name} (package python3-{name})" for name in missing))
    source, target = tmp_path / "source", tmp_path / "target"
    shutil.copytree(PACKAGE.parent, source)
    words = "-m pip install -q --no-index --no-build-isolation --no-deps --target"
    run = subprocess.run(
        [sys.executable, *words.split(), str(target), str(source)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert run.returncode == 0, run.stdout
    assert (target / "libcomm" / "py.typed").exists()
    assert (target / f"libcomm-{libcomm.__version__}.dist-info").exists()
    assert imported(BUILT, target) == (0, str(BUILT))


def test_every_public_name_has_a_docstring_and_types():
    for name in libcomm.__all__:
        public = getattr(libcomm, name)
        assert isinstance(public, str) or public.__doc__, name
    methods = [
        (kind, name)
        for kind in (libcomm.Communicator, libcomm.Request, libcomm.Residual, libcomm.Preview)
        for name in dir(kind)
        if not name.startswith("_")
    ]
    for kind, name in methods:
        method = getattr(kind, name)
        function = method.fget if isinstance(method, property) else method
        assert function.__annotations__.get("return") is not None, name
        assert function.__doc__ or name in ("closed",), name
