# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Calls of a process group, made in their order by one thread, and what torch waits for."""

from __future__ import annotations

import atexit
import collections
import contextlib
import queue
import threading
import weakref
from typing import Any, Callable, Deque, List, NamedTuple, Optional, Sequence, Set, Tuple

import torch
import torch.distributed

from . import _ending
from .communicator import Communicator
from .errors import Error, UnsupportedError
from .request import Request

_Work = torch.distributed.distributed_c10d.Work


def _result_of(future: Any) -> Any:
    """A failure becomes that of the future that torch waits for, with its sentence."""
    result = future.value()
    if isinstance(result, BaseException):
        raise RuntimeError(f"{type(result).__name__}: {result}")
    return result


def refuse_stale(comm: Communicator) -> None:
    """Optimisers here take the averages of the step that they make, so these have to be there."""
    if any(word.startswith("stale=") for word in comm.policy.split()):
        raise UnsupportedError(
            f"policy '{comm.policy}': with stale= averages come steps later, and optimisers of "
            "torch would step by what is not there yet; use quorum=, or tensors of a Communicator "
            "with next_result()"
        )


class Work(_Work):  # type: ignore[misc,valid-type]
    """A call of a process group. wait() raises libcomm's own exception; a future has its text."""

    def __init__(self, result: List[torch.Tensor]) -> None:
        super().__init__()
        self._tensors = result
        devices = {tensor.device for tensor in result if tensor.is_cuda}
        self._done: Any = torch.futures.Future(devices=list(devices))

    def _end(self, trouble: Optional[BaseException] = None) -> None:
        self._done.set_result(self._tensors if trouble is None else trouble)

    def wait(self, timeout: Any = None) -> bool:
        """Return when it is over: on a device, when the current stream waits for it."""
        trouble = self._done.wait()
        if isinstance(trouble, BaseException):
            raise trouble
        return True

    def synchronize(self) -> None:
        self.wait()

    def get_future(self) -> Any:
        return self._done.then(_result_of)

    def is_completed(self) -> bool:
        return bool(self._done.done())

    def exception(self) -> Optional[BaseException]:
        """What went wrong; None: nothing, or it is not over."""
        value = self._done.value() if self._done.done() else None
        return value if isinstance(value, BaseException) else None

    def is_success(self) -> bool:
        return self.is_completed() and self.exception() is None

    def result(self) -> List[torch.Tensor]:
        return self._tensors


def flat(tensor: torch.Tensor) -> torch.Tensor:
    """Its memory as a vector, whatever the order of its dimensions."""
    return tensor.detach().as_strided((tensor.numel(),), (1,), tensor.storage_offset())


def shape_of(tensor: torch.Tensor) -> Optional[Tuple[int, int]]:
    """Rows and columns of its memory as a matrix: its outermost dimension, and all others."""
    if tensor.dim() < 2 or tensor.numel() == 0:
        return None
    rows = int(tensor.shape[max(range(tensor.dim()), key=tensor.stride)])
    return rows, tensor.numel() // rows


def vector(tensor: torch.Tensor) -> Tuple[torch.Tensor, Tuple[Callable[[], Any], ...]]:
    """Its elements one after the other, and what brings results back where they were copied."""
    here = tensor.detach()
    if here.is_contiguous():
        return here, ()
    flat = here.contiguous()
    return flat, (lambda: here.copy_(flat),)


def moved(comm: Communicator, name: str, *arguments: Any, **options: Any) -> Optional[Request]:
    """Begin a call. On a device it is in order with the stream, and nothing is to be waited for."""
    if arguments[0].is_cuda:
        getattr(comm, name)(*arguments, **options)
        return None
    request: Request = getattr(comm, "i" + name)(*arguments, **options)
    return request


class Part(NamedTuple):
    """One call of libcomm. begin: returns what is to be waited for, if it is not over."""

    begin: Callable[[Communicator], Optional[Request]]
    finishes: Tuple[Callable[[], Any], ...] = ()


class _Job(NamedTuple):
    work: Work
    parts: Sequence[Part]
    stream: Any  # of torch, in whose order it is; None: on the host


class _Running(NamedTuple):
    job: _Job
    requests: List[Optional[Request]]


_END = None  # of the queue
_Jobs = Any  # a queue.SimpleQueue[Optional[_Job]]


