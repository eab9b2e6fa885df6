/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_PLAN_PLAN_H
#define LCOMM_PLAN_PLAN_H

/* A plan: which schedule, which codec for each stage, how many chunks. It is made once for a shape
 * and never changes. It is the same on all ranks because it depends only on what is equal on all
 * ranks: the topology, the policy, and the arguments of the collective.
 */

#include "codecs/codec_topk.h"
#include "libcomm/device/memory_location.h"
#include "libcomm/plan/policy.h"
#include "libcomm/sched/builders.h"

typedef enum lcomm_collective {
  LCOMM_COLLECTIVE_ALLREDUCE,
  LCOMM_COLLECTIVE_REDUCE_SCATTER,
  LCOMM_COLLECTIVE_ALLGATHER,
  LCOMM_COLLECTIVE_BROADCAST,
  LCOMM_COLLECTIVE_BARRIER,
  LCOMM_COLLECTIVE_ALLGATHERV,
  LCOMM_COLLECTIVE_ALLTOALL,
  LCOMM_COLLECTIVE_REDUCE_SCATTERV,
  LCOMM_COLLECTIVE_COUNT
} lcomm_collective;

const char *lcomm_collective_name(lcomm_collective collective);

/* Does every rank receive a part of the sum? */
static inline bool lcomm_collective_scatters(lcomm_collective collective) {
  return collective == LCOMM_COLLECTIVE_REDUCE_SCATTER ||
         collective == LCOMM_COLLECTIVE_REDUCE_SCATTERV;
}

/* Does it move bytes, and sum nothing? Its plans are plain. */
static inline bool lcomm_collective_moves(lcomm_collective collective) {
  return collective == LCOMM_COLLECTIVE_ALLGATHER || collective == LCOMM_COLLECTIVE_ALLGATHERV ||
         collective == LCOMM_COLLECTIVE_ALLTOALL || collective == LCOMM_COLLECTIVE_BROADCAST;
}

/* Does a request of it have a count for each rank? */
static inline bool lcomm_collective_has_parts(lcomm_collective collective) {
  return collective == LCOMM_COLLECTIVE_ALLGATHERV ||
         collective == LCOMM_COLLECTIVE_REDUCE_SCATTERV;
}

/* Bytes of a vector at most: no process has addresses for more. */
#define LCOMM_VECTOR_SIZE_MAX (UINT64_C(1) << 47)

typedef struct lcomm_plan_request {
  lcomm_collective collective;
  /* Elements as the caller counts them: of the whole vector for all-reduce
   * and broadcast, of one rank's segment for reduce-scatter, all-gather and
   * all-to-all, of all parts together for uneven ones. */
  uint64_t count;
  lcomm_dtype dtype;
  lcomm_op op;                    /* of sums; an average is a sum here */
  int root;                       /* of a broadcast */
  bool in_place;                  /* all-to-all: the send buffer is the receive buffer */
  const uint64_t *part_counts;    /* uneven parts: elements of each rank; copied */
  lcomm_memory_location location; /* of the buffers */
  bool error_feedback; /* the data has an identity that lasts (a bucket of tensors, a call with a
                        * residual)
                        */
  bool exact;          /* whatever the policy says: warm-up, exempt tensors */
  double density;      /* of top-k in this stage of a density warm-up; 0: the policy's */
  /* Between nodes, of tensors and of a residual with a name, as lcomm_eligibility_of_name() says.
   * Zero: the policy is asked about a call of this count. */
  lcomm_codec_spec net;
  const char *name; /* of the communicator, for plain calls; NULL: "" */
  /* Where tensors end inside the vector, ascending; for top-k per tensor.
   * Copied. 0 segments: one segment. */
  const uint64_t *segment_ends;
  size_t segments;
  const lcomm_allreduce_shape *shape; /* of an all-reduce, whatever the rules say; NULL: they say */
} lcomm_plan_request;

/* Payload bytes of a slot. */
typedef struct lcomm_slot_size {
  size_t bound;  /* exact for dense codecs, the most for top-k */
  size_t share;  /* the same for sums over slots: the slots of one selection do not all hold the
                  * most */
  size_t memory; /* what it has of its own: 0 for windows into the vector; of slots in one place the
                  * first has the most of all */
} lcomm_slot_size;

/* A codec between nodes that was chosen by predicted time. */
typedef struct lcomm_plan_auto {
  lcomm_auto_class allowed; /* NONE: the codec was given */
  int candidate;            /* see policy.h */
} lcomm_plan_auto;

typedef struct lcomm_plan {
  lcomm_collective collective;
  lcomm_dtype dtype;
  int root;
  uint64_t count;        /* as requested */
  uint64_t vector_count; /* elements in the vector, see element_size */
  /* What the vector is made of: the caller's own elements (plain), or float32
   * for sums of 16-bit types and for sums that go through codecs. */
  size_t element_size;
  bool plain;           /* no codec: payloads are copies of elements of `dtype` */
  lcomm_op op;          /* SUM (of averages, too), MIN or MAX */
  unsigned ops;         /* the callers' operations that it is for, a bit for each */
  uint64_t input_count; /* all-to-all: the first elements of the vector are the caller's send
                           buffer, those behind are the receive buffer; else 0 */
  bool in_place;        /* as requested; ranks may differ in it */
  lcomm_memory_location location; /* likewise */
  uint64_t *part_counts;          /* of uneven parts, else NULL */
  bool error_feedback;            /* as requested */
  bool lossy; /* sums go through a codec that does not carry the caller's elements exactly */
  lcomm_codec_spec stages[LCOMM_STAGE_COUNT];
  lcomm_plan_auto automatic;
  bool checksum;
  lcomm_allreduce_shape shape; /* of an all-reduce; chunks of a broadcast, exchange (direct or
                                  ring; doubling) of a reduce-scatter and an all-gather */
  lcomm_schedule schedule;     /* mine, linked and verified */
  lcomm_slot_size *slot_sizes; /* of each slot */
  uint64_t *segment_ends;
  size_t segments;
  uint64_t hash;    /* equal plans on all ranks have equal hashes */
  char reason[512]; /* why this one, for people */
} lcomm_plan;

