/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_PERF_PERF_MPI_CALL_H
#define LCOMM_TOOLS_PERF_PERF_MPI_CALL_H

#include "tools/perf/perf_collective.h"

/* MPI counts in int: no MPI call sees more elements than this in one count. */
#define LCOMM_PERF_MPI_PART (UINT64_C(1) << 30)

/* Under which names MPI is called: those that programs use, which come to a library
 * that was preloaded, such as libcomm-mpi.so; or those of MPI's profiling interface,
 * which are MPI's own whatever was preloaded. */
typedef enum lcomm_perf_mpi { LCOMM_PERF_MPI, LCOMM_PERF_PMPI } lcomm_perf_mpi;

/* Can MPI do it? It moves any type, but adds up no 16-bit one. */
int lcomm_perf_mpi_can(const lcomm_perf_call *call);

/* Do it by the matching call of MPI over all ranks, or by several of at most
 * `part` elements. An average is a sum that is divided afterwards. */
void lcomm_perf_mpi_call(lcomm_perf_mpi mpi, const lcomm_perf_call *call, lcomm_perf_place place,
                         uint64_t part);

/* Where that leaves the result: an MPI_Reduce_scatter_block in place puts it to
 * the beginning of the buffer. */
void *lcomm_perf_mpi_result(const lcomm_perf_call *call, lcomm_perf_place place, uint64_t part);

#endif
