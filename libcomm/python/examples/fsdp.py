# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""A perceptron sharded by FSDP (fully_shard) over the backend lcomm.
    torchrun --nproc-per-node 4 fsdp.py --policy net=int8 --nodes 2
    mpirun -np 4 python3 fsdp.py --policy net=int8 --nodes 2
    MASTER_ADDR=node1 srun -N 2 -n 4 python3 fsdp.py --policy net=int8
    torchrun --nproc-per-node 4 fsdp.py --backend gloo       # the same without libcomm
Gradients are reduced and scattered through the policy's codec, parameters are gathered exactly.
"""

import hashlib
import os

import libcomm.torch
import torch
import torch.distributed as dist
from ddp_mnist import images_of, options_of, take_from_launcher, train
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


def sharded(device):
    """Each layer's parameters lie in parts on all ranks, and are gathered when it runs."""
    torch.manual_seed(0)
    model = nn.Sequential(
        *(nn.Flatten(), nn.Linear(784, 512), nn.ReLU()),
        *(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)),
    ).to(device)
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def fingerprint(model):
    """Of all parameters, gathered; collective."""
    whole = [p.full_tensor().detach().cpu().numpy().tobytes() for p in model.parameters()]
    return hashlib.sha256(b"".join(whole)).hexdigest()[:16]


def main():
    parser = options_of(__doc__)
    parser.add_argument("--backend", default="lcomm")
    options = parser.parse_args()
    take_from_launcher()
    cuda = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")
    is_ours = options.backend == "lcomm"
    ours = libcomm.torch.Options(policy=options.policy, nodes=options.nodes) if is_ours else None
    dist.init_process_group(options.backend, pg_options=ours)

    model = sharded(device)
    train(model, *(t.to(device) for t in images_of(options.data, "train", options.images)), options)
    images, labels = (t.to(device) for t in images_of(options.data, "t10k", 10000))
    with torch.no_grad():
        right = (model(images).argmax(1) == labels).float().mean().item()
    words = fingerprint(model)
    said = [None] * dist.get_world_size()
    dist.all_gather_object(said, words)
    if dist.get_rank() == 0:
        print(f"accuracy {right:.4f} on {len(said)} ranks, parameters alike: {len(set(said)) == 1}")
        if is_ours:
            sent = libcomm.torch.communicator().stats()
            print(f"between nodes: {sent.sent_bytes['net']} bytes, exact {sent.exact_bytes['net']}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