/* Select, build, link and verify. `rank` is the rank whose schedule is made. On failure a sentence
 * is written into why. ARGUMENT, MEMORY, INTERNAL. Free with lcomm_plan_destroy (NULL
 * ok). */
lcomm_status lcomm_plan_create(const lcomm_plan_request *request, const lcomm_policy *policy,
                               const lcomm_topo *topo, int rank, lcomm_plan **plan, lcomm_why *why);
void lcomm_plan_destroy(lcomm_plan *plan);

/* Give all slots memory of their own, where some are windows into the vector: then fewer steps wait
 * for others. MEMORY. */
lcomm_status lcomm_plan_part_slots(lcomm_plan *plan);

/* Was this plan made for that request, of a plain call? (What only tensors have,
 * exemption, density and segments, is not compared, nor the communicator's name.) */
bool lcomm_plan_fits(const lcomm_plan *plan, const lcomm_plan_request *request);

/* A hash of what lcomm_plan_fits compares: equal for requests of one shape on `ranks`
 * ranks. */
uint64_t lcomm_plan_key(const lcomm_plan_request *request, int ranks);

/* What a run of this plan is charged in a cache, in bytes: about what it holds, the
 * same on all ranks and wherever their buffers are. */
uint64_t lcomm_plan_charge(const lcomm_plan *plan);

/* Has a process addresses for the vector of this request? If not, no size
 * computed from its counts means anything. */
bool lcomm_plan_fits_memory(const lcomm_plan_request *request, int ranks);

/* Memory that a run needs besides its slots, in bytes; 0 where the caller's
 * buffers, or a bucket, serve: a vector, and a copy of the input of an
 * all-to-all in place. */
size_t lcomm_plan_vector_size(const lcomm_plan *plan);
size_t lcomm_plan_input_size(const lcomm_plan *plan);

/* The operation of a plan: SUM for an average, too, else the operation itself. */
lcomm_op lcomm_plan_op(lcomm_op op);

/* The part of the vector that a rank gives to an all-gather, or receives of a sum: all of it
 * for an all-reduce. */
lcomm_span lcomm_plan_part(const lcomm_plan *plan, int rank);

/* What the vector of a sum of `dtype` is made of: float32 for the 16-bit types,
 * whose arithmetic is done in float32, else the type itself. */
lcomm_dtype lcomm_sum_dtype(lcomm_dtype dtype);

/* Are such sums never compressed, whatever the policy says? */
bool lcomm_sum_stays_exact(lcomm_dtype dtype, lcomm_op op);

/* Does the plan keep error feedback, and for which part of the vector on this
 * rank? *count is 0 when this rank keeps none. */
bool lcomm_plan_feedback(const lcomm_plan *plan, uint64_t *first, uint64_t *count);

/* The share of a tensor of elements first..end that top-k keeps: the stage's
 * density, or what its number of kept values comes to. */
double lcomm_plan_density(const lcomm_plan *plan, lcomm_stage stage, uint64_t first, uint64_t end);

/* The segments of one span, scratch of lcomm_plan_topk_shape: plan->segments + 1
 * entries each. */
typedef struct lcomm_segment_scratch {
  uint64_t *ends;
  double *densities;
} lcomm_segment_scratch;

/* MEMORY. Free with lcomm_plan_scratch_free. */
lcomm_status lcomm_plan_scratch_make(const lcomm_plan *plan, lcomm_segment_scratch *scratch);
void lcomm_plan_scratch_free(lcomm_segment_scratch *scratch);

/* Shape of a top-k encoder for the view `span` of the vector, split over
 * `outputs`. It points into the scratch. */
void lcomm_plan_topk_shape(const lcomm_plan *plan, lcomm_stage stage, lcomm_span span,
                           uint32_t outputs, const lcomm_segment_scratch *scratch,
                           lcomm_topk_shape *shape);

/* What the plan's rank sends, by link class. */
typedef struct lcomm_plan_traffic {
  uint64_t messages[LCOMM_LINK_COUNT];
  uint64_t bytes[LCOMM_LINK_COUNT];   /* of payload, at most */
  uint64_t rack_messages, rack_bytes; /* of these, between nodes of one rack */
} lcomm_plan_traffic;

void lcomm_plan_count(const lcomm_plan *plan, const lcomm_topo *topo, lcomm_plan_traffic *traffic);

/* Bytes of payload that the plan's rank sends to other nodes, at most. */
uint64_t lcomm_plan_bytes_between_nodes(const lcomm_plan *plan, const lcomm_topo *topo);

/* For people: what every rank sends, by link class, when all follow this
 * request; of many ranks only the sum, of more than 256 nothing but that. Every
 * line begins with '#'. Text as lcomm_plan_describe does; errors, with the
 * sentence in why, as lcomm_plan_create. */
lcomm_status lcomm_plan_traffic_print(const lcomm_plan_request *request, const lcomm_policy *policy,
                                      const lcomm_topo *topo, char *text, size_t size,
                                      lcomm_why *why);

/* In words; returns the length without the terminator, writes at most size. */
size_t lcomm_plan_describe(const lcomm_plan *plan, const lcomm_topo *topo, char *text, size_t size);

#endif
