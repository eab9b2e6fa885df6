/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_PLAN_POLICY_INTERNAL_H
#define LCOMM_PLAN_POLICY_INTERNAL_H

/* What the parser and the formatter of policies share. */

#include <string.h>

#include "libcomm/base/writer.h"
#include "libcomm/plan/policy.h"

enum {
  LCOMM_SCOPE_COUNT = 2,
  LCOMM_ALGORITHM_COUNT = 7,
  LCOMM_QUOTE_MAX = 64,      /* a quoted piece of a policy, with the terminator */
  LCOMM_CODEC_TEXT_MAX = 64, /* the longest text of a codec, likewise */
  LCOMM_DECIMAL_TEXT_MAX = 48
};

extern const lcomm_policy lcomm_policy_default;
extern const char *const lcomm_scope_names[LCOMM_SCOPE_COUNT];         /* by lcomm_scope */
extern const char *const lcomm_algorithm_names[LCOMM_ALGORITHM_COUNT]; /* by lcomm_algorithm */

/* A piece of the text that is read. */
typedef struct lcomm_span {
  const char *text;
  size_t length;
} lcomm_span;

static inline bool lcomm_span_is(lcomm_span s, const char *word) {
  return s.length == strlen(word) && memcmp(s.text, word, s.length) == 0;
}

static inline bool lcomm_span_begins(lcomm_span s, const char *word) {
  return s.length >= strlen(word) && memcmp(s.text, word, strlen(word)) == 0;
}

/* The leading part of `s` before the first byte of `stops`. */
static inline lcomm_span lcomm_span_before(lcomm_span s, const char *stops) {
  size_t i = 0;
  while (i < s.length && (s.text[i] == '\0' || !strchr(stops, s.text[i]))) {
    i++;
  }
  return (lcomm_span){s.text, i};
}

static inline lcomm_span lcomm_span_after(lcomm_span s, size_t skip) {
  return (lcomm_span){s.text + skip, s.length - skip};
}

/* Take the next piece off a list that `stops` separate: an empty list is one empty piece. False
 * behind the last piece. */
static inline bool lcomm_span_next(lcomm_span *list, const char *stops, lcomm_span *piece) {
  if (!list->text) {
    return false;
  }
  *piece = lcomm_span_before(*list, stops);
  *list = piece->length < list->length ? lcomm_span_after(*list, piece->length + 1)
                                       : (lcomm_span){NULL, 0};
  return true;
}

/* What a sentence about a mistake needs to know. It ends with the example
 * KEY=EXAMPLE, or EXAMPLE where a codec is read alone and there is no key. */
typedef struct lcomm_policy_reader {
  const char *text; /* columns are counted from here */
  const char *key;  /* NULL: a codec alone */
  const char *example;
  lcomm_why *error;
} lcomm_policy_reader;

/* Write the sentence of a mistake at `at`; returns LCOMM_ERR_POLICY. */
__attribute__((format(printf, 3, 4))) lcomm_status
lcomm_policy_fail(lcomm_policy_reader *r, const char *at, const char *format, ...);

/* 'text' for a sentence: printable ASCII as it is, other bytes as \xNN, long
 * texts cut. Returns `out`, which holds LCOMM_QUOTE_MAX bytes. */
const char *lcomm_policy_quote(lcomm_span s, char *out);

/* lcomm_policy_fail() at `piece` with the sentence `before` 'piece' `after`. */
lcomm_status lcomm_policy_refuse(lcomm_policy_reader *r, const char *before, lcomm_span piece,
                                 const char *after);

/* Does all of `s` say an integer of at most `most`? *number is meaningless if not. */
bool lcomm_policy_read_whole(lcomm_span s, uint64_t most, uint64_t *number);

/* All of `value` as a size. *bytes is meaningless on a mistake. */
lcomm_status lcomm_policy_read_size(lcomm_policy_reader *r, lcomm_span value, uint64_t *bytes);

/* Write a size in the largest unit that it is a multiple of. */
void lcomm_policy_write_size(lcomm_writer *w, uint64_t bytes);

/* Is there room for one more of these things, of which there are `count`? */
lcomm_status lcomm_policy_check_room(lcomm_policy_reader *r, lcomm_span piece, const char *things,
                                     unsigned count, unsigned most);

/* Index of `value` in `names`, or -1. */
int lcomm_policy_find_name(lcomm_span value, const char *const *names, int count);

/* ---------------------------------------------------------------- policy_glob.c */

/* All of `text` as a pattern; `shape` is what was expected if it is empty. Writes
 * LCOMM_POLICY_GLOB_MAX bytes, zeros behind the pattern. */
lcomm_status lcomm_policy_read_glob(lcomm_policy_reader *r, lcomm_span text, const char *shape,
                                    char *glob);

/* Does the pattern match the whole name? */
bool lcomm_policy_glob_matches(const char *glob, const char *name);

/* ----------------------------------------------------------------- policy_rule.c */

/* All of `text` as a rule of match=, or as a pattern of net[...], where a glob alone is a name.
 * Written again. */
lcomm_status lcomm_policy_read_rule(lcomm_policy_reader *r, lcomm_span text,
                                    lcomm_match_rule *rule);
lcomm_status lcomm_policy_read_pattern(lcomm_policy_reader *r, lcomm_span text,
                                       lcomm_match_rule *rule);
void lcomm_policy_write_rule(lcomm_writer *w, const lcomm_match_rule *rule);

