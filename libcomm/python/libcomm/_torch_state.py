# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""What the hook of one DDP model needs, and the thread that ends its steps."""

from __future__ import annotations

import atexit
import os
import queue
import threading
import weakref
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Tuple, Union

import torch
import torch.distributed

from ._feedback import Folder
from ._torch_work import _result_of, flat, refuse_stale, shape_of
from .communicator import Communicator
from .errors import LOST, Error, StateError, UnsupportedError
from .tensors import Tensor

Future = torch.futures.Future
_END = None  # of the queue


class _Bucket(NamedTuple):
    """A bucket of DDP, whose sum was asked for."""

    buffer: torch.Tensor
    future: Any
    is_last: bool


def _gather_over(group: Any) -> Any:
    """The all-gather of a process group, of whichever backend."""

    def gather(mine: bytes) -> List[bytes]:
        said: List[Any] = [None] * torch.distributed.get_world_size(group)
        torch.distributed.all_gather_object(said, mine, group=group)
        return said

    return gather


def _over_group(group: Any, policy: Optional[str], options: Dict[str, Any]) -> Communicator:
    if not torch.distributed.is_initialized():
        raise StateError(
            "libcomm.torch.State: torch.distributed has no process group yet; call "
            "torch.distributed.init_process_group() first"
        )
    rank = torch.distributed.get_rank(group)
    size = torch.distributed.get_world_size(group)
    return Communicator.from_allgather(rank, size, _gather_over(group), policy, **options)


def _trained(model: torch.nn.Module) -> List[Tuple[str, torch.Tensor]]:
    """Names and parameters, in the order in which backward makes gradients."""
    ignored = set(getattr(model, "parameters_to_ignore", ()))
    inner = model.module if isinstance(model, torch.nn.parallel.DistributedDataParallel) else model
    named = [(n, p) for n, p in inner.named_parameters() if p.requires_grad and n not in ignored]
    return list(reversed(named))


def _takes_a_thread(model: Optional[torch.nn.Module]) -> bool:
    """Sums on the host begin and move during backward only if a thread of the library moves them.

    Of gradients on a device the library starts its own thread where it needs one.
    """
    if "LCOMM_PROGRESS" in os.environ:
        return False
    if model is None:
        return not torch.cuda.is_available()
    return not any(parameter.is_cuda for parameter in model.parameters())


