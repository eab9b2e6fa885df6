/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Which calls are libcomm's, and how they are made. */

#include "libcomm/interpose/mpi/comms.h"
#include "libcomm/interpose/mpi/control.h"
#include "libcomm/interpose/mpi/making.h"
#include "libcomm/interpose/mpi/note.h"
#include "libcomm/interpose/mpi/report.h"

atomic_int lcomm_interpose_mode_now = LCOMM_INTERPOSE_SHUT;

/* No policy of this run ever chooses a shorter call. Set once, before the first call. */
uint64_t lcomm_interpose_least_bytes;

/* ------------------------------------------------------------- what it is */

static bool is_sum(const lcomm_interpose_call *call) {
  return call->kind == LCOMM_CALL_ALLREDUCE || call->kind == LCOMM_CALL_REDUCE_SCATTER;
}

/* As min= of a policy counts: of one rank's part, where there are parts. */
static uint64_t size_of(const lcomm_interpose_call *call) {
  return call->count * lcomm_dtype_size(call->dtype);
}

static bool translate(MPI_Datatype type, MPI_Op op, lcomm_interpose_call *call) {
  if (is_sum(call)) {
    return lcomm_interpose_dtype(type, &call->dtype) && lcomm_interpose_op(op, &call->op);
  }
  call->op = LCOMM_SUM;
  return lcomm_interpose_dtype(type, &call->dtype);
}

/* ------------------------------------------------------------------ feedback */

/* Its residual is found when the call begins. The queue's thread may be at the others. */
static void ask(lcomm_interpose_lasting *lasting, lcomm_interpose_call *call) {
  pthread_mutex_lock(&call->at->lock);
  call->feedback =
      lcomm_interpose_lasting_next(lasting, call->count, call->op, &call->residual, &call->status);
  call->of = lasting;
  call->identity = lcomm_interpose_lasting_identity(lasting);
  pthread_mutex_unlock(&call->at->lock);
}

static const char payment[] = "pays what error feedback owes";

/* Residuals of a policy that is no longer in force, or of one that was switched off. */
static bool pays(lcomm_interpose_lasting *owed, lcomm_interpose_call *call) {
  if (!owed || call->kind != LCOMM_CALL_ALLREDUCE || call->dtype != LCOMM_FLOAT32 ||
      lcomm_interpose_lasting_owing(owed) == 0) {
    return false;
  }
  ask(owed, call);
  return call->feedback == LCOMM_INTERPOSE_FLUSHES;
}

static const char no_pattern[] = "error feedback waits until the calls of a step repeat";

static bool lasts(lcomm_interpose_call *call, lcomm_selection *choice, const char **why) {
  ask(call->at->lasting, call);
  if (call->feedback == LCOMM_INTERPOSE_FLUSHES) {
    *choice = LCOMM_SELECT_EXACT;
    *why = payment;
    return true;
  }
  *why = call->feedback == LCOMM_INTERPOSE_PLAIN ? no_pattern : "";
  return call->feedback == LCOMM_INTERPOSE_LASTS || call->status != LCOMM_OK;
}

/* ---------------------------------------------------------------- choosing */

/* Is it libcomm's? *why is the reason if not. */
static bool choose(lcomm_interpose_call *call, lcomm_selection *choice, const char **why) {
  lcomm_interpose_comm *at = call->at;
  *choice = LCOMM_SELECT_NONE;
  call->home = NULL;
  if (pays(at->owed, call)) {
    call->home = at->owing.comm;
    *choice = LCOMM_SELECT_EXACT;
    *why = payment;
    return true;
  }
  if (at->off && pays(at->lasting, call)) {
    *choice = LCOMM_SELECT_EXACT;
    *why = payment;
    return true;
  }
  if (at->off) {
    *why = "switched off by LCOMM_INTERPOSE_CONTROL";
    return false;
  }
  if (call->root < 0 || call->root >= at->size) {
    *why = "a root that does not exist";
    return false;
  }
  if (at->facts.uses_names && !at->name_agreed) {
    *why = "the communicator's name is agreed on in its first blocking sum";
    return false;
  }
  if (at->stays_mpi) {
    *why = "libcomm could not make a communicator of these ranks";
    return false;
  }
  *choice = lcomm_preview_query(at->preview, call->kind, call->count, call->dtype, call->op, why);
  if (*choice == LCOMM_SELECT_EF) {
    return lasts(call, choice, why);
  }
  return *choice != LCOMM_SELECT_NONE;
}