/* ---------------------------------------------------------------- policy_match.c */

/* The value of match=, read into `policy` and written again. */
lcomm_status lcomm_policy_read_match(lcomm_policy_reader *r, lcomm_span value,
                                     lcomm_policy *policy);
void lcomm_policy_write_match(lcomm_writer *w, const lcomm_policy *policy);

/* A word net[PATTERN,...]=CODEC likewise; all of them are written. */
bool lcomm_policy_has_patterns(lcomm_span word);
lcomm_status lcomm_policy_read_patterns(lcomm_policy_reader *r, lcomm_span word,
                                        lcomm_policy *policy);
void lcomm_policy_write_patterns(lcomm_writer *w, const lcomm_policy *policy);

/* ---------------------------------------------------------------- policy_guard.c */

/* The value of guard=, read and written again. */
lcomm_status lcomm_policy_read_guard(lcomm_policy_reader *r, lcomm_span value,
                                     lcomm_guard_policy *guard);
void lcomm_policy_write_guard(lcomm_writer *w, const lcomm_guard_policy *guard);

/* ----------------------------------------------------------------- policy_adam.c */

/* The value of adam=, read and written again; what contradicts it, as lcomm_policy_conflict says.
 */
lcomm_status lcomm_policy_read_adam(lcomm_policy_reader *r, lcomm_span value,
                                    lcomm_adam_policy *adam);
void lcomm_policy_write_adam(lcomm_writer *w, const lcomm_adam_policy *adam);
const char *lcomm_policy_adam_conflict(const lcomm_policy *policy);

/* --------------------------------------------------------------- policy_quorum.c */

/* The values of quorum=, stale= and late=, read and written again; what contradicts these, and
 * algo=servers; which of the words asks for owners of pieces. */
lcomm_status lcomm_policy_read_quorum(lcomm_policy_reader *r, lcomm_span value,
                                      lcomm_quorum_policy *quorum);
lcomm_status lcomm_policy_read_stale(lcomm_policy_reader *r, lcomm_span value,
                                     lcomm_quorum_policy *quorum);
lcomm_status lcomm_policy_read_late(lcomm_policy_reader *r, lcomm_span value,
                                    lcomm_quorum_policy *quorum);
void lcomm_policy_write_quorum(lcomm_writer *w, const lcomm_quorum_policy *quorum);
const char *lcomm_policy_quorum_conflict(const lcomm_policy *policy);
const char *lcomm_policy_owners_key(const lcomm_policy *policy);

/* -------------------------------------------------------------- policy_servers.c */

/* The value of servers=, read and written again; is it there where algo=servers is? */
lcomm_status lcomm_policy_read_servers(lcomm_policy_reader *r, lcomm_span value,
                                       lcomm_servers_policy *servers);
void lcomm_policy_write_servers(lcomm_writer *w, const lcomm_servers_policy *servers);
const char *lcomm_policy_servers_conflict(const lcomm_policy *policy, const char **key);

/* -------------------------------------------------------------- policy_preset.c */

enum { LCOMM_PRESET_WORDS_MAX = 4 };

/* What net=NAME stands for. A word that the policy gives itself is not taken from here, and
 * patterns come after those of the policy. */
typedef struct lcomm_policy_preset {
  const char *name;                          /* CODEC:PRESET */
  const char *words[LCOMM_PRESET_WORDS_MAX]; /* NULL behind the last one */
} lcomm_policy_preset;

/* The preset of that name, or NULL. */
const lcomm_policy_preset *lcomm_policy_find_preset(lcomm_span value);

/* --------------------------------------------------------------- policy_codec.c */

typedef enum lcomm_codec_place {
  LCOMM_ON_NET,
  LCOMM_IN_NODE,
  LCOMM_IN_RACK,
  LCOMM_ON_PIPE
} lcomm_codec_place;

/* One CODEC of the grammar. *choice is written on success only. */
lcomm_status lcomm_policy_read_codec(lcomm_policy_reader *r, lcomm_span value,
                                     lcomm_codec_place place, lcomm_codec_spec *choice);

/* ----------------------------------------------------------------- policy_pipe.c */

/* May pipe= name this codec? */
bool lcomm_policy_pipe_takes(const char *name);
lcomm_status lcomm_policy_check_pipe(lcomm_policy_reader *r, lcomm_span value, lcomm_span name);

/* ----------------------------------------------------------------- policy_rack.c */

/* May rack= name this codec? Its endings are not looked at. */
bool lcomm_policy_rack_takes(lcomm_span name);
lcomm_status lcomm_policy_check_rack(lcomm_policy_reader *r, lcomm_span value, lcomm_span name);

/* Why it cannot have error feedback of its own. */
lcomm_status lcomm_policy_fail_in_rack(lcomm_policy_reader *r, lcomm_span value);

/* -------------------------------------------------------------- policy_lowrank.c */

/* All of `value`, which begins with the name lowrank. *choice is written on success only. */
lcomm_status lcomm_policy_read_lowrank(lcomm_policy_reader *r, lcomm_span value,
                                       lcomm_codec_place place, lcomm_codec_spec *choice);
void lcomm_policy_write_lowrank(lcomm_writer *w, const lcomm_codec_spec *choice);

/* Words that contradict each other: NULL if there are none, else what is wrong
 * and what is expected. *key is the word to blame, one that was given. */
const char *lcomm_policy_conflict(const lcomm_policy *policy, const char **key);

#endif
