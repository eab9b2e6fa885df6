/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 4 */

/* Saved states of tensors that travel by low rank: residuals and Q come along, on the same and on
 * other ranks. */

#include <stdlib.h>
#include <xxhash.h>

#include "codecs/codec_state.h"
#include "libcomm/tensor/bucket.h"
#include "tests/tensor/lowrank_model.h"
#include "tests/tensor/saved_blocks.h"

enum { SAVED = 4, STEPS = 8 };

static const char policy[] = "net=lowrank:4 min=1 warmup=1";

/* Q of the first matrix, as it is kept. */
static const float *basis_of(const model *m, uint64_t *count) {
  const lcomm_tensor *tensor = m->tensors[0];
  const lcomm_ef *ef = &tensor->bucket->ef;
  uint64_t at = lcomm_ef_lowrank_basis(ef, tensor->offset, count);
  return ef->state.basis.now ? ef->state.basis.now + at : NULL;
}

static uint8_t *save(model *m, int nodes, size_t *size) {
  open_model(m, policy, nodes, LCOMM_AVG);
  for (int step = 0; step < SAVED; step++) {
    step_model(m, step);
  }
  return write_blocks(m->comm, size);
}

static void a_restored_run_goes_on_bit_for_bit(void) {
  static model saved, loaded;
  for (int nodes = 2; nodes <= mpi_size; nodes++) {
    size_t size = 0;
    uint8_t *blocks = save(&saved, nodes, &size);
    open_model(&loaded, policy, nodes, LCOMM_AVG);
    read_blocks(loaded.comm, blocks, size);
    for (int step = SAVED; step < STEPS; step++) {
      step_model(&saved, step);
      step_model(&loaded, step);
      require(memcmp(saved.data, loaded.data, sizeof saved.data) == 0, "step %d is another one",
              step);
    }
    free(blocks);
    close_model(&saved);
    close_model(&loaded);
  }
}

/* All that the ranks kept is kept by those that load, in units of an average of them; Q is that of
 * before, so the next step finds the patterns at once. */
static void other_ranks_take_over(int nodes, int count) {
  static model saved, loaded;
  static double before[LARGEST], after[LARGEST], sum[LARGEST];
  static float own[LARGEST];
  MPI_Comm ranks = MPI_COMM_NULL;
  size_t size = 0;
  uint64_t n = 0, wanted_n = 0;
  uint8_t *blocks = save(&saved, nodes, &size);
  sum_residuals(&saved, 0, before);
  const float *wanted = basis_of(&saved, &wanted_n);
  MPI_Comm_split(MPI_COMM_WORLD, mpi_rank < count ? 0 : MPI_UNDEFINED, mpi_rank, &ranks);
  if (ranks != MPI_COMM_NULL) {
    begin_model(&loaded, make_comm_over(ranks, policy, count), LCOMM_AVG);
    read_blocks(loaded.comm, blocks, size);
    const float *q = basis_of(&loaded, &n);
    bool same = q && n == wanted_n && memcmp(q, wanted, n * sizeof *q) == 0;
    require(count == 1 || same, "Q was not restored on %d ranks", count);
    step_model(&loaded, SAVED);
    require_fine(loaded.comm, lcomm_tensor_residual(loaded.comm, loaded.tensors[0], own));
    for (uint64_t i = 0; i < size_of(0); i++) {
      after[i] = (double)own[i];
      sum[i] = (double)loaded.gradient[0][i];
    }
    sum_over(ranks, after, LARGEST);
    sum_over(ranks, sum, LARGEST);
    for (uint64_t i = 0; i < size_of(0); i++) {
      sum[i] = (sum[i] - after[i]) / count + before[i] / mpi_size;
    }
    double far = distance(loaded.data[0], sum, size_of(0));
    require(far < 1e-5, "%d ranks lose %g", count, far);
    close_model(&loaded);
    MPI_Comm_free(&ranks);
  }
  free(blocks);
  close_model(&saved);
}

static void residuals_and_factors_come_along_to_other_ranks(void) {
  for (int nodes = 2; nodes <= mpi_size; nodes++) {
    for (int count = 1; count <= mpi_size; count++) {
      other_ranks_take_over(nodes, count);
    }
  }
}

/* Under another rank, and another codec, residuals come along and Q begins anew. */
static void another_policy_loads_what_was_saved(void) {
  static const char *const others[] = {"net=lowrank:2 min=1", "net=int8+ef min=1", "min=1",
                                       "net=topk:0.5+ef min=1"};
  static model saved, loaded;
  static double before[LARGEST], after[LARGEST], sum[LARGEST];
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
    size_t size = 0;
    uint8_t *blocks = save(&saved, two_nodes(), &size);
    open_model(&loaded, others[i], two_nodes(), LCOMM_AVG);
    read_blocks(loaded.comm, blocks, size);
    sum_residuals(&loaded, 0, before);
    step_model(&loaded, SAVED);
    sum_residuals(&loaded, 0, after);
    sum_of_ranks(loaded.gradient[0], size_of(0), 1.0, sum);
    for (uint64_t j = 0; j < size_of(0); j++) {
      sum[j] = (sum[j] + before[j] - after[j]) / mpi_size;
    }
    double far = distance(loaded.data[0], sum, size_of(0));
    require(far < 1e-5, "'%s' loses %g", others[i], far);
    sum_residuals(&saved, 0, sum);
    for (uint64_t j = 0; j < size_of(0); j++) {
      require(fabs(sum[j] - before[j]) < 1e-5, "'%s': a residual became another one", others[i]);
    }
    free(blocks);
    close_model(&saved);
    close_model(&loaded);
  }
}

/* Numbers that no Q has are no Q, and do no harm. */
static void a_factor_that_cannot_be_is_started_anew(void) {
  static model m;
  static const uint8_t nan[4] = {0, 0, 0xc0, 0x7f};
  lcomm_state_header header;
  lcomm_state_reader reader;
  lcomm_state_tensor record = {.shape = {.rank = 0}};
  const char *why = "";
  size_t size = 0, own = 0;
  uint8_t *blocks = save(&m, two_nodes(), &size);
  free(blocks);
  require_fine(m.comm, lcomm_state_size(m.comm, &own));
  uint8_t *block = malloc(own);
  require_fine(m.comm, lcomm_state_write(m.comm, block, own));
  require(lcomm_state_open(block, own, &header, &reader, &why) == LCOMM_OK, "%s", why);
  while (record.shape.rank == 0 && lcomm_state_next(&reader, &record)) {
    continue;
  }
  require(record.shape.rank == 4, "there is no factor");
  memcpy(block + (record.basis - block), nan, sizeof nan);
  lcomm_state_put_checksum(XXH3_64bits(block, own - 8), block + own - 8);
  require_fine(m.comm, lcomm_state_read(m.comm, block, own));
  for (int step = SAVED; step < STEPS; step++) {
    step_model(&m, step);
    require(lcomm_tensors_not_finite(m.comm) == 0, "step %d is not finite", step);
    require_same_bits(&m, step);
  }
  free(block);
  close_model(&m);
}

static const mpi_property properties[] = {
    PROPERTY(a_restored_run_goes_on_bit_for_bit),
    PROPERTY(residuals_and_factors_come_along_to_other_ranks),
    PROPERTY(another_policy_loads_what_was_saved),
    PROPERTY(a_factor_that_cannot_be_is_started_anew),
};
RUN_PROPERTIES(mpi_property_main, properties)
