/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_TRANSPORT_FORKED_PARTY_H
#define LCOMM_TESTS_TRANSPORT_FORKED_PARTY_H

/* A transport between forked ranks, without a communicator. */

#include "libcomm/transport/transport.h"
#include "tests/support/forked.h"

/* A rank and its end of the transport. */
typedef struct party {
  forked *self;
  lcomm_transport *t;
  const lcomm_transport_table *v;
} party;

static inline lcomm_transport_setup setup_of(forked *self, double timeout_s) {
  return (lcomm_transport_setup){.rank = self->rank,
                                 .size = self->size,
                                 .identities = self->identities,
                                 .bootstrap = &self->boot,
                                 .timeout_s = timeout_s};
}

#endif
