/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/perf/perf_options.h"

static const char sizes_and_runs[] =
    "  -b, --minbytes SIZE      smallest size (default 1M; K, M, G: powers of 1024)\n"
    "  -e, --maxbytes SIZE      largest size (default: the smallest)\n"
    "  -f, --stepfactor NUMBER  from one size to the next, times (default 2)\n"
    "  -i, --stepbytes SIZE     from one size to the next, plus\n"
    "  -d, --datatype TYPE|all  float32 (or float), float16 (half), bfloat16, float64 (double),\n"
    "                           int32 (int), int64, int8 or uint8 (default float32)\n"
    "  -n, --iters N            timed samples of each case (default 5)\n"
    "  -w, --warmup_iters N     samples before them (default 1)\n"
    "      --batch N            operations in a row that make one sample (default: 1, and for\n"
    "                           small sizes as many as take about 200 us)\n";

static const char ways[] =
    "  -p, --policy POLICY      a policy, '' is exact; may be given up to 16 times (default '')\n"
    "      --transport NAMES    as in LCOMM_TRANSPORT, e.g. auto or shm,mpi\n"
    "      --memory malloc|libcomm  libcomm: buffers of lcomm_memory_alloc(), as -R of nccl-tests\n"
    "                           registers them (default malloc)\n"
    "      --progress calls|thread  who moves running operations (default: LCOMM_PROGRESS)\n"
    "      --boot mpi|env       env: the ranks meet through RANK, WORLD_SIZE and MASTER_ADDR, and\n"
    "                           no MPI is used; without them it is a world of one (default mpi)\n";

static const char tensors[] =
    "      --tensors            call through tensors, as a trainer does; a policy with +ef, or "
    "with\n"
    "                           auto:int4 to auto:topk, which may choose it, always does where it\n"
    "                           can, since error feedback belongs to tensors\n"
    "      --tensors-count N    the buffer as N tensors of one size\n";

static const char more[] =
    "      --overlap SHARE|MSms how much hides behind a computation of SHARE times the\n"
    "                           operation's time, or of MS milliseconds\n"
    "      --late MSms          in each sample one rank, each in turn, calls MS milliseconds "
    "after\n"
    "                           the others; the time is that of the others, from their own calls\n"
    "  -c, --check              compare a result with the exact one and between ranks\n"
    "      --data FILE          use the float32 values of FILE, repeated, instead of built-in\n"
    "                           numbers; %d in its name: one of several files for each rank\n"
    "      --interface NAME     also count bytes sent by this network interface of every host\n"
    "      --percentiles        show p10, p90 and p99 too\n"
    "      --json FILE          write the results to FILE too, and more of them\n"
    "      --csv FILE           the same as comma-separated values, a line for each row\n"
    "      --version\n"
    "  -h, --help\n";

static const char columns[] =
    "Columns: size: of a rank's largest buffer; count: elements as the call takes them; min,\n"
    "med, max: of the slowest rank's time for one operation; algbw: size / med; busbw: algbw\n"
    "times %s; node, net: bytes all ranks sent in one operation, near and far; iface:\n"
    "bytes of all hosts' interfaces, with the headers of each packet as TCP hands it over, of up\n"
    "to 64 KiB where the interface cuts it; ratio: bytes of the same\n"
    "messages had they been exact / bytes sent, between nodes if there are several; cpu:\n"
    "processor time of all ranks for one operation; vs mpi: MPI's median time / this one; error:\n"
    "mean squared error over mean square; #wrong: elements that differ between ranks or, for\n"
    "what is exact, from the exact result.\n"
    "Columns of --overlap: alone: the operation; compute: sleeping in slices of 1 ms; both: the\n"
    "operation, started before it and waited for after it; hidden: 1 - (both-compute)/alone.\n"
    "Between two slices lcomm_progress is called, unless it is --progress thread.\n"
    "A sample begins with a barrier. In a batch each operation has fresh buffers as long as they\n"
    "fit into 16 MiB; tensors are filled again with a copy, which is part of the time.\n";

static const char stream[] =
    "A batch of broadcasts is a stream: where the call allows it, the root runs ahead. Compare\n"
    "latencies with --batch 1.\n";

static const char *bus_text(const lcomm_perf_collective *collective) {
  return collective->has_root ? "1" : collective->bus_rounds > 1.0 ? "2(P-1)/P" : "(P-1)/P";
}

void lcomm_perf_help(FILE *file, const lcomm_perf_collective *collective) {
  fprintf(file,
          "usage: mpirun -np N %s [OPTIONS]\n"
          "Time %s under one or more policies, in turn, in one run.\n%s",
          collective->tool, collective->name, sizes_and_runs);
  if (collective->reduces) {
    fputs("  -o, --op OP|all          sum, avg, min or max (default sum)\n", file);
  }
  if (collective->has_root) {
    fputs("  -r, --root RANK|all      (default 0)\n", file);
  } else {
    fprintf(file, "      --%s           one buffer%s\n", "in-place",
            collective->is_in_place ? " (the default)" : "");
    fprintf(file, "      --%s        two buffers%s\n", "no-in-place",
            collective->is_in_place ? "" : " (the default)");
  }
  fputs(ways, file);
  fprintf(
      file,
      "      --against mpi        measure %s too\n"
      "      --through libcomm|mpi  mpi: no policies, but what comes of %s,\n"
      "                           which a preloaded library such as libcomm-mpi.so may take over;\n"
      "                           against MPI is against %s then (default libcomm)\n",
      collective->mpi_name, collective->mpi_name, collective->pmpi_name);
  if (collective->kind == LCOMM_PERF_ALLREDUCE) {
    fputs(tensors, file);
  }
  fputs(more, file);
  fprintf(file, columns, bus_text(collective));
  if (collective->has_root) {
    fputs(stream, file);
  }
  fputs(
      "Options of other collectives (-o, -r) are taken and not used.\n"
      "SIGINT and SIGTERM end a run after the samples it is at, with the results so far; a second\n"
      "one ends it at once.\n"
      "Exit status: 1 results are wrong, 2 bad usage or an operation failed, 128 + the number of\n"
      "a signal.\n",
      file);
}
