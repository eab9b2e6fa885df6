# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""The hook on gradients in the memory of emulated devices, which a stream has yet to make.

Tensors pose as torch's of CUDA: libcomm takes them for such, torch for those of the host.
"""

import contextlib
import ctypes

import numpy
import pytest
from emulated import Device  # before libcomm is opened
from ddp_models import Known, given, over_group, torch  # skipped without torch

import libcomm
from libcomm import _buffers

STEPS = 4


class Bucket:
    """What the hook asks of a bucket of DDP."""

    def __init__(self, parameters, buffer, is_last):
        self.parameters, self.buffer = (lambda: parameters), (lambda: buffer)
        self.is_last = lambda: is_last


class OnHost:
    def tensor(self, values):
        return torch.from_numpy(values.copy())

    def values(self, tensor):
        return tensor.numpy()


class OnDevice:
    """Tensors in memory of a device, filled by a stream."""

    def __init__(self):
        self._device = Device()
        self._stream = self._device.stream()
        self._addresses = set()
        readers, of_host = _buffers._known, _buffers._of_torch

        def read(tensor):
            buffer = of_host(tensor)
            if not any(first <= buffer.address < end for first, end in self._addresses):
                return buffer
            return buffer._replace(is_on_device=True, stream=self._stream)

        readers[torch.Tensor] = readers[torch.nn.Parameter] = read

    def tensor(self, values):
        address = self._device.memory(values.nbytes)
        self._addresses.add((address, address + values.nbytes))
        self._device.keep_busy(self._stream)
        self._device.copy(address, values.ctypes.data, values.nbytes, self._stream)
        memory = (ctypes.c_float * values.size).from_address(address)
        return torch.frombuffer(memory, dtype=torch.float32)

    def values(self, tensor):
        self._device.finish(self._stream)
        return tensor.numpy()


def steps_on(place, rank, policy):
    """Averages of some steps, by the hook, in two buckets that are other ones after a step."""
    model = Known()
    for parameter in model.parameters():
        parameter.data = place.tensor(parameter.detach().numpy())
    state = libcomm.torch.State(policy, model, nodes=2)
    names, found = list(Known.SIZES), []
    with contextlib.closing(state):
        for step in range(STEPS):
            split = 1 if step == 0 else 3
            futures = []
            for part in (names[split:], names[:split]):
                gradients = [given(rank, step)[name].numpy() for name in part]
                buffer = place.tensor(numpy.concatenate(gradients))
                parameters = [getattr(model, name) for name in part]
                bucket = Bucket(parameters, buffer, part[0] == names[0])
                futures.append(libcomm.torch.compress(state, bucket))
            found += [place.values(each.wait()).tobytes() for each in futures]
    return found


@pytest.mark.parametrize("policy", ["", "net=int8 min=0", "net=topk:0.05+ef min=0 exempt=bias"])
def test_averages_have_the_bits_of_the_host(policy, tmp_path):
    def work(rank):
        wanted = steps_on(OnHost(), rank, policy)
        return wanted, steps_on(OnDevice(), rank, policy)

    said = over_group(4, tmp_path, work)
    for wanted, found in said:
        assert found == wanted == said[0][0]
