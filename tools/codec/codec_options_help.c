/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <stdio.h>

#include "tools/codec/codec_options.h"

static const char usage[] =
    "usage: codec_bench [OPTIONS] [FILE|FOLDER ...]\n"
    "Accuracy and speed of gradient codecs on given values.\n"
    "\n"
    "Codecs\n"
    "  -c, --codec CODEC      as after net= in a policy, for example int8, bf16+zstd,\n"
    "                         fp8e4m3:block=32,stochastic+ef or topk:0.01,values=int8+ef;\n"
    "                         may be given more than once (default: a list of all kinds)\n"
    "  -p, --policy POLICY    the codec that a whole policy has on the network; with adam=onebit\n"
    "                         --steps sends the momentum of the gradients, as after the warm-up\n"
    "\n"
    "Values\n"
    "  FILE, FOLDER           .f32 .f16 .bf16 .npy .npz .safetensors, and .lcg, which the\n"
    "                         library captures; a folder stands for all of them in it, and\n"
    "                         bad files in it are named and left out\n"
    "      --layers FILE      names and sizes of the tensors in raw and .npy files\n"
    "      --synthetic NAME[:COUNT]  COUNT values of a distribution (default layers:16M, when\n"
    "                         there are no files):\n";

static const char measures[] =
    "      --seed N           of the synthetic values\n"
    "\n"
    "What is measured\n"
    "      --per-tensor       the accuracy of each tensor, too\n"
    "      --steps N          the error of the sum of N steps: of one gradient again and again,\n"
    "                         or of the steps of a capture in turn\n"
    "      --peers P          the sum of P encoded vectors in one pass, against P passes\n"
    "      --baselines        other ways in the same run: quickselect against top-k, zstd level 1\n"
    "                         against +zstd on the exponents of none, fp16 and bf16\n"
    "      --low-rank ROWSxCOLUMNS:RANK  instead of codecs the time of a step of low rank on a\n"
    "                         matrix, without the sums of P and Q, in passes over it (m += g)\n"
    "      --low-rank RANK    instead of codecs, with --steps: the error over steps of low rank, "
    "of\n"
    "                         tensors whose layer list has \"shape\"; all others are exact\n"
    "      --predict BANDWIDTH NODES  whether a codec pays between so many nodes with a link of\n"
    "                         this bandwidth each (200mbit, 25Gbit, 5GB; powers of 1000)\n"
    "      --baseline fp32|bf16  what a codec has to beat: gradients as they are, in float32 or "
    "in\n"
    "                         bf16 (default bf16)\n"
    "      --no-quality       speed only\n"
    "      --no-speed         accuracy only\n"
    "\n"
    "How speed is measured\n"
    "      --isa NAME[,NAME]|all  kernel tables (default: the fastest one that runs here)\n"
    "      --size SIZE[,SIZE] bytes of float32 in a buffer (default 256K,256M; K, M, G: 1024)\n"
    "      --pages huge|usual  of buffers: huge ones measure kernels, usual ones what programs "
    "wait\n"
    "                         for whose memory is of malloc (default huge)\n"
    "      --owners N         top-k as in a sum whose vector N ranks own in parts: +ef encodes for "
    "all\n"
    "                         of them, without it each part is encoded as by its owner (default "
    "1)\n"
    "      --threads N        each on its own processor, with its own buffers (default 1)\n"
    "  -n, --repetitions N    (default 7)\n"
    "\n"
    "Results\n"
    "      --export FOLDER    measure nothing: write each tensor into FOLDER as a float32 .npy "
    "file\n"
    "      --json FILE        everything\n"
    "      --csv FILE         everything, one figure a line\n"
    "      --plot FILE        .png or .svg: rate against distortion, throughput against ratio\n"
    "      --version\n"
    "  -h, --help\n"
    "\n";

static const char columns[] =
    "Verdict. What a codec sends (ratio, NMSE: see below), how fast one core works, and on which\n"
    "links it is faster than the baseline: whose bandwidth per node is below the one named, with\n"
    "encoding, wire and decoding in a pipeline between 4 nodes or those of --predict.\n"
    "Accuracy. The tensors of a source travel in buckets of 25 MiB, as in the library; a larger\n"
    "tensor is a bucket alone, or several when it has more than 1 GiB. Residuals are empty.\n"
    "  ratio      float32 bytes / bytes sent\n"
    "  bits       bits sent for a value\n"
    "  limit      bits a value would take if an ideal coder that knows how often each code occurs\n"
    "             in the bucket coded them one by one: order-0 entropy of the codes, per plane of\n"
    "             bytes, and of the scales. For top-k the positions count n*H(k/n) bits, H the\n"
    "             binary entropy, and the values as codes. Coders that adapt may get below it\n"
    "  NMSE       mean squared error / mean square; cosine: of the angle between both vectors\n"
    "  max error  the largest, over the largest magnitude\n"
    "  to zero    values other than 0 that arrive as 0\n"
    "  NaN, Inf   values that are not finite, before > after\n"
    "  index      bits of a position in a top-k payload > after +zstd; entry: of position and "
    "value\n"
    "Speed. GB/s is 1e9 bytes of float32 in a second of wall time, of all threads together.\n"
    "  min, median, max  over the repetitions\n"
    "  floor      what the processor needs for the same reads and writes without arithmetic, in\n"
    "             turn with the kernel; of floor: median of the ratios of such pairs. For "
    "encoding\n"
    "             with +ef the floor is e += g, for plain top-k a read\n"
    "  memcpy     of the same float32 bytes, likewise; best: against the last kernel table\n"
    "  add        decode and add to float32\n"
    "Steps. NMSE of the sum of all that was applied in N steps, against the sum of the\n"
    "gradients, or of their momentum where the policy has adam=onebit.\n"
    "Prediction. One gradient of as many values as were given, reduced in two phases between the\n"
    "nodes: S(1+1/m)/encode + 2S(m-1)/m/decode for the codec, 2(m-1)/m bytes/bandwidth on the "
    "wire,\n"
    "one after the other or in a pipeline of 4 MiB chunks. S: float32 bytes. Speeds are those of\n"
    "the last table at the largest --size with --threads. Latencies and all else are left out.\n"
    "Exit status: 1 something could not be measured or written, 2 bad usage or bad values.\n";

void lcomm_bench_help(void) {
  fputs(usage, stdout);
  for (int kind = 0; kind < LCOMM_SYNTHETIC_KINDS; kind++) {
    printf("                           %-9s %s\n", lcomm_synthetic_name((lcomm_synthetic_kind)kind),
           lcomm_synthetic_about((lcomm_synthetic_kind)kind));
  }
  fputs(measures, stdout);
  fputs(columns, stdout);
}
