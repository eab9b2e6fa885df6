/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Answers to long messages. The receiver writes one into the slot of the message, and then how
 * many it has given. The sender looks at that number alone: at the slots only when it has changed,
 * so what it looks at grows with messages, and not with how often it looks. */

#include "libcomm/transport/shm/shm_internal.h"

void lcomm_shm_answer(const lcomm_shm_record *record, uint32_t answer) {
  lcomm_shm_peer *peer = record->peer;
  atomic_store_explicit(&peer->there->answers[record->slot],
                        (uint64_t)record->generation << 2 | answer, memory_order_release);
  atomic_store_explicit(&peer->there->answered, ++peer->answers, memory_order_seq_cst);
  lcomm_shm_wake(peer);
}

static uint64_t answer_of(const lcomm_shm_record *record) {
  return atomic_load_explicit(&record->peer->here->answers[record->slot], memory_order_seq_cst);
}

bool lcomm_shm_is_answered(const lcomm_shm_record *record) {
  return answer_of(record) == ((uint64_t)record->generation << 2 | LCOMM_SHM_ANSWER_DONE);
}

static void take_answer(lcomm_shm *t, lcomm_shm_record *record) {
  if (record->state == LCOMM_SHM_PUBLISHED && lcomm_shm_is_answered(record)) {
    t->news |= !record->detached;
    lcomm_shm_end_send(t, record);
    return;
  }
  t->news |= lcomm_shm_begin_stream(record);
}

bool lcomm_shm_take_answers(lcomm_shm *t, lcomm_shm_peer *peer) {
  uint32_t answered = atomic_load_explicit(&peer->here->answered, memory_order_seq_cst);
  uint32_t left = peer->sends.used_count;
  if (answered == peer->sends.answers_seen) {
    return false;
  }
  peer->sends.answers_seen = answered;
  for (int i = 0; left > 0; i++) {
    for (uint64_t bits = peer->sends.used[i]; bits; bits &= bits - 1, left--) {
      take_answer(t, peer->sends.records[64 * i + __builtin_ctzll(bits)]);
    }
  }
  return true;
}