class _Once:
    """A communicator, made when it is first needed. A failure to make it stays."""

    def __init__(self, make: Callable[[], Communicator]) -> None:
        self._make = make
        self._comm: Optional[Communicator] = None
        self._trouble: Optional[Exception] = None
        self._turn = threading.Lock()  # of an end by the thread, and one by the process

    def __call__(self) -> Communicator:
        if self._trouble is not None:
            raise self._trouble
        if self._comm is None:
            try:
                self._comm = self._make()
            except Exception as trouble:
                self._trouble = trouble
                raise
        return self._comm

    def leave(self, trouble: BaseException) -> None:
        """The process ends by an exception: what was asked for fails, on all ranks."""
        reason = f"{type(trouble).__name__}: {trouble}"[:400]
        with self._turn:
            try:
                if self._comm is not None:
                    self._comm.abort(f"rank {self._comm.rank} ends with {reason}")
            except Error:
                pass  # it has failed before, and all know

    def close(self) -> None:
        with self._turn:
            comm, self._comm = self._comm, None
        try:
            if comm is not None:
                comm.close()
        except Error:
            pass  # every call said so


class Worker:
    """The thread that makes the calls of one communicator, in the order in which they came.

    make: gives the communicator, when the first call comes. end() and close() end both.
    """

    def __init__(self, make: Callable[[], Communicator]) -> None:
        self._queue: _Jobs = queue.SimpleQueue()
        self._once = _Once(make)
        self._thread = threading.Thread(
            target=_work, args=(self._once, self._queue), daemon=True, name="libcomm"
        )
        _threads.add(self._thread)
        self._thread.start()
        weakref.finalize(self, self._queue.put, _END).atexit = False  # _at_exit does it
        _workers.add(self)

    def open(self) -> Communicator:
        """The communicator, made now if it was not. Before the first call."""
        return self._once()

    def submit(self, result: List[torch.Tensor], parts: Sequence[Part]) -> Work:
        """Ask for a call. result: the tensors that hold it when it is over."""
        on_device = next((tensor for tensor in result if tensor.is_cuda), None)
        stream = None if on_device is None else torch.cuda.current_stream(on_device.device)
        work = Work(result)
        self._queue.put(_Job(work, parts, stream))
        return work

    def end(self) -> None:
        """No more calls; the communicator ends after the last one. Does not wait for that."""
        self._queue.put(_END)

    def close(self) -> None:
        """End it, and return when that is done. May be called again."""
        self.end()
        self._thread.join()


_threads: Set[threading.Thread] = set()
_workers: "weakref.WeakSet[Worker]" = weakref.WeakSet()

# ------------------------------------------------------------------ the thread


def _in_order_of(stream: Any) -> Any:
    return contextlib.nullcontext() if stream is None else torch.cuda.stream(stream)


def _begin(job: _Job, comm: Communicator) -> _Running:
    with _in_order_of(job.stream):
        return _Running(job, [part.begin(comm) for part in job.parts])


def _finish(running: _Running) -> None:
    """Wait for a job that was begun, and tell who waits for it."""
    job, requests = running
    try:
        with _in_order_of(job.stream):
            for part, request in zip(job.parts, requests):
                if request is not None:
                    request.wait()
                for finish in part.finishes:
                    finish()
            job.work._end()  # who waits for it does so for this stream
    except Exception as trouble:
        job.work._end(trouble)


def _next(jobs: _Jobs, running: Deque[_Running]) -> Optional[_Job]:
    """The next job. While there is none, those that were begun are finished."""
    job: Optional[_Job]
    while running:
        try:
            job = jobs.get_nowait()
            return job
        except queue.Empty:
            _finish(running.popleft())
    job = jobs.get()
    return job


def _work(once: _Once, jobs: _Jobs) -> None:
    """Begin each job as soon as it may be: several may be under way."""
    running: Deque[_Running] = collections.deque()
    while True:
        job = _next(jobs, running)
        if job is _END:
            break
        try:
            running.append(_begin(job, once()))
        except Exception as trouble:
            job.work._end(trouble)
        del job  # nothing of it is held while there is none
    while running:
        _finish(running.popleft())
    once.close()
    _threads.discard(threading.current_thread())


def _at_exit() -> None:
    """Before communicators end: nobody else is inside them then."""
    trouble = _ending._last_exception()
    for worker in list(_workers):
        if trouble is not None:
            worker._once.leave(trouble)
        worker.end()
    for thread in list(_threads):
        thread.join()


atexit.register(_at_exit)
