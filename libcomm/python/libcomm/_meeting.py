# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""How ranks find each other: through the environment, MPI, or an all-gather in Python."""

from __future__ import annotations

import atexit
import ctypes
import sys
from typing import Any, Callable, List, Optional

from . import _header, _library, _structs, errors
from ._library import lib

Allgather = Callable[[bytes], List[bytes]]

# ------------------------------------------------------------- configuration


def configuration(
    policy: Optional[str],
    timeout: float,
    nodes: int,
    transport: Optional[str],
    progress: str,
) -> _structs.CConfig:
    """lcomm_config; what is left at its default is taken from the environment."""
    try:
        mode = _header.Progress[progress.upper()]
    except KeyError:
        names = ", ".join(each.name.lower() for each in _header.Progress)
        raise errors.ArgumentError(f"there is no progress {progress!r}: one of {names}") from None
    return _structs.CConfig(
        ctypes.sizeof(_structs.CConfig),
        None if policy is None else policy.encode(),
        timeout,
        nodes,
        None if transport is None else transport.encode(),
        mode,
    )


# --------------------------------------------------------------- an all-gather


def over_allgather(
    rank: int, size: int, allgather: Allgather, config: _structs.CConfig
) -> ctypes.c_void_p:
    """A communicator over an all-gather of bytes."""
    trouble: List[BaseException] = []

    def gather(_context: Any, send: int, receive: int, length: int) -> int:
        try:
            blocks = allgather(ctypes.string_at(send, length))
            gathered = b"".join(blocks)
            if len(gathered) != length * size:
                raise ValueError(
                    f"the all-gather returned {len(gathered)} bytes for {size} ranks, and each "
                    f"gave {length}"
                )
            ctypes.memmove(receive, gathered, len(gathered))
            return 0
        except BaseException as problem:  # it must not pass through C
            trouble.append(problem)
            return 1

    function = _structs.AllgatherFunction(gather)
    bootstrap = _structs.CBootstrap(rank, size, None, function)
    handle = ctypes.c_void_p()
    status = lib.lcomm_create(ctypes.byref(bootstrap), ctypes.byref(config), ctypes.byref(handle))
    if status != 0 and trouble:
        sentence = f"{_library.last_error(None)}; the all-gather raised: {trouble[0]!r}"
        raise errors.make(status, sentence) from trouble[0]
    _library.check(status)
    return handle


class StoreGather:
    """An all-gather over a store with set(), get() and add(), as torch.distributed has.

    Rank 0 collects what all say, and tells it to all: three messages for each rank.
    """

    def __init__(self, store: Any, rank: int, size: int, prefix: str) -> None:
        self._store, self._rank, self._size = store, rank, size
        # As often as this rank met others in this store: all have met as often.
        meeting = store.add(f"{prefix}/met/{rank}", 1)
        self._prefix, self._turn = f"{prefix}/{meeting}", 0

    def __call__(self, mine: bytes) -> List[bytes]:
        turn = f"{self._prefix}/{self._turn}"
        self._turn += 1
        self._store.set(f"{turn}/{self._rank}", mine)
        if self._rank == 0:
            said = [bytes(self._store.get(f"{turn}/{rank}")) for rank in range(self._size)]
            self._store.set(f"{turn}/all", b"".join(said))
        gathered = bytes(self._store.get(f"{turn}/all"))
        length = len(gathered) // self._size
        return [gathered[i * length : (i + 1) * length] for i in range(self._size)]


# ------------------------------------------------------------------------ MPI


def _finalize(library: ctypes.CDLL) -> None:
    ended = ctypes.c_int(0)
    if library.MPI_Finalized(ctypes.byref(ended)) == 0 and not ended.value:
        library.MPI_Finalize()


def _start_mpi(library: ctypes.CDLL) -> None:
    """MPI_Init_thread, unless someone has called it; who starts MPI ends it."""
    begun, level = ctypes.c_int(0), ctypes.c_int(0)
    multiple = 3  # MPI_THREAD_MULTIPLE of Open MPI, MPICH and those that come from it
    library.MPI_Initialized(ctypes.byref(begun))
    if begun.value:
        return
    if library.MPI_Init_thread(None, None, multiple, ctypes.byref(level)) != 0:
        raise errors.TransportError("MPI_Init_thread failed; is this process started by mpirun?")
    atexit.register(_finalize, library)


def _world(library: ctypes.CDLL) -> Any:
    if library.lcomm_mpi_built_for().startswith(b"Open MPI"):
        return ctypes.addressof(ctypes.c_char.in_dll(library, "ompi_mpi_comm_world"))
    return 0x44000000  # MPI_COMM_WORLD of MPICH's binary interface


def _handle_of(mpi_comm: Any, library: ctypes.CDLL) -> Any:
    """MPI_Comm of mpi4py's communicator."""
    # who has one has imported mpi4py; it is not imported here, where it may be of another MPI
    MPI = sys.modules.get("mpi4py.MPI")
    if MPI is None or not isinstance(mpi_comm, MPI.Comm):
        raise errors.ArgumentError(
            f"{mpi_comm!r:.60} is no communicator of mpi4py; without an argument from_mpi takes "
            "MPI_COMM_WORLD"
        )
    _refuse_other(library)
    is_pointer = MPI._sizeof(MPI.Comm) == ctypes.sizeof(ctypes.c_void_p)
    kind: Any = ctypes.c_void_p if is_pointer else ctypes.c_int
    return kind.from_address(MPI._addressof(mpi_comm)).value


def _refuse_other(library: ctypes.CDLL) -> None:
    """No handle of another MPI than that of libcomm-with-mpi.so may be used."""
    other = library.lcomm_mpi_other()
    if other:
        raise errors.UnsupportedError(other.decode())


def over_mpi(mpi_comm: Any, config: _structs.CConfig) -> ctypes.c_void_p:
    """A communicator over the ranks of an MPI communicator; None: MPI_COMM_WORLD."""
    library = _library.with_mpi()
    if mpi_comm is None:
        _refuse_other(library)
        _start_mpi(library)
        raw = _world(library)
    else:
        raw = _handle_of(mpi_comm, library)
    handle = ctypes.c_void_p()
    _library.check(library.lcomm_create_mpi(raw, ctypes.byref(config), ctypes.byref(handle)))
    return handle
