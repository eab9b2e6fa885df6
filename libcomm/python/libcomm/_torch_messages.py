# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Messages between two ranks of a process group.

libcomm's messages have no tags, so each direction and tag has a communicator of two ranks, made
with the first message: messages of one tag arrive in their order, and those of others whenever they
are received.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, Tuple

import torch

from ._torch_work import Part, Work, Worker, moved, vector
from .communicator import Communicator

_LONGEST_REST_S = 0.02
_Way = Tuple[int, int, int]  # from whom, to whom, tag

# Makes the communicator of two ranks: (store, rank among the two, prefix of keys).
Make = Callable[[Any, int, str], Communicator]


class _Patient:
    """A store whose get() leaves it to other threads while it waits.

    Clients of torch's stores take one call at a time, and another thread's may have to come first.
    """

    def __init__(self, store: Any) -> None:
        self._store = store

    def add(self, key: str, number: int) -> int:
        return int(self._store.add(key, number))

    def set(self, key: str, value: bytes) -> None:
        self._store.set(key, value)
        self._store.add(f"{key}/there", 1)

    def get(self, key: str) -> bytes:
        rest_s = 0.0005
        while self.add(f"{key}/there", 0) == 0:
            time.sleep(rest_s)
            rest_s = min(_LONGEST_REST_S, 2 * rest_s)
        return bytes(self._store.get(key))


class Messages:
    """Those of one rank."""

    def __init__(self, store: Any, rank: int, make: Make) -> None:
        self._store, self._rank, self._make = _Patient(store), rank, make
        self._workers: Dict[_Way, Worker] = {}

    def _worker(self, way: _Way) -> Worker:
        worker = self._workers.get(way)
        if worker is None:
            store, make, rank = self._store, self._make, 0 if way[0] == self._rank else 1
            prefix = f"libcomm/from {way[0]} to {way[1]} tag {way[2]}"
            worker = self._workers[way] = Worker(lambda: make(store, rank, prefix))
        return worker

    def send(self, tensor: torch.Tensor, to: int, tag: int) -> Work:
        flat = tensor.detach().contiguous()
        part = Part(lambda comm: moved(comm, "send", flat, to=1))
        return self._worker((self._rank, to, tag)).submit([tensor], [part])

    def receive(self, tensor: torch.Tensor, sender: int, tag: int) -> Work:
        flat, back = vector(tensor)
        part = Part(lambda comm: moved(comm, "recv", flat, sender=0), back)
        return self._worker((sender, self._rank, tag)).submit([tensor], [part])

    def end(self) -> None:
        for worker in self._workers.values():
            worker.end()

    def close(self) -> None:
        self.end()  # all of them first: ranks may close theirs in another order
        for worker in self._workers.values():
            worker.close()
