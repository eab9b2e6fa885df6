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

static inline lcomm_status try_open_by(forked *self, const lcomm_transport_table *v,
                                       double timeout_s, lcomm_transport **t, lcomm_why *why) {
  lcomm_transport_setup setup = setup_of(self, timeout_s);
  *t = NULL;
  why->text[0] = '\0';
  return v->open(&setup, t, why);
}

static inline party open_party_by(forked *self, const lcomm_transport_table *v, double timeout_s) {
  lcomm_why why;
  party p = {self, NULL, v};
  lcomm_status status = try_open_by(self, v, timeout_s, &p.t, &why);
  forked_require(self, status == LCOMM_OK, "open: %s", why.text);
  return p;
}

#endif
