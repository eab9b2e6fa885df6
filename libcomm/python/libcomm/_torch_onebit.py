# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""1-bit Adam: the optimiser that goes with adam= of a policy."""

from __future__ import annotations

from typing import Any, Dict, Tuple, Union

import torch

from ._torch_state import State
from .communicator import Communicator
from .errors import ArgumentError, StateError

Group = Dict[str, Any]


class OneBitAdam(torch.optim.Optimizer):  # type: ignore[misc]
    """Adam whose momentum travels in the place of gradients after a warm-up (Tang et al., 2021).

        state = libcomm.torch.State(policy="net=sign adam=onebit warmup=1000", model=model)
        model.register_comm_hook(state, libcomm.torch.compress)
        optimizer = libcomm.torch.OneBitAdam(model.parameters(), state, lr=1e-3)

    params, lr, betas, eps   as of torch.optim.Adam; betas[0] must be beta1= of the policy, which
                             is 0.9 unless it is given
    source                   whose sums .grad holds: the State of the hook, or the Communicator of a
                             DistributedOptimizer around this one
    weight_decay             as of torch.optim.AdamW

    While gradients arrive this is AdamW. Where momentum does (Communicator.tensors_momentum), it is
    the first moment, the second one stays as it is, and no weight moves by more than lr: what a
    codec leaves of a block is also in weights that have hardly had a gradient.
    Do not change .grad before step(), as by clipping or a GradScaler's unscale_(): clip= of the
    policy clips gradients, State(scaler=...) is for scales.
    Raises ArgumentError for a policy without adam= and values out of range.
    """

    def __init__(
        self,
        params: Any,
        source: Union[State, Communicator],
        lr: float = 1e-3,
        betas: Tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        self._libcomm_source = source.comm if isinstance(source, State) else source
        policy = self._libcomm_source.policy
        if not any(word.startswith("adam=") for word in policy.split()):
            raise ArgumentError(
                "libcomm.torch.OneBitAdam needs a policy with adam=, such as 'net=sign "
                f"adam=onebit warmup=1000'; that of the communicator is '{policy}'"
            )
        if lr < 0 or eps < 0 or weight_decay < 0 or not all(0 <= beta < 1 for beta in betas):
            raise ArgumentError(
                f"libcomm.torch.OneBitAdam: lr={lr}, betas={betas}, eps={eps} and weight_decay="
                f"{weight_decay} must not be negative, and betas below 1"
            )
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """One step with what .grad holds, gradients or momentum."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        is_momentum = self._libcomm_source.tensors_momentum
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._step_one(parameter, group, is_momentum)
        return loss

    def _step_one(self, parameter: torch.Tensor, group: Group, is_momentum: bool) -> None:
        known = self._known(parameter, is_momentum)
        beta1, beta2 = group["betas"]
        mean, square, arrived = known["exp_avg"], known["exp_avg_sq"], parameter.grad
        known["step"] += 1
        if is_momentum:
            mean.copy_(arrived)
        else:
            known["variance_step"] += 1
            mean.mul_(beta1).add_(arrived, alpha=1 - beta1)
            square.mul_(beta2).addcmul_(arrived, arrived, value=1 - beta2)
        deviation = (square / (1 - beta2 ** known["variance_step"])).sqrt_().add_(group["eps"])
        move = mean / (1 - beta1 ** known["step"]) / deviation
        if is_momentum:
            move.clamp_(-1, 1)
        parameter.mul_(1 - group["lr"] * group["weight_decay"]).sub_(move, alpha=group["lr"])

    def _known(self, parameter: torch.Tensor, is_momentum: bool) -> Dict[str, Any]:
        known: Dict[str, Any] = self.state[parameter]
        if not known:
            if is_momentum:
                raise StateError(
                    "libcomm.torch.OneBitAdam: momentum arrived before any gradient, so there is "
                    "no variance; make a step() in the warm-up, or load a state_dict()"
                )
            known["step"] = known["variance_step"] = 0
            known["exp_avg"] = torch.zeros_like(parameter)
            known["exp_avg_sq"] = torch.zeros_like(parameter)
        return known
