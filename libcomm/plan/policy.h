/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_PLAN_POLICY_H
#define LCOMM_PLAN_POLICY_H

/* The policy grammar: one parser for the library, its interposers, the trainer and the tools. The
 * words are described in libcomm.h under POLICY.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codecs/codec.h"
#include "libcomm/base/error.h"

enum {
  LCOMM_POLICY_MAX = 1024,        /* longest policy string, with the terminator */
  LCOMM_POLICY_EXEMPT_MAX = 32,   /* globs */
  LCOMM_POLICY_RAMP_MAX = 8,      /* stages */
  LCOMM_POLICY_RULES_MAX = 16,    /* of match= */
  LCOMM_POLICY_PATTERNS_MAX = 32, /* of all net[...] */
  LCOMM_POLICY_STEP_MAX = 4096,   /* calls of a step */
  LCOMM_POLICY_SERVERS_MAX = 64,  /* ranks, or nodes */
  LCOMM_RANK_MAX = 64,            /* of lowrank */
  LCOMM_AUTO_RANK = 4,            /* of the matrices that auto sends by low rank */
  LCOMM_POLICY_GLOB_MAX = 128     /* one pattern, with the terminator */
};

/* Which errors a choice by predicted time may make (auto:CLASS). The candidates are numbered from
 * the mildest one: 0 none, 1 none+zstd, 2 bf16, 3 int8, 4 int4+ef, 5 int2+ef, 6 sign+ef,
 * 7 lowrank:4, 8 topk:0.01+ef. Class c allows those up to c; auto.h chooses among them, and of
 * matrices auto_lowrank.h, for to others low rank does nothing. */
typedef enum lcomm_auto_class {
  LCOMM_AUTO_NONE, /* no such choice: the codec is given */
  LCOMM_AUTO_LOSSLESS,
  LCOMM_AUTO_BF16,
  LCOMM_AUTO_INT8,
  LCOMM_AUTO_INT4,
  LCOMM_AUTO_INT2,
  LCOMM_AUTO_SIGN,
  LCOMM_AUTO_LOWRANK,
  LCOMM_AUTO_TOPK,
  LCOMM_AUTO_COUNT
} lcomm_auto_class;

/* A codec as a policy says it. */
typedef struct lcomm_codec_spec {
  lcomm_format format; /* lcomm_codec_none is exact; of auto the coarsest one that is allowed */
  bool error_feedback;
  lcomm_auto_class automatic;
  uint16_t rank; /* lowrank: of the factors of a matrix, which travel by `format`; 0: no such thing.
                  * Of auto: of a matrix that may go so */
} lcomm_codec_spec;

/* One stage of a density warm-up: for so many steps this share is kept. */
typedef struct lcomm_ramp_stage {
  double density;
  uint64_t steps;
} lcomm_ramp_stage;

typedef struct lcomm_ramp {
  unsigned count; /* of stages, which are in order, after the warm-up */
  lcomm_ramp_stage stages[LCOMM_POLICY_RAMP_MAX];
} lcomm_ramp;

/* guard=: how often results are compared with exact sums, and what may be wrong with them. */
typedef struct lcomm_guard_policy {
  uint64_t steps;  /* from one check to the next; 0: without guard= */
  double limit;    /* largest relative error of what a codec without error feedback sends */
  double residual; /* with error feedback: the largest residual, in norms of the gradient */
  bool report;     /* tensors keep their codec */
} lcomm_guard_policy;

/* adam=: what travels after the warm-up is the momentum. */
typedef struct lcomm_adam_policy {
  bool onebit;      /* false: without adam= */
  double beta1;     /* of the momentum */
  uint64_t refresh; /* steps of momentum before the first exact one, 0: none follows */
} lcomm_adam_policy;

/* servers=: which ranks, or the ranks of which nodes, own all pieces, and bring no gradients. */
typedef struct lcomm_servers_policy {
  unsigned count; /* 0: without servers= */
  bool are_nodes;
  uint32_t number[LCOMM_POLICY_SERVERS_MAX]; /* ascending */
  uint32_t share[LCOMM_POLICY_SERVERS_MAX];  /* of the bytes, beside the others' */
} lcomm_servers_policy;

