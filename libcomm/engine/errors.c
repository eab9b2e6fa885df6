/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Errors of a communicator: made sticky, sent to peers, received from them. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcomm/engine/entry.h"
#include "libcomm/engine/operation.h"
#include "libcomm/engine/peer_memory.h"
#include "libcomm/engine/progress_thread.h"

bool lcomm_failure_state_make(lcomm_comm *comm) {
  size_t size = (size_t)comm->size;
  lcomm_agreement *agreement = &comm->errors.agreement;
  comm->identity.processes = calloc(size, sizeof *comm->identity.processes);
  agreement->told = calloc(size, sizeof(bool));
  agreement->spoke = calloc(size, sizeof(bool));
  agreement->cleared = calloc(size, sizeof(bool));
  comm->errors.probes.contacts = calloc(size, sizeof *comm->errors.probes.contacts);
  comm->errors.probes.queue = calloc(size, sizeof(int));
  return comm->identity.processes && agreement->told && agreement->spoke && agreement->cleared &&
         comm->errors.probes.contacts && comm->errors.probes.queue;
}

void lcomm_failure_state_free(lcomm_comm *comm) {
  free(comm->identity.processes);
  free(comm->errors.agreement.told);
  free(comm->errors.agreement.spoke);
  free(comm->errors.agreement.cleared);
  free(comm->errors.probes.contacts);
  free(comm->errors.probes.queue);
}

const char *lcomm_comm_who(const lcomm_comm *comm, int rank, char *text, size_t size) {
  snprintf(text, size, "rank %d (host %s)", rank, comm->topo.host[rank]);
  return text;
}

/* A communicator for people: "communicator 2 (rank 0 of 4)", with its name. */
static const char *which(const lcomm_comm *comm, char *text, size_t size) {
  snprintf(text, size, "communicator %u (rank %d of %d%s%.60s)", comm->identity.number, comm->rank,
           comm->size, comm->identity.name[0] ? ", named " : "", comm->identity.name);
  return text;
}

lcomm_status lcomm_check_owner(lcomm_comm *comm, const lcomm_comm *owner, const char *call,
                               const char *object) {
  char here[160], there[160];
  if (owner == comm) {
    return LCOMM_OK;
  }
  return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                      "%s: the %s belongs to %s of this process and was given to %s; call %s with "
                      "the communicator that it belongs to",
                      call, object, which(owner, there, sizeof(there)),
                      which(comm, here, sizeof(here)), call);
}

bool lcomm_comm_speaks(const lcomm_comm *comm) {
  int first = 0;
  while (strcmp(comm->topo.host[first], comm->topo.host[comm->rank]) != 0) {
    first++;
  }
  return first == comm->rank;
}

const char *lcomm_last_error(const lcomm_comm *comm) {
  return comm && !lcomm_is_child(comm) ? comm->errors.text : lcomm_error_thread_text();
}

lcomm_status lcomm_refuse_child(const lcomm_comm *comm) {
  char who[96];
  return lcomm_error_thread(
      LCOMM_ERR_STATE,
      "%s: the communicator belongs to process %ld, which made it; this is process %ld, a forked "
      "child of it, and cannot use or destroy it. Make communicators in the process that uses "
      "them, after the fork.",
      lcomm_comm_who(comm, comm->rank, who, sizeof(who)), comm->identity.process, (long)getpid());
}

lcomm_status lcomm_refuse(lcomm_comm *comm, lcomm_status status, const char *format, ...) {
  char text[LCOMM_ERROR_MAX - 128], who[96];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  pthread_mutex_lock(&comm->errors.lock);
  snprintf(comm->errors.text, sizeof(comm->errors.text), "%s: %s",
           lcomm_comm_who(comm, comm->rank, who, sizeof(who)), text);
  pthread_mutex_unlock(&comm->errors.lock);
  lcomm_log_error(comm->errors.text);
  return status;
}

lcomm_status lcomm_refuse_null(const lcomm_comm *comm, const char *call, const char *argument) {
  if (!comm) {
    return lcomm_error_thread(LCOMM_ERR_ARGUMENT, "%s: no communicator was given", call);
  }
  LCOMM_TRY(lcomm_check_process(comm));
  lcomm_comm *refusing = (lcomm_comm *)(uintptr_t)comm; /* only its sentence changes */
  return lcomm_refuse(refusing, LCOMM_ERR_ARGUMENT, "%s: `%s` is NULL", call, argument);
}

/* The link for a message to a peer, which is filled up with zeros; NULL: there is none. */
static lcomm_transport *prepare_control(const lcomm_comm *comm, int peer, const void *message,
                                        size_t size, uint8_t bytes[LCOMM_CONTROL_SIZE]) {
  memset(bytes, 0, LCOMM_CONTROL_SIZE);
  memcpy(bytes, message, size);
  return peer == comm->rank ? NULL : lcomm_comm_link(comm, peer);
}

