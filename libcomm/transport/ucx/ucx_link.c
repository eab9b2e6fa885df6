/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* How the links come to be: addresses, endpoints, and which of them count. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/base/clock.h"
#include "libcomm/transport/links.h"
#include "libcomm/transport/ucx/ucx_addresses.h"
#include "libcomm/transport/ucx/ucx_internal.h"

#define MEETING_S 20.0 /* a link that does not answer for so long is none */
#define UNLINK_S 0.2   /* to cut what is no link */

/* What all ranks said of their addresses, see ucx_addresses.h. */
typedef struct address_book {
  uint8_t *labels, *rows;
  size_t width; /* of a row */
} address_book;

/* A label, and the address where it is short enough. */
enum { SHORT_ADDRESS = LCOMM_UCX_OFFER_SIZE - LCOMM_UCX_LABEL_SIZE };

size_t lcomm_ucx_short_address = SHORT_ADDRESS;

/* -------------------------------------------------------- addresses */

static bool address_of(lcomm_ucx_transport *t, ucp_worker_attr_t *own, lcomm_why *why) {
  own->field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS | UCP_WORKER_ATTR_FIELD_ADDRESS_FLAGS;
  own->address_flags = UCP_WORKER_ADDRESS_FLAG_NET_ONLY;
  ucs_status_t status = lcomm_ucx.ucp_worker_query(t->place.worker, own);
  if (status != UCS_OK) {
    lcomm_why_set(why, LCOMM_ERR_TRANSPORT, "UCX has no address: %s",
                  lcomm_ucx.ucs_status_string(status));
  }
  return status == UCS_OK;
}

static bool gather(const lcomm_bootstrap *bootstrap, const void *own, void *all, size_t size) {
  return bootstrap->allgather(bootstrap->context, own, all, size) == 0;
}

/* Labels, with the short addresses behind them. */
static bool exchange_labels(const lcomm_bootstrap *bootstrap, const ucp_worker_attr_t *own,
                            address_book *book) {
  size_t size = (size_t)bootstrap->world_size, length = own->address_length;
  uint8_t offer[LCOMM_UCX_OFFER_SIZE] = {0}, *offers = calloc(size, sizeof(offer));
  lcomm_ucx_label_pack(own->address, length, offer);
  if (length > 0 && length <= lcomm_ucx_short_address) {
    memcpy(offer + LCOMM_UCX_LABEL_SIZE, own->address, length);
  }
  book->labels = calloc(size, LCOMM_UCX_LABEL_SIZE);
  book->rows = calloc(size, SHORT_ADDRESS);
  book->width = SHORT_ADDRESS;
  bool done =
      offers && book->labels && book->rows && gather(bootstrap, offer, offers, sizeof(offer));
  for (size_t rank = 0; done && rank < size; rank++) {
    const uint8_t *it = offers + rank * sizeof(offer);
    memcpy(book->labels + rank * LCOMM_UCX_LABEL_SIZE, it, LCOMM_UCX_LABEL_SIZE);
    memcpy(book->rows + rank * SHORT_ADDRESS, it + LCOMM_UCX_LABEL_SIZE, SHORT_ADDRESS);
  }
  free(offers);
  return done;
}

/* An allgather, and another one where some rank's address is long, whatever this rank has. A rank
 * without an address says so. False when the bootstrap or memory failed. */
static bool exchange(const lcomm_bootstrap *bootstrap, const ucp_worker_attr_t *own,
                     address_book *book) {
  size_t size = (size_t)bootstrap->world_size, length = own->address_length;
  if (!exchange_labels(bootstrap, own, book)) {
    return false;
  }
  size_t width = lcomm_ucx_addresses_width(book->labels, bootstrap->world_size);
  if (width <= lcomm_ucx_short_address) {
    return true;
  }
  free(book->rows);
  book->width = width;
  uint8_t *row = calloc(1, width);
  book->rows = calloc(size, width);
  bool done = row && book->rows;
  if (done && length > 0 && length <= width) { /* longer: its label was damaged on the way */
    memcpy(row, own->address, length);
  }
  done = done && gather(bootstrap, row, book->rows, width);
  free(row);
  return done;
}

static void forget_book(address_book *book) {
  free(book->labels);
  free(book->rows);
}

/* ---------------------------------------------------------- agreement */

/* The device of a link, such as "tcp/eth0"; "" when UCX does not say. */
static void name_device(const lcomm_ucx_peer *peer, char *name, size_t size) {
  char *text = NULL, *found;
  size_t length = 0;
  name[0] = '\0';
  FILE *stream = peer->endpoint ? open_memstream(&text, &length) : NULL;
  if (!stream) {
    return;
  }
  lcomm_ucx.ucp_ep_print_info(peer->endpoint, stream);
  fclose(stream);
  /* a line such as "lane[0]:  1:tcp/eth0.0 md[1] ..." */
  found = text ? strstr(text, "lane[0]:") : NULL;
  found = found ? strchr(found + strlen("lane[0]:"), ':') : NULL;
  if (found) {
    snprintf(name, size, "%.*s", (int)strcspn(found + 1, ". \n"), found + 1);
  }
  free(text);
}

