# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""The backend "lcomm" of torch.distributed: a process group in Python.

Its methods have the names and arguments by which torch calls them, from Python and from C++.
"""

from __future__ import annotations

import collections
import functools
import inspect
import os
import weakref
from typing import Any, Deque, List, NamedTuple, Optional, Sequence

import torch
import torch.distributed as dist

from . import _torch_sums as sums
from ._torch_messages import Messages
from ._torch_sums import Place
from ._torch_work import Part, Work, Worker
from .communicator import Communicator
from .errors import ArgumentError, StateError, UnsupportedError

# In older versions C++ holds a work without its part in Python, for which it waits soon: DDP asks
# for a future at once, and has two broadcasts under way. So many are kept from going.
_VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])
_KEPT_WORKS = 8 if _VERSION < (2, 8) else 0

Tensors = Sequence[torch.Tensor]


class Options(NamedTuple):
    """pg_options of init_process_group("lcomm") and new_group(); as of Communicator.from_env.

    What is left out is taken from the environment (LCOMM_POLICY, LCOMM_NODES, LCOMM_TIMEOUT_S,
    LCOMM_TRANSPORT), a time-out that is not there either from the process group.
    """

    policy: Optional[str] = None
    timeout: float = 0.0
    nodes: int = 0
    transport: Optional[str] = None
    progress: str = "default"


def _one(tensors: Any, call: str) -> Any:
    if len(tensors) != 1:
        raise ArgumentError(
            f'{call}: the backend "lcomm" takes one tensor of each process, not {len(tensors)}'
        )
    return tensors[0]


def _of_two(options: Options, store: Any, rank: int, prefix: str) -> Communicator:
    """For messages between two ranks of a group, which of its policy need the codec of pipe=."""
    nodes = min(2, options.nodes or int(os.environ.get("LCOMM_NODES") or 0))
    given = os.environ.get("LCOMM_POLICY", "") if options.policy is None else options.policy
    words = [word for word in given.split() if word.startswith(("pipe=", "min=", "check="))]
    mine = options._replace(policy=" ".join(words), nodes=nodes)._asdict()
    return Communicator.from_store(store, rank, 2, prefix=prefix, **mine)


class _Group(dist.ProcessGroup):  # type: ignore[misc]
    """A process group whose calls go to a communicator's thread."""

    def __init__(self, store: Any, rank: int, size: int, timeout: Any, options: Options) -> None:
        super().__init__(rank, size)
        self._place = Place(rank, size)
        self._name = self._description = ""
        if not options.timeout and not os.environ.get("LCOMM_TIMEOUT_S"):
            options = options._replace(timeout=timeout.total_seconds())
        self._store = store  # torch does not keep it
        # what workers hold must not hold the group: it ends them when nobody has it any more
        make = functools.partial(Communicator.from_store, store, rank, size, **options._asdict())
        self._worker = Worker(make)
        self.communicator = self._worker.open()
        self._messages = Messages(store, rank, functools.partial(_of_two, options))
        self._works: Deque[Work] = collections.deque(maxlen=_KEPT_WORKS)
        weakref.finalize(self, self._messages.end).atexit = False  # their workers do it

    def _submit(self, result: Tensors, parts: Sequence[Part]) -> Work:
        return self._kept(self._worker.submit(list(result), parts))

    def _kept(self, work: Work) -> Work:
        self._works.append(work)
        return work

    # -------------------------------------------------------------------- asked

    def getBackendName(self) -> str:
        return "lcomm"

    # Names by which newer versions find a group again; the base leaves them to its backends.

    def setGroupName(self, name: str) -> None:
        self._name = name

    def getGroupName(self) -> str:
        return self._name

    def setGroupDesc(self, description: str) -> None:
        self._description = description

    def getGroupDesc(self) -> str:
        return self._description

    def shutdown(self) -> None:
        """End the communicator, after all calls. Collective; may be called again."""
        self._messages.close()
        self._worker.close()

    def abort(self) -> None:
        """Give up: what runs, and all later calls, fail on all ranks."""
        self.communicator.abort(f"rank {self._place.rank} aborts the process group")

    # --------------------------------------------------------------------- sums

    def allreduce(self, tensors: Tensors, opts: Any = None) -> Work:
        op = dist.ReduceOp.SUM if opts is None else opts.reduceOp
        return self._submit(tensors, [sums.allreduce(each, op, self._place) for each in tensors])

    allreduce_coalesced = allreduce

    def reduce(self, tensors: Tensors, opts: Any) -> Work:
        tensor = _one(tensors, "reduce")
        part = sums.reduce(tensor, opts.reduceOp, opts.rootRank, self._place)
        return self._submit([tensor], [part])

    def reduce_scatter(self, outs: Tensors, lists: Sequence[Tensors], opts: Any) -> Work:
        out, tensors = _one(outs, "reduce_scatter"), _one(lists, "reduce_scatter")
        return self._submit([out], [sums.reduce_scatter(out, tensors, opts.reduceOp, self._place)])

    def reduce_scatter_single(self, out: torch.Tensor, whole: torch.Tensor, opts: Any) -> Work:
        return self.reduce_scatter_single_coalesced([out], [whole], opts)

    def reduce_scatter_single_coalesced(self, outs: Tensors, wholes: Tensors, opts: Any) -> Work:
        pairs = zip(outs, wholes)
        op, place = opts.reduceOp, self._place
        return self._submit(outs, [sums.reduce_scatter_from(*pair, op, place) for pair in pairs])

    # -------------------------------------------------------------------- moves

    def broadcast(self, tensors: Tensors, opts: Any) -> Work:
        return self._submit(tensors, [sums.broadcast(each, opts.rootRank) for each in tensors])

    def allgather(self, lists: Sequence[Tensors], tensors: Tensors, opts: Any = None) -> Work:
        outs = [out for each in lists for out in each]
        return self._submit(outs, [sums.allgather(*pair) for pair in zip(lists, tensors)])

    allgather_coalesced = allgather

    def all_gather_single(self, whole: torch.Tensor, mine: torch.Tensor, opts: Any = None) -> Work:
        return self.all_gather_single_coalesced([whole], [mine], opts)

    def all_gather_single_coalesced(
        self, wholes: Tensors, tensors: Tensors, opts: Any = None
    ) -> Work:
        pairs = zip(wholes, tensors)
        return self._submit(wholes, [sums.allgather_into(*pair) for pair in pairs])

    def gather(self, lists: Sequence[Tensors], tensors: Tensors, opts: Any) -> Work:
        outs = lists[0] if lists and self._place.rank == opts.rootRank else []
        return self._submit(outs, [sums.gather(outs, _one(tensors, "gather"), self._place)])

    def scatter(self, outs: Tensors, lists: Sequence[Tensors], opts: Any) -> Work:
        out, is_root = _one(outs, "scatter"), self._place.rank == opts.rootRank
        given = lists[0] if lists and is_root else []
        return self._submit([out], [sums.scatter(out, given, opts.rootRank, self._place)])

    def all_to_all_single(
        self,
        out: torch.Tensor,
        mine: torch.Tensor,
        out_lengths: List[int],
        lengths: List[int],
        opts: Any = None,
    ) -> Work:
        if not out_lengths and not lengths:
            return self._submit([out], [sums.alltoall_even(out, mine)])
        size = self._place.size
        outs = out.split(out_lengths or out.shape[0] // size)
        parts = mine.split(lengths or mine.shape[0] // size)
        return self._submit([out], [sums.alltoall(outs, parts)])

    def alltoall(self, outs: Tensors, parts: Tensors, opts: Any = None) -> Work:
        return self._submit(outs, [sums.alltoall(outs, parts)])

    def barrier(self, opts: Any = None) -> Work:
        return self._submit([], [Part(lambda comm: comm.ibarrier())])

    # ----------------------------------------------------------------- messages

    def send(self, tensors: Tensors, rank: int, tag: int) -> Work:
        return self._kept(self._messages.send(_one(tensors, "send"), rank, tag))

    def recv(self, tensors: Tensors, rank: int, tag: int) -> Work:
        return self._kept(self._messages.receive(_one(tensors, "recv"), rank, tag))

    def recv_anysource(self, tensors: Tensors, tag: int) -> Work:
        raise UnsupportedError('recv: the backend "lcomm" needs to know from which rank: give src')

    def _start_coalescing(self, *_device: Any) -> None:
        """Messages of a batch travel together as they are."""

    def _end_coalescing(self, *_works: Any) -> None:
        """Each of them is waited for."""

    # Names that other versions of torch have for the same.
    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    alltoall_base = all_to_all_single


def communicator(group: Any = None) -> Communicator:
    """That of a process group with the backend "lcomm", for stats() and the like.

    group: None is the default one. Not used while a call of the group is under way. Raises
    StateError where the backend is another one.
    """
    there = dist.distributed_c10d._get_default_group() if group is None else group
    if not isinstance(there, _Group):
        raise StateError('the process group is not of the backend "lcomm"')
    return there.communicator


def _make(given: Any, options: Optional[Options] = None) -> _Group:
    """What torch.distributed calls for a new process group."""
    if options is not None and not isinstance(options, Options):
        raise ArgumentError(
            f'pg_options of the backend "lcomm" are libcomm.torch.Options, not {options!r:.60}'
        )
    return _Group(
        given.store, given.group_rank, given.group_size, given.timeout, options or Options()
    )


def register() -> None:
    """From now on torch.distributed.init_process_group("lcomm") makes one."""
    parameters = inspect.signature(dist.Backend.register_backend).parameters
    devices = {"devices": ["cpu", "cuda"]} if "devices" in parameters else {}
    dist.Backend.register_backend("lcomm", _make, extended_api=True, **devices)