/* quorum=, stale= and late=: whom the sums of tensors wait for, and how long; whose sums they are.
 */
typedef struct lcomm_quorum_policy {
  uint32_t ranks;   /* quorum=K */
  uint32_t percent; /* quorum=N%; both 0: all, without quorum= */
  uint32_t late_ms; /* how long they wait for the others then, or a step for its result */
  uint32_t stale;   /* stale=N: steps that a rank may go on without a result; 0: without stale= */
  bool drops;       /* stale=N:drop */
  lcomm_servers_policy servers;
} lcomm_quorum_policy;

typedef enum lcomm_scope { LCOMM_SCOPE_TENSOR, LCOMM_SCOPE_BUCKET } lcomm_scope;

/* What a norm of clip= is of. */
typedef enum lcomm_clip_scope { LCOMM_CLIP_TENSOR, LCOMM_CLIP_GLOBAL } lcomm_clip_scope;

typedef struct lcomm_clip_policy {
  double norm; /* the largest L2 norm, 0: none */
  lcomm_clip_scope scope;
} lcomm_clip_policy;

typedef enum lcomm_algorithm {
  LCOMM_ALGO_AUTO,
  LCOMM_ALGO_RING,
  LCOMM_ALGO_DIRECT,
  LCOMM_ALGO_GATHER,
  LCOMM_ALGO_DOUBLING,
  LCOMM_ALGO_HALVING,
  LCOMM_ALGO_SERVERS /* of tensors; all else is as with AUTO */
} lcomm_algorithm;

/* Numbers from `least` to `most`, both of them allowed. */
typedef struct lcomm_bounds {
  uint64_t least, most;
} lcomm_bounds;

/* One rule of match=, or one pattern; all of it must hold. */
typedef struct lcomm_match_rule {
  lcomm_bounds size_bytes, count, ranks;
  unsigned dtypes, ops, calls;      /* a bit for each lcomm_dtype, lcomm_op, lcomm_call_kind */
  char comm[LCOMM_POLICY_GLOB_MAX]; /* name of the communicator; "": any */
  char name[LCOMM_POLICY_GLOB_MAX]; /* patterns: of the tensor or residual; "": any, or none */
} lcomm_match_rule;

/* One pattern of net[PATTERN,...]=CODEC. */
typedef struct lcomm_codec_pattern {
  lcomm_match_rule rule;
  lcomm_codec_spec codec;
} lcomm_codec_pattern;

typedef struct lcomm_policy {
  lcomm_codec_spec net, node;
  lcomm_codec_spec rack; /* between nodes of a rack, of sums on which a codec of net= acts */
  lcomm_codec_spec pipe; /* of messages between two ranks, see pipe.h */
  uint64_t min_bytes;
  uint64_t warmup_steps;
  lcomm_ramp ramp;
  double momentum;        /* of momentum correction, 0: none */
  lcomm_adam_policy adam; /* compressed momentum */
  lcomm_clip_policy clip;
  bool undo;               /* operations can be undone */
  bool discard_not_finite; /* what gives NaN or Inf is undone; implies undo */
  uint64_t bucket_bytes;
  lcomm_scope scope;
  lcomm_algorithm algorithm;
  bool checksum;
  unsigned exempt_count;
  char exempt[LCOMM_POLICY_EXEMPT_MAX][LCOMM_POLICY_GLOB_MAX];
  unsigned rule_count; /* 0: without match= */
  lcomm_match_rule rules[LCOMM_POLICY_RULES_MAX];
  unsigned pattern_count;
  lcomm_codec_pattern patterns[LCOMM_POLICY_PATTERNS_MAX]; /* the first one that fits counts */
  uint32_t step_calls;                                     /* 0: without step= */
  lcomm_guard_policy guard;
  lcomm_quorum_policy quorum;
} lcomm_policy;

