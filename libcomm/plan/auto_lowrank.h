/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_PLAN_AUTO_LOWRANK_H
#define LCOMM_PLAN_AUTO_LOWRANK_H

/* Low rank as a choice of net=auto. A vector of matrices may be summed as it is, by the codec that
 * auto_choose.h chooses, or as two factors. What the latter takes is the predicted time of both
 * sums, one after the other, and that of the products, by the speed that they were measured to
 * have. The figures are those that all ranks share, the rank is rank 0; so all ranks choose alike.
 */

#include "libcomm/plan/auto.h"

/* The matrices of one vector together. */
typedef struct lcomm_lowrank_sizes {
  uint64_t count; /* of elements */
  uint64_t rows, columns;
  uint64_t matrices;
} lcomm_lowrank_sizes;

void lcomm_lowrank_sizes_add(lcomm_lowrank_sizes *sizes, uint64_t rows, uint64_t columns);

/* What speaks for low rank, and against it. */
typedef struct lcomm_lowrank_rating {
  bool taken;
  double us;         /* by low rank */
  double product_us; /* of which this is what a processor computes */
  double whole_us;   /* summed as it is ... */
  int candidate;     /* ... by this one, see policy.h */
} lcomm_lowrank_rating;

/* One of its sums: of `count` values of a factor, as `request` is of the vector. */
lcomm_plan_request lcomm_lowrank_request(const lcomm_plan_request *request,
                                         const lcomm_codec_spec *values, uint64_t count);

/* The time of the products: of all, or of those that follow the first sum. */
double lcomm_lowrank_product_us(const lcomm_topo *topo, const lcomm_lowrank_sizes *sizes);
double lcomm_lowrank_later_us(const lcomm_topo *topo, const lcomm_lowrank_sizes *sizes);

/* request: of the vector, under auto of a class that allows low rank. Low rank has to gain a
 * twentieth over the milder codecs, and a coarser one over low rank; where the computation hides
 * milder ones it is not taken. Errors as of lcomm_plan_create. */
lcomm_status lcomm_lowrank_rate(const lcomm_plan_request *request, const lcomm_policy *policy,
                                const lcomm_topo *topo, const lcomm_lowrank_sizes *sizes,
                                lcomm_lowrank_rating *rating, lcomm_why *why);

/* "lowrank:4, for two sums by lowrank:4 are predicted to take 1.2 ms, 310 us of it for products,
 * one by int2+ef 4.5 ms". Returns text. */
enum { LCOMM_LOWRANK_RATING_TEXT_MAX = 192 };
const char *lcomm_lowrank_rating_format(const lcomm_lowrank_rating *rating,
                                        char text[LCOMM_LOWRANK_RATING_TEXT_MAX]);

#endif