static bool take(MPI_Comm comm, MPI_Datatype type, MPI_Op op, lcomm_interpose_call *call,
                 bool known) {
  lcomm_selection choice = LCOMM_SELECT_NONE;
  const char *why = "a type or an operation that libcomm does not have";
  bool taken = false;
  if (known) {
    why = "a communicator inside one node, or of several worlds";
    taken = call->at && choose(call, &choice, &why);
  }
  if (lcomm_interpose_noting) {
    lcomm_interpose_note_call(comm, type, op, call, choice, taken, why);
  }
  return taken && atomic_load(&lcomm_interpose_mode_now) != LCOMM_INTERPOSE_REPORT;
}

const char lcomm_interpose_not_blocking[] = "does not block, and LCOMM_INTERPOSE=blocking";

static void leave(MPI_Comm comm, MPI_Datatype type, MPI_Op op, const lcomm_interpose_call *call,
                  const char *why) {
  if (lcomm_interpose_noting) {
    lcomm_interpose_note_call(comm, type, op, call, LCOMM_SELECT_NONE, false, why);
  }
}

/* Nothing that is ever chosen, by its type or by its length? Costs next to nothing. */
static bool is_not_for_us(const lcomm_interpose_call *call, bool known) {
  if (lcomm_interpose_noting) {
    return false;
  }
  return !known || size_of(call) < lcomm_interpose_least_bytes;
}

/* What ranks have to agree on, they agree on in calls that all of them make alike:
 * sums, for whose count and type MPI requires that. */
static void agree(lcomm_interpose_call *call) {
  lcomm_interpose_comm *at = call->at;
  if (!is_sum(call) || size_of(call) < at->candidate_bytes) {
    return;
  }
  at->candidates++;
  lcomm_interpose_control_look(at);
  if (at->facts.uses_names && !at->name_agreed) {
    lcomm_interpose_agree_on_name(at);
  }
}

bool lcomm_interpose_take(MPI_Comm comm, MPI_Datatype type, MPI_Op op, lcomm_interpose_call *call) {
  bool known = translate(type, op, call);
  if (is_not_for_us(call, known)) {
    return false;
  }
  call->at = lcomm_interpose_find(comm);
  if (call->at && known) {
    agree(call);
  }
  if (!take(comm, type, op, call, known)) {
    return false;
  }
  if (atomic_load(&call->at->pending) > 0) {
    lcomm_interpose_drain(call->at); /* operations of a communicator start in order */
  }
  if (!call->home && !call->at->home.comm) {
    (void)lcomm_interpose_make_home(call->at); /* without it the call fails, or: */
  }
  return !call->at->stays_mpi || call->home;
}

bool lcomm_interpose_take_nonblocking(MPI_Comm comm, MPI_Datatype type, MPI_Op op,
                                      lcomm_interpose_call *call) {
  bool known = translate(type, op, call);
  if (is_not_for_us(call, known)) {
    return false;
  }
  call->at = lcomm_interpose_find(comm);
  if (atomic_load(&lcomm_interpose_mode_now) == LCOMM_INTERPOSE_BLOCKING) {
    leave(comm, type, op, call, lcomm_interpose_not_blocking);
    return false;
  }
  if (!take(comm, type, op, call, known)) {
    return false;
  }
  if (!call->home && !lcomm_interpose_begin_home(call->at)) {
    call->status = LCOMM_ERR_MEMORY;
  }
  lcomm_interpose_use(call->at);
  atomic_fetch_add(&call->at->pending, 1);
  return true;
}

void lcomm_interpose_done(const lcomm_interpose_call *call) {
  lcomm_interpose_comm *at = call->at;
  atomic_fetch_sub(&at->pending, 1);
  lcomm_interpose_unuse(at);
}

/* ------------------------------------------------------------------ making */

