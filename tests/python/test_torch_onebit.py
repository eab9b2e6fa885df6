# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""1-bit Adam with the hook: gradients of DDP are momentum after the warm-up."""

import contextlib

import libcomm
import numpy
from ddp_models import BATCH, DDP, INPUTS, Net, hooked, over_group, torch  # skipped without torch

WARMUP, STEPS = 4, 12
POLICY = f"net=sign min=0 adam=onebit warmup={WARMUP}"


def loss_of(model, rank, step):
    dice = torch.Generator().manual_seed(1000 * rank + step % 3)
    x = torch.randn(BATCH, INPUTS, generator=dice)
    y = torch.randint(0, 10, (BATCH,), generator=dice)
    return torch.nn.functional.cross_entropy(model(x), y)


def weights(model):
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()]).numpy().copy()


def trained(model, optimizer, rank, steps, after_step=None):
    losses = []
    for step in steps:
        optimizer.zero_grad()
        loss = loss_of(model, rank, step)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if after_step:
            after_step(step)
    return losses


def adamw(model):
    return torch.optim.AdamW(model.parameters(), lr=0.001, weight_decay=0.01)


def onebit(model, state):
    return libcomm.torch.OneBitAdam(model.parameters(), state, lr=0.001, weight_decay=0.01)


def test_the_hook_trains_as_adamw_until_momentum_arrives(tmp_path):
    def work(rank):
        model, told, kept = DDP(Net(), bucket_cap_mb=0.1), [], {}
        reference = DDP(Net())
        with contextlib.closing(hooked(model, POLICY)) as state:
            optimizer = onebit(model, state)

            def note(step):
                told.append(state.comm.tensors_momentum)
                if step == WARMUP - 1:
                    kept["warm"] = weights(model)
                    for parameter, known in optimizer.state.items():
                        kept[parameter] = known["exp_avg_sq"].clone()
                if told[-1]:
                    for parameter, known in optimizer.state.items():
                        assert (known["exp_avg"] == parameter.grad).all()
                        assert (known["exp_avg_sq"] == kept[parameter]).all()

            losses = trained(model, optimizer, rank, range(STEPS), note)
        trained(reference, adamw(reference), rank, range(WARMUP))
        return told, losses, kept["warm"], weights(reference), weights(model)

    said = over_group(2, tmp_path, work)
    for told, losses, warm, reference, ends in said:
        assert told == [False] * WARMUP + [True] * (STEPS - WARMUP)
        assert numpy.abs(warm - reference).max() < 1e-6
        assert (ends == said[0][4]).all() and (ends != warm).any()
        assert sum(losses[-3:]) < sum(losses[WARMUP - 1 : WARMUP + 2])


def test_less_is_sent_once_momentum_is(tmp_path):
    def work(rank):
        model, sent = DDP(Net(), bucket_cap_mb=0.1), []
        with contextlib.closing(hooked(model, POLICY)) as state:
            optimizer = onebit(model, state)
            trained(
                model,
                optimizer,
                rank,
                range(STEPS),
                lambda _step: sent.append(state.comm.stats().sent_bytes["net"]),
            )
        return sent

    for sent in over_group(2, tmp_path, work):
        exact, low = sent[1] - sent[0], sent[-1] - sent[-2]
        assert 0 < low < exact / 16


def test_a_run_goes_on_from_what_it_saved(tmp_path):
    def saved(rank, steps):
        model = DDP(Net())
        with contextlib.closing(hooked(model, POLICY)) as state:
            optimizer = onebit(model, state)
            trained(model, optimizer, rank, range(steps))
            return model.module.state_dict(), optimizer.state_dict(), state.state_dict()

    def work(rank):
        net, adam, kept = saved(rank, WARMUP + 2)
        model = DDP(Net())
        model.module.load_state_dict(net)
        with contextlib.closing(hooked(model, POLICY)) as state:
            optimizer = onebit(model, state)
            optimizer.load_state_dict(adam)
            state.load_state_dict(kept)
            trained(model, optimizer, rank, range(WARMUP + 2, STEPS))
            goes_on = weights(model)
        through, _, _ = saved(rank, STEPS)
        return goes_on, torch.cat([v.reshape(-1) for v in through.values()]).numpy()

    for goes_on, through in over_group(2, tmp_path, work):
        assert (goes_on == through).all()
