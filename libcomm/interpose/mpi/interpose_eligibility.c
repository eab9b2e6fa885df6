/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Which calls libcomm makes. */

#include "libcomm/interpose/interpose_report.h"
#include "libcomm/interpose/mpi/interpose_comm.h"

atomic_int lcomm_interpose_mode_now = LCOMM_INTERPOSE_OFF;
uint64_t lcomm_interpose_min_bytes;
const char lcomm_interpose_not_blocking[] = "does not block, and LCOMM_INTERPOSE=blocking";

/* ------------------------------------------------------ types and operations */

/* MPI makes calls with all other types: derived and complex ones, unsigned ones of more than 8
 * bits, and MPI_BYTE, which has no sum, minimum or maximum. */
bool lcomm_interpose_dtype(MPI_Datatype type, lcomm_dtype *dtype) {
  if (type == MPI_FLOAT || type == MPI_REAL || type == MPI_REAL4) {
    *dtype = LCOMM_FLOAT32;
  } else if (type == MPI_DOUBLE || type == MPI_DOUBLE_PRECISION || type == MPI_REAL8) {
    *dtype = LCOMM_FLOAT64;
  } else if (type == MPI_INT || type == MPI_INT32_T || type == MPI_INTEGER ||
             type == MPI_INTEGER4) {
    *dtype = LCOMM_INT32;
  } else if (type == MPI_LONG_LONG || type == MPI_INT64_T || type == MPI_INTEGER8 ||
             (type == MPI_LONG && sizeof(long) == sizeof(int64_t))) {
    *dtype = LCOMM_INT64;
  } else if (type == MPI_INT8_T || type == MPI_SIGNED_CHAR) {
    *dtype = LCOMM_INT8;
  } else if (type == MPI_UINT8_T || type == MPI_UNSIGNED_CHAR) {
    *dtype = LCOMM_UINT8;
  } else {
    return false;
  }
  return true;
}

bool lcomm_interpose_op(MPI_Op op, lcomm_op *own) {
  if (op == MPI_SUM) {
    *own = LCOMM_SUM;
  } else if (op == MPI_MIN) {
    *own = LCOMM_MIN;
  } else if (op == MPI_MAX) {
    *own = LCOMM_MAX;
  } else {
    return false;
  }
  return true;
}

/* As min= of a policy counts: the part of one rank, where there are parts. */
static uint64_t size_of(const lcomm_interpose_call *call) {
  return call->count * lcomm_dtype_size(call->dtype);
}

static bool translate(MPI_Datatype type, MPI_Op op, lcomm_interpose_call *call) {
  if (lcomm_interpose_call_is_sum(call)) {
    return lcomm_interpose_dtype(type, &call->dtype) && lcomm_interpose_op(op, &call->op);
  }
  call->op = LCOMM_SUM;
  return lcomm_interpose_dtype(type, &call->dtype);
}

/* ------------------------------------------------------------ error feedback */

static const char flushing[] = "flushes what error feedback carries";
static const char no_pattern[] = "error feedback waits until the calls of a step repeat";

/* Decide about error feedback. The lock is needed because the queue's thread may look up other
 * residuals; that of this call is looked up when it begins. */
static void apply_ef(lcomm_interpose_ef *ef, lcomm_interpose_call *call) {
  pthread_mutex_lock(&call->at->lock);
  call->feedback = lcomm_interpose_ef_next(ef, call->kind, call->count, call->op, &call->status);
  call->ef = ef;
  call->site = lcomm_interpose_ef_site(ef);
  pthread_mutex_unlock(&call->at->lock);
}

/* True: the call flushes a residual of a policy that was replaced or switched off. */
static bool flushes(lcomm_interpose_ef *ef, lcomm_interpose_call *call) {
  if (!ef || call->kind != LCOMM_CALL_ALLREDUCE || call->dtype != LCOMM_FLOAT32 ||
      lcomm_interpose_ef_carrying(ef) == 0) {
    return false;
  }
  apply_ef(ef, call);
  return call->feedback == LCOMM_INTERPOSE_FLUSH;
}

static bool has_ef(lcomm_interpose_call *call, lcomm_selection *choice, const char **why) {
  apply_ef(call->at->ef, call);
  if (call->feedback == LCOMM_INTERPOSE_FLUSH) {
    *choice = LCOMM_SELECT_EXACT;
    *why = flushing;
    return true;
  }
  *why = call->feedback == LCOMM_INTERPOSE_PLAIN ? no_pattern : "";
  return call->feedback == LCOMM_INTERPOSE_EF || call->status != LCOMM_OK;
}

/* --------------------------------------------------------------- eligibility */

lcomm_selection lcomm_interpose_query(const lcomm_interpose_call *call, const char **why) {
  lcomm_selection choice = lcomm_preview_query(call->at->policy.preview, call->kind, call->count,
                                               call->dtype, call->op, why);
  if (choice != LCOMM_SELECT_EF || call->kind == LCOMM_CALL_ALLREDUCE) {
    return choice;
  }
  *why = "error feedback of MPI's calls is for all-reduces only";
  return LCOMM_SELECT_EXACT;
}