void lcomm_control_send(lcomm_comm *comm, int peer, const void *message, size_t size) {
  uint8_t bytes[LCOMM_CONTROL_SIZE];
  lcomm_transport *link = prepare_control(comm, peer, message, size, bytes);
  if (link) {
    link->table->control.send(link, peer, bytes);
  }
}

void lcomm_control_send_error(lcomm_comm *comm, int peer, const void *message, size_t size) {
  uint8_t bytes[LCOMM_CONTROL_SIZE];
  lcomm_transport *link = prepare_control(comm, peer, message, size, bytes);
  if (link) {
    link->table->control.send_error(link, peer, bytes);
  }
}

bool lcomm_comm_stick(lcomm_comm *comm, lcomm_status status, const char *sentence) {
  pthread_mutex_lock(&comm->errors.lock);
  bool first = atomic_load(&comm->errors.status) == LCOMM_OK;
  if (first) {
    snprintf(comm->errors.text, sizeof(comm->errors.text), "%s", sentence);
    atomic_store(&comm->errors.status, (int)status);
  }
  pthread_mutex_unlock(&comm->errors.lock);
  return first;
}

lcomm_status lcomm_fail_as(lcomm_comm *comm, lcomm_status status, int author, int culprit,
                           const char *format, ...) {
  char text[LCOMM_ERROR_MAX - 128], who[96];
  lcomm_fault fault = {.status = status, .author = author, .culprit = culprit};
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  snprintf(fault.text, sizeof(fault.text), "%s: %s", lcomm_comm_who(comm, author, who, sizeof(who)),
           text);
  return lcomm_fault_agree(comm, &fault, comm->rank);
}

static void receive_control(lcomm_comm *comm, const uint8_t *bytes) {
  int32_t kind = 0;
  memcpy(&kind, bytes, sizeof(kind));
  if (kind == LCOMM_CONTROL_ERROR) {
    lcomm_fault_receive(comm, bytes);
  } else if (kind == LCOMM_CONTROL_FINGERPRINT) {
    lcomm_fingerprint_receive(comm, bytes);
  } else if (kind == LCOMM_CONTROL_PROBE) {
    lcomm_probe_receive(comm, bytes);
  } else if (kind == LCOMM_CONTROL_ANSWER) {
    lcomm_probe_receive_answer(comm, bytes);
  } else if (kind == LCOMM_CONTROL_OFFER) {
    lcomm_peer_memory_offered(comm, bytes);
  } else if (kind == LCOMM_CONTROL_TAKE) {
    lcomm_peer_memory_taken(comm, bytes);
  }
}

lcomm_status lcomm_control_receive(lcomm_comm *comm) {
  uint8_t bytes[LCOMM_CONTROL_SIZE];
  while (lcomm_links_control_receive(&comm->links, bytes)) {
    receive_control(comm, bytes);
  }
  if (atomic_load_explicit(&comm->errors.abort_asked, memory_order_relaxed) &&
      atomic_exchange(&comm->errors.abort_asked, false)) {
    lcomm_fault fault = {
        .status = LCOMM_ERR_ABORTED, .author = comm->rank, .culprit = LCOMM_NO_CULPRIT};
    pthread_mutex_lock(&comm->errors.lock);
    snprintf(fault.text, sizeof(fault.text), "%s", comm->errors.text);
    pthread_mutex_unlock(&comm->errors.lock);
    lcomm_fault_send(comm, &fault);
  }
  return (lcomm_status)atomic_load(&comm->errors.status);
}

lcomm_status lcomm_abort(lcomm_comm *comm, const char *reason) {
  char who[96], sentence[LCOMM_ERROR_MAX];
  if (!comm) {
    return lcomm_error_thread(LCOMM_ERR_ARGUMENT, "lcomm_abort: no communicator was given");
  }
  if (lcomm_is_child(comm)) {
    return lcomm_refuse_child(comm);
  }
  snprintf(sentence, sizeof(sentence), "%s: aborted by the program: %.800s",
           lcomm_comm_who(comm, comm->rank, who, sizeof(who)),
           reason && reason[0] ? reason : "no reason given");
  if (lcomm_comm_stick(comm, LCOMM_ERR_ABORTED, sentence)) {
    atomic_store(&comm->errors.abort_asked, true);
    lcomm_log_error(sentence);
    if (comm->progress.thread) {
      lcomm_progress_thread_wake(comm->progress.thread);
    }
  }
  return LCOMM_OK;
}