class State:
    """What the hook of one DDP model needs: a communicator, and a tensor for each parameter.

    policy   what is compressed; None: LCOMM_POLICY, else exact
    model    the DDP model, or the module in it: its names are those of the tensors. None:
             parameters are named parameter.0, parameter.1, ... in the order of the first step
    group    the process group of the model; None: the default one
    scaler   a GradScaler whose steps are skipped where a gradient is NaN or Inf: such a step is
             undone, as if it had never been, and what error feedback keeps is in units without
             the scale. Adds nonfinite=discard to the policy
    comm     the communicator of an elastic job, whose ranks are those of the model, in the place of
             one of its own (libcomm.torch.elastic makes such a State)
    options  of Communicator.from_env, such as timeout=30.0 or nodes=2. progress is "thread" for
             gradients on the host unless it, or LCOMM_PROGRESS, says otherwise

    Collective: all ranks of the group make it, after the model is on its device. Ends by close(),
    or with the process. Only the hook uses the communicator during a backward pass; between two of
    them it is the program's (state.comm.stats(), state.comm.set_policy(...)).
    Raises as Communicator.from_allgather, StateError without a process group,
    UnsupportedError for a policy with stale=.
    """

    def __init__(
        self,
        policy: Optional[str] = None,
        model: Optional[torch.nn.Module] = None,
        group: Any = None,
        scaler: Any = None,
        comm: Optional[Communicator] = None,
        **options: Any,
    ) -> None:
        if _takes_a_thread(model):
            options.setdefault("progress", "thread")
        self._is_lent = comm is not None
        self.comm = _over_group(group, policy, options) if comm is None else comm
        try:
            refuse_stale(self.comm)
        except UnsupportedError:
            if not self._is_lent:
                self.comm.close()
            raise
        if scaler is not None and "nonfinite=discard" not in self.comm.policy:
            self.comm.set_policy(self.comm.policy + " nonfinite=discard")
        self._scaler, self._scale = scaler, 1.0
        self._tensors: Dict[int, Tensor] = {}
        self._parameters: List[torch.Tensor] = []  # of the tensors: their numbers stay theirs
        self._first_step: List[Tuple[Any, torch.Tensor]] = []
        self._restore: Optional[Callable[[], None]] = None  # once there are tensors
        self._is_in_step = False
        self._failure: Optional[BaseException] = None
        if model is not None:
            self._add(_trained(model))
        self._queue: "queue.SimpleQueue[Optional[_Bucket]]" = queue.SimpleQueue()
        self._worker = threading.Thread(
            target=_work, args=(weakref.proxy(self), self._queue), daemon=True, name="libcomm"
        )
        self._worker.start()
        weakref.finalize(self, self._queue.put, _END)
        atexit.register(_at_exit, weakref.ref(self))

    # ---------------------------------------------------------------- tensors

    def _add(self, named: Iterable[Tuple[str, torch.Tensor]]) -> None:
        for name, parameter in named:
            self._tensors[id(parameter)] = self.comm.add_tensor(
                name, flat(parameter), op="avg", shape=shape_of(parameter)
            )
            self._parameters.append(parameter)
        if self._restore is not None:
            restore, self._restore = self._restore, None
            restore()

    def _begin_step(self) -> None:
        """Between two steps: residuals are in units without the scale of the loss."""
        self._is_in_step = True
        scale = 1.0 if self._scaler is None else float(self._scaler.get_scale())
        if scale != self._scale:
            for tensor in self._tensors.values():
                tensor.scale(1.0 / scale, scale)
            self._scale = scale

    def _report(self, parameter: torch.Tensor, gradient: torch.Tensor) -> None:
        tensor = self._tensors.get(id(parameter))
        if tensor is None:
            raise StateError(
                "libcomm.torch: a parameter of this bucket is not one of the model that State was "
                "made for; a State belongs to one model"
            )
        tensor.ready(gradient)

    # ------------------------------------------------------------------- hook

    def _take(self, bucket: Any) -> Any:
        """Begin the sum of a bucket: its future is completed by the worker."""
        if not self._worker.is_alive():
            raise StateError("libcomm.torch: the State of this model was closed")
        future: Any = Future(devices=_devices_of(bucket.buffer()))
        try:
            if not self._is_in_step:
                self._begin_step()
            self._take_gradients(bucket)
        except Exception as trouble:
            self._fail(trouble)
        self._queue.put(_Bucket(bucket.buffer(), future, bucket.is_last()))
        return future.then(_result_of)

    def _take_gradients(self, bucket: Any) -> None:
        buffer, begin = bucket.buffer(), 0
        slices: List[Tuple[Any, torch.Tensor]] = []
        for parameter in bucket.parameters():
            slices.append((parameter, buffer[begin : begin + parameter.numel()]))
            begin += parameter.numel()
        if self._parameters:
            for parameter, gradient in slices:
                self._report(parameter, gradient)
            return
        # without a model parameters are known only at the end of the first step
        self._first_step += slices
        if bucket.is_last():
            first, self._first_step = self._first_step, []
            self._add((f"parameter.{i}", p) for i, (p, _) in enumerate(first))
            for parameter, gradient in first:
                self._report(parameter, gradient)

    def _fail(self, trouble: BaseException) -> None:
        """This rank cannot go on with the step, so no rank can."""
        if self._failure is None:
            self._failure = trouble
            if isinstance(trouble, LOST):
                return  # all find it, and may go on without the rank that was lost
            try:
                self.comm.abort(f"rank {self.comm.rank}: {trouble}")
            except Error:
                pass  # it has failed before, and all know

    def _end_step(self) -> Optional[BaseException]:
        """Wait for all sums of the step; what went wrong, if something did."""
        if self._failure is None:
            try:
                self.comm.wait_tensors()
            except Exception as trouble:
                self._failure = trouble
        self._is_in_step = False
        return self._failure

    def _end_lost_step(self, is_finished: bool) -> None:
        """The communicator goes on with other ranks. Averages that DDP has not taken are there."""
        self._failure, self._is_in_step = None, False
        for parameter in self._parameters if is_finished else ():
            parameter.grad = torch.empty_like(parameter)
            flat(parameter.grad).copy_(self._tensors[id(parameter)].memory)

    # ------------------------------------------------------------- checkpoint

    def state_dict(self) -> Dict[str, bytes]:
        """What error feedback and momentum remember on this rank, for a checkpoint of its own."""
        return {"libcomm": self.comm.state_dict()}

    def load_state_dict(self, state: Union[Dict[str, bytes], Iterable[Dict[str, bytes]]]) -> None:
        """Restore it, on all ranks, between two steps, or before the first.

        state: this rank's, where ranks and nodes are as many as they were; else a list of those
        of all ranks that saved. Without a model it is restored in the first step.
        """
        states = [state] if isinstance(state, dict) else list(state)
        blocks = [each["libcomm"] for each in states]
        self._restore_by(lambda: self.comm.load_state_dict(blocks))

    def save(self, folder: Folder) -> None:
        """Save it into a file of each rank in `folder`, a new one that all ranks share."""
        self.comm.save_state(folder)

    def load(self, folder: Folder) -> None:
        """Restore what save() wrote on all ranks, on however many there are now, as above."""
        self._restore_by(lambda: self.comm.load_state(folder))

    def _restore_by(self, restore: Callable[[], None]) -> None:
        if self._parameters:
            restore()
        else:
            self._restore = restore

    def discard(self) -> None:
        """Undo the last step, on all ranks: for optimiser steps that are skipped.

        Needs undo=on or nonfinite=discard in the policy; with the latter, or a scaler, steps with
        NaN or Inf are undone without it.
        """
        self.comm.discard_step()

    # -------------------------------------------------------------------- end

    def close(self) -> None:
        """End the worker and the communicator. Collective; may be called again."""
        if self._worker.is_alive():
            self._queue.put(_END)
            self._worker.join()
        if not self._is_lent:
            self.comm.close()


def _devices_of(buffer: torch.Tensor) -> List[Any]:
    return [buffer.device] if buffer.is_cuda else []


def _work(state: Any, buckets: "queue.SimpleQueue[Optional[_Bucket]]") -> None:
    """The worker: ends steps, and completes the futures of their buckets."""
    step: List[_Bucket] = []
    while True:
        bucket = buckets.get()
        if bucket is _END:
            return
        step.append(bucket)
        if not bucket.is_last:
            continue
        failure = state._end_step()
        for each in step:
            each.future.set_result(each.buffer if failure is None else failure)
        step = []
        del bucket, each


def _at_exit(reference: Any) -> None:
    """Before communicators end: nobody else is inside this one then."""
    state = reference()
    if state is not None and state._worker.is_alive():
        if state._is_in_step:
            state._fail(RuntimeError("the process ends during a step"))
        state._queue.put(_END)
        state._worker.join()
