/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The collective functions of MPI with counts of int, and what they share with those of MPI_Count:
 * how a call that was taken runs. MPI's memory. */

#include <string.h>

#define COUNT int
#define DISPLACEMENT int
#define NAME(name) name
#include "libcomm/interpose/mpi/interpose_collective_functions.h"
#include "libcomm/interpose/mpi/interpose_comm.h"
#include "libcomm/interpose/mpi/interpose_fortran.h"
#include "libcomm/interpose/mpi/interpose_left.h"
#include "libcomm/interpose/mpi/interpose_staging.h"

/* ------------------------------------------------------------------ running */

static lcomm_status begin_sum(const lcomm_interpose_call *call, lcomm_request *request) {
  lcomm_comm *comm = call->comm;
  if (call->feedback == LCOMM_INTERPOSE_EF) {
    return lcomm_iallreduce_ef(call->residual, call->send, call->receive, request);
  }
  if (call->feedback == LCOMM_INTERPOSE_FLUSH) {
    return lcomm_iallreduce_flush(call->residual, call->send, call->receive, request);
  }
  if (call->kind == LCOMM_CALL_REDUCE_SCATTER && call->part_counts) {
    return lcomm_ireduce_scatterv(comm, call->send, call->receive, call->part_counts, call->dtype,
                                  call->op, request);
  }
  if (call->kind == LCOMM_CALL_REDUCE_SCATTER) {
    return lcomm_ireduce_scatter(comm, call->send, call->receive, call->count, call->dtype,
                                 call->op, request);
  }
  return lcomm_iallreduce(comm, call->send, call->receive, call->count, call->dtype, call->op,
                          request);
}

/* The first call of a call site creates its residual. */
static lcomm_status find_residual(lcomm_interpose_call *call) {
  if (call->feedback == LCOMM_INTERPOSE_PLAIN || !call->ef || call->status != LCOMM_OK) {
    return call->status;
  }
  return lcomm_interpose_ef_residual(call->ef, call->site, call->comm, &call->residual);
}

static lcomm_status prepare(lcomm_interpose_call *call) {
  lcomm_interpose_context *context = &call->at->context;
  lcomm_comm *comm = call->comm = call->comm ? call->comm : context->backing.comm;
  if (!comm) {
    return context->init_status != LCOMM_OK ? context->init_status : LCOMM_ERR_MEMORY;
  }
  call->status = find_residual(call);
  if (call->status != LCOMM_OK) {
    const char *why = context->sentence;
    lcomm_abort(comm, why ? why : "a rank has no memory for error feedback");
  }
  return call->status;
}

lcomm_status lcomm_interpose_call_begin(lcomm_interpose_call *call, lcomm_request *request) {
  lcomm_status status = prepare(call);
  lcomm_comm *comm = call->comm;
  if (status != LCOMM_OK) {
    return status;
  }
  if (lcomm_interpose_call_is_sum(call)) {
    return begin_sum(call, request);
  }
  if (call->kind == LCOMM_CALL_BROADCAST) {
    return lcomm_ibroadcast(comm, call->receive, call->count, call->dtype, call->root, request);
  }
  if (call->part_counts) {
    return lcomm_iallgatherv(comm, call->send, call->receive, call->part_counts, call->dtype,
                             request);
  }
  return lcomm_iallgather(comm, call->send, call->receive, call->count, call->dtype, request);
}

void lcomm_interpose_call_check_alias(const lcomm_interpose_call *call) {
  lcomm_interpose_comm *at = call->at;
  if (call->feedback == LCOMM_INTERPOSE_EF && lcomm_interpose_ef_aliased(at->ef, call->send) &&
      at->rank == 0) {
    lcomm_interpose_log(
        "calls of %llu floats at one position of the step use several buffers in turn, "
        "so their error feedback is mixed; say in the policy with step=N how many "
        "compressed all-reduces make up a step (%u were found)",
        (unsigned long long)call->count, lcomm_interpose_ef_period(at->ef));
  }
}

/* The caller waits: of all-reduces libcomm knows, so that net=auto learns from them. */
static lcomm_status make_call(lcomm_interpose_call *call) {
  lcomm_request request = {0};
  if (call->kind == LCOMM_CALL_ALLREDUCE && call->feedback != LCOMM_INTERPOSE_FLUSH) {
    lcomm_status status = prepare(call);
    if (status != LCOMM_OK) {
      return status;
    }
    return call->feedback == LCOMM_INTERPOSE_EF
               ? lcomm_allreduce_ef(call->residual, call->send, call->receive)
               : lcomm_allreduce(call->comm, call->send, call->receive, call->count, call->dtype,
                                 call->op);
  }
  lcomm_status status = lcomm_interpose_call_begin(call, &request);
  return status == LCOMM_OK ? lcomm_wait(call->comm, &request) : status;
}