/* Is there a link, or will there be one? */
static bool is_open(const lcomm_ucx_peer *peer) {
  return peer->endpoint || peer->address;
}

/* Remember why a link is none; the first reason is kept. */
static void explain(lcomm_ucx_transport *t, int rank) {
  char device[64], what[160];
  const lcomm_ucx_peer *peer = &t->peers[rank];
  name_device(peer, device, sizeof(device));
  const char *reason = peer->failed != UCS_OK ? lcomm_ucx.ucs_status_string(peer->failed)
                       : is_open(peer)        ? "the other side cannot reach this rank"
                                              : "it has no address, or a damaged one came";
  snprintf(what, sizeof(what), "no link%s%s: %s; LCOMM_UCX_NET_DEVICES names devices to use",
           device[0] ? " over " : "", device, reason);
  if (t->base.why[0] == '\0') {
    lcomm_ucx_blame(t, rank, what);
  }
}

/* Nothing is to be done for a peer without an address, nor where others have the link. */
static void connect_to(lcomm_ucx_transport *t, const address_book *book, int rank) {
  const uint8_t *address = lcomm_ucx_address_find(book->labels, book->rows, book->width, rank);
  if (!address || t->peers[rank].elsewhere) {
    return;
  }
  if (lcomm_ucx_is_linked_at_once(t->rank, rank, t->size)) {
    lcomm_ucx_connect(t, rank, address);
  } else if (!lcomm_ucx_connect_later(t, rank, address,
                                      lcomm_ucx_address_size(book->labels, rank))) {
    t->peers[rank].failed = UCS_ERR_NO_MEMORY;
  }
}

static void connect_all(lcomm_ucx_transport *t, const address_book *book, double timeout_s) {
  double limit_s = timeout_s < MEETING_S ? timeout_s : MEETING_S;
  for (int i = 0; i < t->size; i++) {
    if (i != t->rank) {
      connect_to(t, book, i);
    }
  }
  lcomm_ucx_meet(t, lcomm_clock_s() + limit_s);
}

static bool all_reached(const unsigned char *all, int size) {
  for (int rank = 0; rank < size; rank++) {
    for (int other = 0; other < size; other++) {
      if (rank != other && all[(size_t)rank * (size_t)size + (size_t)other] != 1) {
        return false;
      }
    }
  }
  return true;
}

/* Of every pair both must have reached the other. One allgather, two where somebody has reached
 * some peers and others not. reached: as in lcomm_ucx_link_all. */
static bool agree(lcomm_ucx_transport *t, const lcomm_transport_setup *setup,
                  unsigned char **reached) {
  const lcomm_bootstrap *bootstrap = setup->bootstrap;
  int size = bootstrap->world_size;
  unsigned char *mine = calloc((size_t)size, 1), *all = calloc((size_t)size, (size_t)size);
  bool done = mine && all;
  for (int i = 0; done && t && i < size; i++) {
    mine[i] = t->peers[i].reached;
  }
  done = done && lcomm_links_gather_reached(bootstrap, mine, size, setup->rank, all);
  if (setup->agreed) {
    *setup->agreed = done && all_reached(all, size) ? LCOMM_AGREED_ALL : LCOMM_AGREED_NOTHING;
  }
  for (int i = 0; t && i < size; i++) {
    t->peers[i].reached = done && mine[i] && all[(size_t)i * (size_t)size + (size_t)t->rank];
  }
  free(mine);
  *reached = done ? all : NULL;
  if (!done) {
    free(all);
  }
  return done;
}

/* Cut what is no link; false when none is left. */
static bool keep_reached(lcomm_ucx_transport *t) {
  double deadline_s = lcomm_clock_s() + UNLINK_S;
  bool any = false;
  for (int i = 0; i < t->size; i++) {
    any = any || t->peers[i].reached;
    if (i != t->rank && !t->peers[i].reached && !t->peers[i].elsewhere) {
      explain(t, i);
      lcomm_ucx_unlink(t, i, deadline_s);
    }
  }
  return any;
}

lcomm_status lcomm_ucx_link_all(lcomm_ucx_transport *t, const lcomm_transport_setup *setup,
                                unsigned char **reached, lcomm_why *why) {
  ucp_worker_attr_t own = {0};
  address_book book = {0};
  bool known = t && address_of(t, &own, why);
  bool done = exchange(setup->bootstrap, &own, &book);
  if (done && known) {
    connect_all(t, &book, setup->timeout_s);
  }
  if (known) {
    lcomm_ucx.ucp_worker_release_address(t->place.worker, own.address);
  }
  forget_book(&book);
  done = agree(t, setup, reached) && done;
  if (!done) {
    return lcomm_why_set(why, LCOMM_ERR_TRANSPORT, "the bootstrap failed, or memory ran out");
  }
  if (known && !keep_reached(t)) {
    return lcomm_why_set(why, LCOMM_ERR_TRANSPORT, "%s", t->base.why);
  }
  return known ? LCOMM_OK : LCOMM_ERR_TRANSPORT;
}
