# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""libcomm in PyTorch's DistributedDataParallel:

    model = DistributedDataParallel(model)
    state = libcomm.torch.State(policy="net=int8", model=model)
    model.register_comm_hook(state, libcomm.torch.compress)

Gradients are then averaged by libcomm: exactly inside a node, through the policy's codec between
nodes. Each parameter is a tensor of libcomm, known by its name in the module: exempt=*.bias,
net[embed*]=int8 and the like fit it, and what error feedback remembers belongs to the parameter,
in whichever of DDP's buckets it is.

To import this also registers the backend "lcomm": init_process_group("lcomm"), for DDP without the
hook, FSDP and whatever else calls torch.distributed. Sums, and reduce-scatters, go through the
policy's codec, without error feedback; all else is exact. DistributedOptimizer is for training
loops without either. OneBitAdam is the optimiser of policies with adam=. libcomm.torch.elastic
trains on ranks that are lost, leave and join.
"""

# Annotations are no strings here: DDP looks at those of hooks.
import sys

import torch
import torch.distributed

from . import _torch_elastic as elastic
from ._torch_backend import Options, communicator, register
from ._torch_onebit import OneBitAdam
from ._torch_optimizer import (
    DistributedOptimizer,
    broadcast_optimizer_state,
    broadcast_parameters,
)
from ._torch_state import State

__all__ = [
    "DistributedOptimizer",
    "OneBitAdam",
    "Options",
    "State",
    "broadcast_optimizer_state",
    "broadcast_parameters",
    "communicator",
    "compress",
    "elastic",
]

# `import libcomm.torch.elastic` finds it, too, as that of os.path does.
sys.modules[__name__ + ".elastic"] = elastic


def compress(
    state: State, bucket: torch.distributed.GradBucket
) -> torch.futures.Future[torch.Tensor]:
    """The hook: `model.register_comm_hook(state, libcomm.torch.compress)`.

    Averages are in place of the gradients, alike bit for bit on all ranks. A failure is raised by
    backward() on every rank, as a RuntimeError with libcomm's sentence.
    """
    return state._take(bucket)


register()