/* True: libcomm makes the call. False: *why says why not. */
static bool is_eligible(lcomm_interpose_call *call, lcomm_selection *choice, const char **why) {
  lcomm_interpose_comm *at = call->at;
  *choice = LCOMM_SELECT_NONE;
  call->comm = NULL;
  if (flushes(at->former_ef, call)) {
    call->comm = at->former_backing.comm;
    *choice = LCOMM_SELECT_EXACT;
    *why = flushing;
    return true;
  }
  if (at->policy.off && flushes(at->ef, call)) {
    *choice = LCOMM_SELECT_EXACT;
    *why = flushing;
    return true;
  }
  if (at->policy.off) {
    *why = "switched off by LCOMM_INTERPOSE_CONTROL";
    return false;
  }
  if (call->root < 0 || call->root >= at->size) {
    *why = "a root that does not exist";
    return false;
  }
  if (at->policy.facts.uses_names && !at->name_agreed) {
    *why = "the communicator's name is agreed on in its first blocking sum";
    return false;
  }
  if (at->context.plain_mpi) {
    *why = "libcomm could not make a communicator of these ranks";
    return false;
  }
  *choice = lcomm_interpose_query(call, why);
  if (*choice == LCOMM_SELECT_EF) {
    return has_ef(call, choice, why);
  }
  return *choice != LCOMM_SELECT_NONE;
}

/* known: libcomm has the type and the operation. */
static bool decide(MPI_Comm comm, MPI_Datatype type, MPI_Op op, lcomm_interpose_call *call,
                   bool known) {
  lcomm_selection choice = LCOMM_SELECT_NONE;
  const char *why = "a type or an operation that libcomm does not have";
  bool taken = false;
  if (known) {
    why = "a communicator inside one node, or of several worlds";
    taken = call->at && is_eligible(call, &choice, &why);
  }
  if (lcomm_interpose_recording) {
    lcomm_interpose_record_call(comm, type, op, call, choice, taken, why);
  }
  return taken && atomic_load(&lcomm_interpose_mode_now) != LCOMM_INTERPOSE_REPORT;
}

/* True: no policy of this run chooses the type or the length. Cheap. */
static bool is_never_eligible(const lcomm_interpose_call *call, bool known) {
  if (lcomm_interpose_recording) {
    return false;
  }
  return !known || size_of(call) < lcomm_interpose_min_bytes;
}

/* Ranks agree in blocking sums, because MPI requires all ranks to make those alike. */
static void agree(lcomm_interpose_call *call) {
  lcomm_interpose_comm *at = call->at;
  if (!lcomm_interpose_call_is_sum(call) || size_of(call) < at->policy.candidate_bytes) {
    return;
  }
  at->policy.candidates++;
  lcomm_interpose_control_poll(at);
  if (at->policy.facts.uses_names && !at->name_agreed) {
    lcomm_interpose_comm_agree_on_name(at);
  }
}

bool lcomm_interpose_take(MPI_Comm comm, MPI_Datatype type, MPI_Op op, lcomm_interpose_call *call) {
  bool known = translate(type, op, call);
  if (is_never_eligible(call, known)) {
    return false;
  }
  call->at = lcomm_interpose_comm_find(comm);
  if (call->at && known) {
    agree(call);
  }
  if (!decide(comm, type, op, call, known)) {
    return false;
  }
  if (atomic_load(&call->at->pending) > 0) {
    lcomm_interpose_drain(call->at); /* calls of a communicator start in order */
  }
  if (!call->comm && !call->at->context.backing.comm) {
    (void)lcomm_interpose_backing_create(call->at); /* MPI makes the call, or it fails */
  }
  return !call->at->context.plain_mpi || call->comm;
}

bool lcomm_interpose_take_nonblocking(MPI_Comm comm, MPI_Datatype type, MPI_Op op,
                                      lcomm_interpose_call *call) {
  bool known = translate(type, op, call);
  if (is_never_eligible(call, known)) {
    return false;
  }
  call->at = lcomm_interpose_comm_find(comm);
  if (atomic_load(&lcomm_interpose_mode_now) == LCOMM_INTERPOSE_BLOCKING) {
    if (lcomm_interpose_recording) {
      lcomm_interpose_record_call(comm, type, op, call, LCOMM_SELECT_NONE, false,
                                  lcomm_interpose_not_blocking);
    }
    return false;
  }
  if (!decide(comm, type, op, call, known)) {
    return false;
  }
  if (!call->comm && !lcomm_interpose_backing_begin(call->at)) {
    call->status = LCOMM_ERR_MEMORY;
  }
  lcomm_interpose_comm_retain(call->at);
  atomic_fetch_add(&call->at->pending, 1);
  return true;
}
