# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Communicators: how they are made, what they say of themselves, how they end."""

from __future__ import annotations

import ctypes
import os
from typing import Any, Optional

from . import _ending, _meeting, _structs
from . import stats as _stats
from ._elastic import Elastic
from ._feedback import Feedback
from ._late import Late
from ._library import check, lib
from ._pairs import Pairs
from ._policies import Policies
from ._servers import Servers
from .stats import RackStats, Stats
from .tensors import Tensors


class Communicator(Feedback, Pairs, Policies, Tensors, Servers, Late, Elastic):
    """Ranks that sum, gather and exchange arrays: exact inside a node, compressed between nodes.

    Made by from_env(), from_mpi(), from_store() or from_allgather(), which are collective: all
    ranks call them; a newcomer to ranks that are at work by join(). Their options, all of which may
    be left out:
      policy     what is compressed, such as "net=int8"; None: LCOMM_POLICY, else exact
      timeout    seconds that a call waits without progress; 0: LCOMM_TIMEOUT_S
      nodes      pose as so many nodes; 0: LCOMM_NODES, else the real hosts
      transport  such as "shm,ucx"; None: LCOMM_TRANSPORT, else auto
      progress   who moves running operations: "default", "calls", "thread" or "auto"

    Ends by close(), by the end of a `with`, and at the end of the process, in order. An exception
    that leaves the `with`, or ends the process, is told to the other ranks, whose calls then raise
    AbortedError instead of waiting. One thread at a time uses a communicator. The interpreter's
    lock is released in every call.
    """

    def __init__(self, handle: Optional[int]) -> None:
        super().__init__(handle)
        self._process = os.getpid()
        _ending.remember(self)

    # ------------------------------------------------------------------ made

    @classmethod
    def from_env(
        cls,
        policy: Optional[str] = None,
        timeout: float = 0.0,
        nodes: int = 0,
        transport: Optional[str] = None,
        progress: str = "default",
    ) -> "Communicator":
        """The ranks that torchrun, srun or mpirun has started; alone, a world of one.

        They meet at MASTER_ADDR and MASTER_PORT; neither MPI nor torch is needed. libcomm.h,
        lcomm_create_env, says which variables are read. Raises ArgumentError, PolicyError,
        MismatchError, PeerTimeoutError (the ranks that did not come are named), TransportError.
        """
        config = _meeting.configuration(policy, timeout, nodes, transport, progress)
        handle = ctypes.c_void_p()
        check(lib.lcomm_create_env(ctypes.byref(config), ctypes.byref(handle)))
        return cls(handle.value)

    @classmethod
    def join(cls, timeout: float = 0.0) -> "Communicator":
        """A newcomer joins elastic ranks that are at work, when they call regroup().

        It waits for them at MASTER_ADDR (a host, or several: host0,host1) and MASTER_PORT, at most
        `timeout` seconds; LCOMM_TOKEN is theirs. Policy and all else come from them. from_env()
        does the same with LCOMM_JOIN=on. Raises PeerTimeoutError (not admitted), MismatchError,
        and as from_env().
        """
        config = _meeting.configuration(None, timeout, 0, None, "default")
        handle = ctypes.c_void_p()
        check(lib.lcomm_join(ctypes.byref(config), ctypes.byref(handle)))
        return cls(handle.value)

    @classmethod
    def from_mpi(
        cls,
        mpi_comm: Any = None,
        policy: Optional[str] = None,
        timeout: float = 0.0,
        nodes: int = 0,
        transport: Optional[str] = None,
        progress: str = "default",
    ) -> "Communicator":
        """The ranks of a communicator of mpi4py; None: all of MPI, which is started if need be.

        mpi4py is needed for the former only. Ends before MPI does. Raises as from_env(), and
        UnsupportedError where libcomm-with-mpi.so is missing or was built for another MPI.
        """
        config = _meeting.configuration(policy, timeout, nodes, transport, progress)
        return cls(_meeting.over_mpi(mpi_comm, config).value)

    @classmethod
    def from_store(
        cls,
        store: Any,
        rank: int,
        size: int,
        policy: Optional[str] = None,
        timeout: float = 0.0,
        nodes: int = 0,
        transport: Optional[str] = None,
        progress: str = "default",
        prefix: str = "libcomm",
    ) -> "Communicator":
        """Ranks that share a store of torch.distributed, or any with set(), get() and add().

        get() waits until the key was set. Keys begin with `prefix`; several communicators may
        be made over one store. Raises as from_env(); what the store raises is the cause.
        """
        gather = _meeting.StoreGather(store, rank, size, prefix)
        return cls.from_allgather(rank, size, gather, policy, timeout, nodes, transport, progress)

    @classmethod
    def from_allgather(
        cls,
        rank: int,
        size: int,
        allgather: _meeting.Allgather,
        policy: Optional[str] = None,
        timeout: float = 0.0,
        nodes: int = 0,
        transport: Optional[str] = None,
        progress: str = "default",
    ) -> "Communicator":
        """Ranks with an all-gather of their own, which is called a few times here.

        allgather: takes the bytes of this rank and returns those of all, in the order of the
        ranks, all of one length. Raises as from_env(); what allgather raises is the cause.
        """
        config = _meeting.configuration(policy, timeout, nodes, transport, progress)
        return cls(_meeting.over_allgather(rank, size, allgather, config).value)

    def split(
        self,
        color: int,
        key: int = 0,
        policy: Optional[str] = None,
        timeout: float = 0.0,
        nodes: int = 0,
        transport: Optional[str] = None,
        progress: str = "default",
    ) -> Optional["Communicator"]:
        """Communicators over parts of this one: ranks of one color come together. Collective.

        They are ordered by key, then by rank. A negative color receives None. What is left out
        of the options is as in this communicator.
        """
        config = _meeting.configuration(policy, timeout, nodes, transport, progress)
        part = ctypes.c_void_p()
        handle = self._handle_now()
        self._check(lib.lcomm_split(handle, color, key, ctypes.byref(config), ctypes.byref(part)))
        return type(self)(part.value) if part.value else None

    # ----------------------------------------------------------------- ended

    @property
    def closed(self) -> bool:
        return self._handle is None

    def close(self) -> None:
        """Free it, with its residuals. Collective, unless an error occurred; may be called again.

        Operations that were begun must have been waited for: else this is an abort. Raises the
        communicator's error, if there was one; it is freed all the same.
        """
        handle, self._handle = self._handle, None
        if handle is None:
            return
        _ending.forget(self)
        if os.getpid() != self._process:
            return  # a forked child leaves its parent's communicators alone
        status = lib.lcomm_destroy(handle)
        self._running.clear()
        self._channels.clear()
        check(status)

    def abort(self, reason: str = "") -> None:
        """Give up: what runs, and all later calls, fail on all ranks with this sentence."""
        self._check(lib.lcomm_abort(self._handle_now(), reason.encode() or None))

    def _leave(self, trouble: BaseException) -> None:
        """End it without waiting for anybody, because of an exception."""
        handle = self._handle
        if handle is not None and os.getpid() == self._process:
            reason = f"{type(trouble).__name__}: {trouble}"[:400]
            lib.lcomm_abort(handle, f"rank {self._rank} ends with {reason}".encode())
        try:
            self.close()
        except Exception:  # nothing new: the exception on its way says what happened
            pass

    def _forget(self) -> None:
        """Say nothing: the others lose this rank when its process ends."""
        self._handle = None
        _ending.forget(self)

    def __enter__(self) -> "Communicator":
        return self

    def __exit__(self, _kind: Any, trouble: Optional[BaseException], _trace: Any) -> None:
        if trouble is None or (isinstance(trouble, SystemExit) and not trouble.code):
            self.close()
        else:
            self._leave(trouble)

    def __repr__(self) -> str:
        state = "closed" if self.closed else repr(self.policy) if self.policy else "exact"
        return f"<libcomm.Communicator rank {self._rank} of {self._size}, {state}>"

    # ------------------------------------------------------------------ asked

    @property
    def rank(self) -> int:
        """Of this process, from 0."""
        return self._rank

    @property
    def size(self) -> int:
        """Number of ranks."""
        return self._size

    @property
    def node(self) -> int:
        """Index of this rank's node, from 0."""
        return int(lib.lcomm_node(self._handle_now()))

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return int(lib.lcomm_nodes(self._handle_now()))

    @property
    def local_rank(self) -> int:
        """Index of this rank inside its node, from 0."""
        return int(lib.lcomm_local_rank(self._handle_now()))

    @property
    def transports(self) -> str:
        """What messages of this rank travel by, such as "shm,ucx"."""
        text = ctypes.create_string_buffer(256)
        lib.lcomm_transports(self._handle_now(), text, len(text))
        return text.value.decode()

    def name(self, name: str) -> None:
        """Name it for match=comm=GLOB of policies, on all ranks, before the first operation."""
        self._check(lib.lcomm_name_set(self._handle_now(), name.encode()))

    def stats(self) -> Stats:
        """Counters of this rank since the begin, or reset_stats()."""
        raw = _structs.CStats()
        self._check(lib.lcomm_stats_get(self._handle_now(), ctypes.byref(raw)))
        return _stats.of(raw)

    def rack_stats(self) -> RackStats:
        """What of the bytes between nodes stayed in this rank's rack (LCOMM_RACK)."""
        raw = _structs.CRackStats()
        self._check(lib.lcomm_rack_stats_get(self._handle_now(), ctypes.byref(raw)))
        return RackStats(raw.racks, raw.sent_bytes, raw.sent_messages)

    def reset_stats(self) -> None:
        """Count from 0 again."""
        self._check(lib.lcomm_stats_reset(self._handle_now()))
