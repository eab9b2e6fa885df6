# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""libcomm.so and libcomm-with-mpi.so: where they are, whether they fit, and calls to them."""

from __future__ import annotations

import ctypes
import os
import pathlib
from typing import Iterator, Optional

from . import _functions, errors
from ._version import __version__

MAJOR, MINOR, PATCH = (int(part) for part in __version__.split("."))
# The binary interface: that of a minor version before 1.0, then of a major one.
SONAME = f"libcomm.so.{MAJOR}.{MINOR}" if MAJOR == 0 else f"libcomm.so.{MAJOR}"
FOLDER = pathlib.Path(__file__).resolve().parent


def _named_by_user() -> Optional[pathlib.Path]:
    value = os.environ.get("LIBCOMM_LIBRARY")
    if not value:
        return None
    path = pathlib.Path(value)
    if path.is_dir():
        return _in_folder(path) or path / SONAME
    return path


def _in_folder(folder: pathlib.Path) -> Optional[pathlib.Path]:
    for name in (SONAME, "libcomm.so"):
        if (folder / name).exists():
            return folder / name
    return None


def _near_package() -> Iterator[pathlib.Path]:
    """Where `make install` puts it, above the package, and where a source tree builds it."""
    for folder in list(FOLDER.parents)[:6]:
        for place in (folder, folder / "build" / "latest"):
            found = _in_folder(place)
            if found:
                yield found


def _whole_version(number: int) -> str:
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def _fits(number: int) -> bool:
    """Is it of this package's binary interface, and not older than the package?"""
    if number // 10000 != MAJOR or (MAJOR == 0 and number // 100 % 100 != MINOR):
        return False
    return number >= MAJOR * 10000 + MINOR * 100 + PATCH


def _open(name: str) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(name)
    except OSError as trouble:
        raise errors.LibraryError(
            f"libcomm {__version__} of Python cannot open {name}: {trouble}. Install libcomm "
            "(make install), or let LIBCOMM_LIBRARY name libcomm.so"
        ) from trouble


def _checked(library: ctypes.CDLL, name: str) -> ctypes.CDLL:
    try:
        number = library.lcomm_version()
    except AttributeError as trouble:
        raise errors.LibraryError(f"{name} is no libcomm: it has no lcomm_version()") from trouble
    if not _fits(number):
        raise errors.LibraryError(
            f"{name} is libcomm {_whole_version(number)}, and this Python package is for "
            f"{__version__}; install both from one version, or let LIBCOMM_LIBRARY name another "
            "libcomm.so"
        )
    try:
        _functions.declare(library, _functions.FUNCTIONS)
    except AttributeError as trouble:
        raise errors.LibraryError(
            f"{name} lacks a function that libcomm {__version__} of Python uses: {trouble}"
        ) from trouble
    return library


def _find() -> str:
    """LIBCOMM_LIBRARY, else near the package, else what the system's loader knows."""
    chosen = _named_by_user() or next(_near_package(), None)
    return str(chosen) if chosen else SONAME


path: str = _find()
lib: ctypes.CDLL = _checked(_open(path), path)

# ---------------------------------------------------------------------- calls


def last_error(comm: Optional[int]) -> str:
    return str(lib.lcomm_last_error(comm).decode(errors="replace"))


def check(status: int, comm: Optional[int] = None) -> None:
    """Raise the error of a call on `comm`, or of a call without one."""
    if status != 0:
        raise errors.make(status, last_error(comm))


# ------------------------------------------------------------------------ MPI

_with_mpi: Optional[ctypes.CDLL] = None


def with_mpi() -> ctypes.CDLL:
    """libcomm-with-mpi.so, which lies beside libcomm.so. Loads MPI, but does not start it."""
    global _with_mpi
    if _with_mpi is None:
        near = pathlib.Path(path)
        name = str(near.with_name(near.name.replace("libcomm.so", "libcomm-with-mpi.so")))
        try:
            # Parts of an MPI may look for the names of others.
            library = ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
        except OSError as trouble:
            raise errors.UnsupportedError(
                f"there is no communicator over MPI: {trouble}. Build libcomm where MPI is "
                "(make MPI=openmpi or MPI=mpich), or use Communicator.from_env, which needs no MPI"
            ) from trouble
        library.lcomm_mpi_built_for.restype = ctypes.c_char_p
        is_open_mpi = library.lcomm_mpi_built_for().startswith(b"Open MPI")
        handle = ctypes.c_void_p if is_open_mpi else ctypes.c_int
        _functions.declare(library, _functions.MPI_FUNCTIONS, handle)
        _with_mpi = library
    return _with_mpi