int lcomm_interpose_call_run(lcomm_interpose_call *call) {
  lcomm_interpose_comm *at = call->at;
  lcomm_interpose_call_check_alias(call);
  lcomm_interpose_staging_settle();
  pthread_mutex_lock(&at->lock);
  lcomm_status status = make_call(call);
  pthread_mutex_unlock(&at->lock);
  return status == LCOMM_OK ? MPI_SUCCESS : lcomm_interpose_call_fail(call, status);
}

void lcomm_interpose_call_collect(lcomm_interpose_call *call) {
  if (call->begun && call->status == LCOMM_OK) {
    pthread_mutex_lock(&call->at->lock);
    (void)lcomm_wait(call->comm, &call->request);
    pthread_mutex_unlock(&call->at->lock);
  }
}

void lcomm_interpose_call_done(const lcomm_interpose_call *call) {
  lcomm_interpose_comm *at = call->at;
  atomic_fetch_sub(&at->pending, 1);
  lcomm_interpose_comm_release(at);
}

/* ------------------------------------------------------ shared with large counts */

static void set_buffers(lcomm_interpose_call *call, const void *send, void *receive) {
  call->send = send == MPI_IN_PLACE ? receive : send;
  call->receive = receive;
}

int lcomm_interpose_run(lcomm_interpose_call *call, const void *send, void *receive) {
  set_buffers(call, send, receive);
  return lcomm_interpose_call_run(call);
}

int lcomm_interpose_run_gather(lcomm_interpose_call *call, const void *send, void *receive,
                               uint64_t before) {
  if (send == MPI_IN_PLACE) {
    send = (const char *)receive + before * lcomm_dtype_size(call->dtype);
  }
  return lcomm_interpose_run(call, send, receive);
}

int lcomm_interpose_submit(lcomm_interpose_call *call, const void *send, void *receive,
                           MPI_Request *request) {
  set_buffers(call, send, receive);
  lcomm_interpose_call_check_alias(call);
  lcomm_interpose_staging_settle();
  lcomm_interpose_left_do();
  if (lcomm_interpose_is_on_device(call) && !lcomm_interpose_begin_here(call)) {
    lcomm_interpose_begin_later(call);
  }
  return lcomm_interpose_enqueue(call, request);
}

int lcomm_interpose_intra_size(MPI_Comm comm) {
  int size = 0, inter = 0;
  if (comm == MPI_COMM_NULL || PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter ||
      PMPI_Comm_size(comm, &size) != MPI_SUCCESS) {
    return 0;
  }
  return size;
}

/* -------------------------------------------------------------------- memory */

/* libcomm gives whole pages, and shorter buffers gain nothing. */
enum { ALLOC_MIN_BYTES = 64 << 10 };

static bool takes_calls(void) {
  int mode = atomic_load_explicit(&lcomm_interpose_mode_now, memory_order_relaxed);
  return mode == LCOMM_INTERPOSE_ON || mode == LCOMM_INTERPOSE_BLOCKING;
}

/* libcomm's memory can be read by the other ranks of the host. An info is for MPI. */
LCOMM_INTERPOSE_API int MPI_Alloc_mem(MPI_Aint size, MPI_Info info, void *baseptr) {
  void *memory = NULL;
  if (!takes_calls() || size < ALLOC_MIN_BYTES || info != MPI_INFO_NULL || !baseptr ||
      lcomm_memory_alloc((size_t)size, &memory) != LCOMM_OK) {
    return PMPI_Alloc_mem(size, info, baseptr);
  }
  memcpy(baseptr, &memory, sizeof(memory)); /* baseptr is the address of a pointer of any type */
  return MPI_SUCCESS;
}

/* Works in all modes, because the interposer may have been switched off since. */
LCOMM_INTERPOSE_API int MPI_Free_mem(void *base) {
  if (base && lcomm_memory_free(base) == LCOMM_OK) {
    return MPI_SUCCESS;
  }
  return PMPI_Free_mem(base);
}

/* Fortran's MPI_ALLOC_MEM is MPI's, but Fortran may free what C has allocated. */
static void lcomm_interpose_mpi_free_mem(void *base, MPI_Fint *error) {
  lcomm_interpose_fortran_end(error, MPI_Free_mem(base));
}
LCOMM_INTERPOSE_FORTRAN(mpi_free_mem, MPI_FREE_MEM)