static lcomm_status begin_sum(const lcomm_interpose_call *call, lcomm_request *request) {
  lcomm_comm *made = call->home;
  if (call->feedback == LCOMM_INTERPOSE_LASTS) {
    return lcomm_iallreduce_ef(call->residual, call->send, call->receive, request);
  }
  if (call->feedback == LCOMM_INTERPOSE_FLUSHES) {
    return lcomm_iallreduce_flush(call->residual, call->send, call->receive, request);
  }
  if (call->kind == LCOMM_CALL_REDUCE_SCATTER && call->part_counts) {
    return lcomm_ireduce_scatterv(made, call->send, call->receive, call->part_counts, call->dtype,
                                  call->op, request);
  }
  if (call->kind == LCOMM_CALL_REDUCE_SCATTER) {
    return lcomm_ireduce_scatter(made, call->send, call->receive, call->count, call->dtype,
                                 call->op, request);
  }
  return lcomm_iallreduce(made, call->send, call->receive, call->count, call->dtype, call->op,
                          request);
}

/* The residual that was spoken of, made where this is its first call. */
static lcomm_status find_residual(lcomm_interpose_call *call) {
  if (call->feedback == LCOMM_INTERPOSE_PLAIN || !call->of || call->status != LCOMM_OK) {
    return call->status;
  }
  return lcomm_interpose_lasting_residual(call->of, call->identity, call->home, &call->residual);
}

lcomm_status lcomm_interpose_begin(lcomm_interpose_call *call, lcomm_request *request) {
  lcomm_comm *made = call->home = call->home ? call->home : call->at->home.comm;
  if (!made) {
    return call->at->unmade != LCOMM_OK ? call->at->unmade : LCOMM_ERR_MEMORY;
  }
  call->status = find_residual(call);
  if (call->status != LCOMM_OK) {
    lcomm_abort(made, "a rank has no memory for error feedback");
    return call->status;
  }
  if (is_sum(call)) {
    return begin_sum(call, request);
  }
  if (call->kind == LCOMM_CALL_BROADCAST) {
    return lcomm_ibroadcast(made, call->receive, call->count, call->dtype, call->root, request);
  }
  if (call->part_counts) {
    return lcomm_iallgatherv(made, call->send, call->receive, call->part_counts, call->dtype,
                             request);
  }
  return lcomm_iallgather(made, call->send, call->receive, call->count, call->dtype, request);
}

void lcomm_interpose_suspect(const lcomm_interpose_call *call) {
  lcomm_interpose_comm *at = call->at;
  if (call->feedback == LCOMM_INTERPOSE_LASTS &&
      lcomm_interpose_lasting_suspects(at->lasting, call->send) && at->rank == 0) {
    lcomm_interpose_say(
        "calls of %llu floats at one position of the step use several buffers in turn, "
        "so their error feedback is mixed; say in the policy with step=N how many "
        "compressed all-reduces make up a step (%u were found)",
        (unsigned long long)call->count, lcomm_interpose_lasting_period(at->lasting));
  }
}

int lcomm_interpose_make(lcomm_interpose_call *call) {
  lcomm_interpose_comm *at = call->at;
  lcomm_request request = {0};
  lcomm_interpose_suspect(call);
  pthread_mutex_lock(&at->lock);
  lcomm_status status = lcomm_interpose_begin(call, &request);
  if (status == LCOMM_OK) {
    status = lcomm_wait(call->home, &request);
  }
  pthread_mutex_unlock(&at->lock);
  return status == LCOMM_OK ? MPI_SUCCESS : lcomm_interpose_fail(call, status);
}

/* A sentence, once; then the error handler that the program gave the communicator decides. */
int lcomm_interpose_fail(const lcomm_interpose_call *call, lcomm_status status) {
  lcomm_interpose_comm *at = call->at;
  if (!at->failed) {
    at->failed = true;
    const char *sentence = at->sentence ? at->sentence
                           : call->home ? lcomm_last_error(call->home)
                                        : "";
    lcomm_interpose_say("%s", sentence[0] ? sentence : lcomm_status_string(status));
  }
  lcomm_interpose_ask_handler(at);
  return MPI_ERR_OTHER;
}
