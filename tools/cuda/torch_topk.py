# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Top-k of 1 % with error feedback as PyTorch users write it: what cuda_bench
compares its kernel with.

    torch_topk.py COUNT SAMPLES DEVICE

Prints the least, the median and the greatest seconds of a step; or, with exit
status 1, one line that says why there is nothing to measure.
"""

import signal
import sys
import time

LIMIT_S = 150  # importing PyTorch from a cold disk takes most of it


def step(torch, gradient, residual, k):
    """acc = gradient + residual; its k largest magnitudes leave as positions and
    bf16 values; the residual keeps the rest and the error of the values."""
    torch.add(gradient, residual, out=residual)
    position = torch.topk(residual.abs(), k, sorted=False).indices
    kept = residual[position]
    value = kept.to(torch.bfloat16)
    residual.scatter_(0, position, kept - value.float())
    return position, value


def measure(torch, count, samples, device):
    torch.manual_seed(1)
    gradient = torch.randn(count, device=device) * 1e-3
    residual = torch.zeros_like(gradient)
    k = max(1, round(0.01 * count))
    seconds = []
    for i in range(samples + 1):
        torch.cuda.synchronize(device)
        begin = time.perf_counter()
        step(torch, gradient, residual, k)
        torch.cuda.synchronize(device)
        if i > 0:  # the first one warms up
            seconds.append(time.perf_counter() - begin)
    return sorted(seconds)


def first_line(error):
    return (str(error).splitlines() or [type(error).__name__])[0]


def main():
    count, samples, number = (int(word) for word in sys.argv[1:4])
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(LIMIT_S)
    try:
        import torch
    except ModuleNotFoundError:
        print("python3 has no torch")
        sys.exit(1)
    except Exception as error:  # a library that does not fit the others
        print("torch cannot be imported: " + first_line(error))
        sys.exit(1)
    if not torch.cuda.is_available():
        print("torch finds no CUDA device")
        sys.exit(1)
    try:
        seconds = measure(torch, count, samples, torch.device("cuda", number))
    except RuntimeError as error:
        print(first_line(error))
        sys.exit(1)
    print(seconds[0], seconds[len(seconds) // 2], seconds[-1])


if __name__ == "__main__":
    main()