/* Parse `text` (NULL or "" is the default policy). On a mistake returns
 * LCOMM_ERR_POLICY and writes into `error` one
 * sentence: the position (1-based column), what was found, what was expected,
 * an example. Never reads past the terminator; any bytes are allowed. */
lcomm_status lcomm_policy_parse(const char *text, lcomm_policy *policy, lcomm_why *error);

/* Canonical text, parses back to the same policy; equal policies give equal
 * texts. Writes at most LCOMM_POLICY_MAX bytes. */
void lcomm_policy_format(const lcomm_policy *policy, char *text);

/* Does one of the exempt globs match the whole name? `*` any run, `?` any one
 * character, no other specials. Linear in the product of the lengths. */
bool lcomm_policy_exempts(const lcomm_policy *policy, const char *name);

bool lcomm_codec_spec_equal(const lcomm_codec_spec *a, const lcomm_codec_spec *b);

/* Does the choice leave all bits as they are? */
static inline bool lcomm_codec_spec_is_exact(const lcomm_codec_spec *choice) {
  return choice->format.codec->id == LCOMM_CODEC_NONE && choice->rank == 0;
}

/* Does lowrank:RANK act on a matrix of this shape? It has to send half of its elements or fewer. A
 * rank of 0 acts on none, and a tensor without a shape has 0 rows and columns. */
bool lcomm_lowrank_gains(unsigned rank, uint64_t rows, uint64_t columns);

/* The codecs between nodes: 0 is that of net=, those of the patterns follow. */
static inline unsigned lcomm_policy_net_count(const lcomm_policy *policy) {
  return 1 + policy->pattern_count;
}

static inline const lcomm_codec_spec *lcomm_policy_net_codec(const lcomm_policy *policy,
                                                             unsigned index) {
  return index == 0 ? &policy->net : &policy->patterns[index - 1].codec;
}

/* Is there a quorum=? How many of so many ranks does it need? More than there are where it names
 * more; without it all. */
static inline bool lcomm_policy_has_quorum(const lcomm_policy *policy) {
  return policy->quorum.ranks > 0 || policy->quorum.percent > 0;
}
int lcomm_policy_quorum(const lcomm_quorum_policy *quorum, int ranks);

static inline bool lcomm_policy_has_servers(const lcomm_policy *policy) {
  return policy->quorum.servers.count > 0;
}

/* Are tensors summed by owners of their pieces? */
static inline bool lcomm_policy_has_owners(const lcomm_policy *policy) {
  return lcomm_policy_has_quorum(policy) || policy->quorum.stale > 0 ||
         lcomm_policy_has_servers(policy);
}

/* Text of a codec as a policy says it, e.g. "topk:0.01+ef"; returns text. */
const char *lcomm_codec_spec_format(const lcomm_codec_spec *choice, char *text, size_t size);

/* Parse one CODEC alone, as it stands after "net=" in a policy: int4, int2 and sign
 * have error feedback unless it is taken away. Writes *choice on success only; on a mistake
 * the sentence is as of lcomm_policy_parse, beginning with "codec, column N". */
lcomm_status lcomm_format_parse(const char *text, lcomm_codec_spec *choice, lcomm_why *error);

/* A candidate, as a policy would name it. */
lcomm_codec_spec lcomm_auto_candidate(int candidate);

/* The choice that stands for "auto:CLASS" in a policy, for a class other than NONE. Its codec is
 * the coarsest one of values, so that of the class lowrank is that of the one before. */
lcomm_codec_spec lcomm_auto_spec(lcomm_auto_class automatic);

/* The mildest class that allows this choice, whatever its options; COUNT where none does. */
lcomm_auto_class lcomm_auto_class_of(const lcomm_codec_spec *choice);

/* Does a codec of the policy follow from predicted times? */
bool lcomm_policy_is_automatic(const lcomm_policy *policy);

/* "lossless", "bf16", "int8", "int4", "int2", "sign", "lowrank" or "topk". */
const char *lcomm_auto_class_name(lcomm_auto_class automatic);

const char *lcomm_algorithm_name(lcomm_algorithm algorithm);

#endif
