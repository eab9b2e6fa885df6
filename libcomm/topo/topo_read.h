/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOPO_TOPO_READ_H
#define LCOMM_TOPO_TOPO_READ_H

/* Words of the text form of a topology, and the sentences about wrong ones. The
 * text comes from a file and may hold anything. */

#include "libcomm/topo/topo_internal.h"

enum { LCOMM_TOPO_RANKS_MAX = 1 << 20 };

typedef struct lcomm_topo_word {
  const char *text;
  size_t length; /* 0 at the end of a line */
} lcomm_topo_word;

/* A pair with where it came from: the same may be said only once. */
typedef struct lcomm_topo_said {
  lcomm_topo_pair pair;
  int line;
} lcomm_topo_said;

typedef struct lcomm_topo_reader {
  const char *at;
  int line;            /* 1-based */
  const char *example; /* of the kind of line that is read */
  int ranks;           /* seen so far */
  lcomm_topo_said *said;
  int said_count, said_room;
  char (*racks)[LCOMM_RACK_MAX]; /* of each node, "" so far; NULL: no line names one */
  lcomm_why *error;
} lcomm_topo_reader;

/* Write the sentence, with the line. Returns WIRE. */
__attribute__((format(printf, 2, 3))) lcomm_status lcomm_topo_wrong(const lcomm_topo_reader *r,
                                                                    const char *format, ...);
lcomm_status lcomm_topo_unexpected(const lcomm_topo_reader *r, lcomm_topo_word found,
                                   const char *expected);

/* The next word of this line. */
lcomm_topo_word lcomm_topo_next(lcomm_topo_reader *r);
bool lcomm_topo_word_is(lcomm_topo_word w, const char *text);

/* A number below `bound`, or -1. */
int lcomm_topo_word_number(lcomm_topo_word w, int bound);

/* Read the next word, which must be this. */
lcomm_status lcomm_topo_expect(lcomm_topo_reader *r, const char *text);

/* A line about devices or links, whose first word is `kind`; all nodes are
 * known. */
lcomm_status lcomm_topo_load_more(lcomm_topo_reader *r, lcomm_topo_word kind, lcomm_topo *topo);

/* A line about a rack, behind that word; all lines are read: every node has a rack, or none has. */
lcomm_status lcomm_topo_load_rack(lcomm_topo_reader *r, lcomm_topo *topo);
lcomm_status lcomm_topo_end_racks(lcomm_topo_reader *r, lcomm_topo *topo);

/* All lines are read: what was said of pairs becomes the topology's. */
lcomm_status lcomm_topo_take_pairs(lcomm_topo_reader *r, lcomm_topo *topo);

#endif
