/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 5 */

/* States as bytes: those of the files; restored on the same ranks and on others; hostile ones are
 * refused on all ranks alike. */

#include <math.h>

#include "tests/tensor/checkpoint_model.h"

#define POLICY "net=topk:0.01+ef min=8K momentum=0.9 warmup=1"

enum { BEFORE = 4, AFTER = 3 };

typedef struct block {
  uint8_t *bytes;
  size_t size;
} block;

static block write_state(const model *m) {
  block it = {NULL, 0};
  require(lcomm_state_size(m->comm, &it.size) == LCOMM_OK, "%s", lcomm_last_error(m->comm));
  it.bytes = malloc(it.size + 16);
  memset(it.bytes, 0x5a, it.size + 16);
  require(lcomm_state_write(m->comm, it.bytes, it.size + 16) == LCOMM_OK, "%s",
          lcomm_last_error(m->comm));
  for (int i = 0; i < 16; i++) {
    require(it.bytes[it.size + (size_t)i] == 0x5a, "it wrote more than it said");
  }
  return it;
}

/* Those of all ranks of `ranks`, one after the other, on every rank of the world. */
static block gather_blocks(const block *mine, MPI_Comm ranks) {
  int lengths[64] = {0}, places[64] = {0}, count = 0, size = (int)mine->size, total = 0;
  block all = {NULL, 0};
  if (ranks != MPI_COMM_NULL) {
    MPI_Comm_size(ranks, &count);
    MPI_Allgather(&size, 1, MPI_INT, lengths, 1, MPI_INT, ranks);
  }
  for (int i = 0; i < count; i++) {
    places[i] = total;
    total += lengths[i];
  }
  MPI_Bcast(&total, 1, MPI_INT, 0, MPI_COMM_WORLD);
  all.size = (size_t)total;
  all.bytes = malloc(all.size + 1);
  if (ranks != MPI_COMM_NULL) {
    MPI_Allgatherv(mine->bytes, size, MPI_BYTE, all.bytes, lengths, places, MPI_BYTE, ranks);
  }
  MPI_Bcast(all.bytes, total, MPI_BYTE, 0, MPI_COMM_WORLD);
  return all;
}

/* ------------------------------------------------------------------ format */

static void a_block_is_the_file(void) {
  static uint8_t file[1 << 21];
  char path[600];
  folder f;
  model m;
  make_folder(&f);
  make_model(&m, MPI_COMM_WORLD, POLICY, two_nodes());
  for (int step = 0; step < 4; step++) {
    block it = write_state(&m);
    save_model(&m, &f);
    snprintf(path, sizeof(path), "%s/rank-%05d-of-%05d.lcs", f.path, mpi_rank, mpi_size);
    FILE *opened = fopen(path, "rb");
    size_t size = opened ? fread(file, 1, sizeof(file), opened) : 0;
    require(size == it.size && memcmp(file, it.bytes, size) == 0, "step %d: they differ", step);
    if (opened) {
      fclose(opened);
    }
    free(it.bytes);
    run_model(&m, 1);
  }
  free_model(&m);
  remove_folder(&f);
}

static void size_and_write_are_local(void) {
  model m;
  make_model(&m, MPI_COMM_WORLD, POLICY, two_nodes());
  run_model(&m, 2);
  for (int i = 0; i < 3 * mpi_rank; i++) { /* not as often on each rank */
    free(write_state(&m).bytes);
  }
  run_model(&m, 1);
  free_model(&m);
}

/* ----------------------------------------------------------------- restored */

/* From an address that is no multiple of anything. */
static void read_blocks(model *m, const block *it) {
  uint8_t *odd = malloc(it->size + 1);
  memcpy(odd + 1, it->bytes, it->size);
  require(lcomm_state_read(m->comm, odd + 1, it->size) == LCOMM_OK, "%s",
          lcomm_last_error(m->comm));
  free(odd);
}

static void a_restored_run_goes_on_bit_for_bit(void) {
  static const char *const policies[] = {POLICY, "net=int8+ef min=1",
                                         "net=topk:0.05+ef min=1 scope=bucket bucket=64K",
                                         "net=fp8e4m3:stochastic+ef min=1"};
  for (int i = 0; i < 4; i++) {
    model saved, loaded;
    make_model(&saved, MPI_COMM_WORLD, policies[i], two_nodes());
    run_model(&saved, BEFORE);
    block mine = write_state(&saved), all = gather_blocks(&mine, MPI_COMM_WORLD);
    uint64_t wanted = hash_steps(&saved, AFTER);
    for (int k = 0; k < 2; k++) { /* its own block alone; those of all */
      make_model(&loaded, MPI_COMM_WORLD, policies[i], two_nodes());
      read_blocks(&loaded, k == 0 ? &mine : &all);
      loaded.step = BEFORE;
      require(hash_steps(&loaded, AFTER) == wanted, "%s went on differently", policies[i]);
      free_model(&loaded);
    }
    free_model(&saved);
    free(mine.bytes);
    free(all.bytes);
  }
}

/* Written by half of the ranks, read by all of them, and the other way round. */
static void check_moves(int from, int to) {
  static double saved[TOTAL], loaded[TOTAL];
  MPI_Comm before = MPI_COMM_NULL, after = MPI_COMM_NULL;
  model m;
  block mine = {NULL, 0};
  MPI_Comm_split(MPI_COMM_WORLD, mpi_rank < from ? 0 : MPI_UNDEFINED, mpi_rank, &before);
  MPI_Comm_split(MPI_COMM_WORLD, mpi_rank < to ? 0 : MPI_UNDEFINED, mpi_rank, &after);
  if (before != MPI_COMM_NULL) {
    make_model(&m, before, "net=topk:0.01+ef min=8K", from < 2 ? 1 : 2);
    run_model(&m, BEFORE);
    sum_residuals(&m, saved);
    mine = write_state(&m);
    free_model(&m);
  }
  MPI_Bcast(saved, TOTAL, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  block all = gather_blocks(&mine, before);
  if (after != MPI_COMM_NULL) {
    make_model(&m, after, "net=topk:0.01+ef min=8K", to < 2 ? 1 : 2);
    read_blocks(&m, &all);
    sum_residuals(&m, loaded);
    require(distance(loaded, saved, TOTAL) <= 1e-6, "from %d to %d ranks: lost %g", from, to,
            distance(loaded, saved, TOTAL));
    m.step = BEFORE;
    run_model(&m, 1);
    free_model(&m);
    MPI_Comm_free(&after);
  }
  if (before != MPI_COMM_NULL) {
    MPI_Comm_free(&before);
  }
  free(mine.bytes);
  free(all.bytes);
}

static void other_ranks_take_over_the_whole_mass(void) {
  check_moves(mpi_size, (mpi_size + 1) / 2);
  check_moves((mpi_size + 1) / 2, mpi_size);
}

/* ------------------------------------------------------------------ refused */

/* The last rank has other bytes than it wrote: all ranks give the same answer, and go on as if
 * nothing had been asked. */
static void check_refused(const block *mine, lcomm_status status, const char *word, int nodes) {
  model m, undisturbed;
  make_model(&m, MPI_COMM_WORLD, POLICY, nodes);
  make_model(&undisturbed, MPI_COMM_WORLD, POLICY, nodes);
  run_model(&m, 2);
  run_model(&undisturbed, 2);
  uint8_t *exact = malloc(mine->size); /* so that a sanitizer sees one byte too far */
  memcpy(exact, mine->bytes, mine->size);
  lcomm_status answer = lcomm_state_read(m.comm, exact, mine->size);
  free(exact);
  require(answer == status, "%s, not %s: %s", lcomm_status_name(answer), lcomm_status_name(status),
          lcomm_last_error(m.comm));
  require(strstr(lcomm_last_error(m.comm), word) != NULL, "no word of %s: %s", word,
          lcomm_last_error(m.comm));
  require(strstr(lcomm_last_error(m.comm), "lcomm_state_read") != NULL, "%s",
          lcomm_last_error(m.comm));
  require(hash_steps(&m, AFTER) == hash_steps(&undisturbed, AFTER), "the model has changed");
  free_model(&m);
  free_model(&undisturbed);
}

static block state_of(int nodes) {
  model m;
  make_model(&m, MPI_COMM_WORLD, POLICY, nodes);
  run_model(&m, BEFORE);
  block it = write_state(&m);
  free_model(&m);
  return it;
}

static void hostile_blocks_are_refused_on_every_rank(void) {
  bool last = mpi_rank == mpi_size - 1;
  block good = state_of(two_nodes());
  for (int kind = 0; kind < 6; kind++) {
    static const char *const words[] = {"checksum", "cut short", "no bytes",
                                        "LCMS",     "cut short", "another version"};
    block it = {malloc(good.size), good.size};
    memcpy(it.bytes, good.bytes, good.size);
    if (last && kind == 0) {
      it.bytes[it.size - 100] ^= 4;
    } else if (last && kind == 4) {
      memset(it.bytes + 8, 0xff, 8); /* a size beyond all memory */
    } else if (last && kind == 3) {
      memset(it.bytes, 'x', it.size);
    } else if (last && kind == 5) {
      it.bytes[4] = 77;
    }
    it.size = last && kind == 1 ? it.size - 9 : last && kind == 2 ? 0 : it.size;
    check_refused(&it, kind == 5 ? LCOMM_ERR_UNSUPPORTED : LCOMM_ERR_WIRE, words[kind],
                  two_nodes());
    free(it.bytes);
  }
  free(good.bytes);
}

static void blocks_that_are_missing_are_named(void) {
  block mine = state_of(two_nodes());
  check_refused(&mine, LCOMM_ERR_ARGUMENT, "every rank needs the blocks of all", 1);
  block other = {malloc(mine.size), mine.size};
  memcpy(other.bytes, mine.bytes, mine.size);
  uint32_t ranks = (uint32_t)mpi_size + 1;
  memcpy(other.bytes + 28, &ranks, 4);
  block both = {malloc(2 * mine.size), 2 * mine.size};
  memcpy(both.bytes, mine.bytes, mine.size);
  memcpy(both.bytes + mine.size, other.bytes, mine.size);
  check_refused(&both, LCOMM_ERR_WIRE, "mixed", two_nodes());
  free(mine.bytes);
  free(other.bytes);
  free(both.bytes);
}

static void mistakes_are_refused_and_harmless(void) {
  model m;
  size_t size = 0;
  uint8_t few[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  make_model(&m, MPI_COMM_WORLD, POLICY, two_nodes());
  run_model(&m, 1);
  require(lcomm_state_size(NULL, &size) == LCOMM_ERR_ARGUMENT, "no communicator");
  require(lcomm_state_size(m.comm, NULL) == LCOMM_ERR_ARGUMENT, "no size");
  require(lcomm_state_write(NULL, few, 8) == LCOMM_ERR_ARGUMENT, "no communicator");
  require(lcomm_state_write(m.comm, NULL, 8) == LCOMM_ERR_ARGUMENT, "no bytes");
  require(lcomm_state_read(NULL, few, 8) == LCOMM_ERR_ARGUMENT, "no communicator");
  require(lcomm_state_write(m.comm, few, 8) == LCOMM_ERR_ARGUMENT && few[0] == 1 && few[7] == 8,
          "too few bytes");
  require(strstr(lcomm_last_error(m.comm), "lcomm_state_size") != NULL, "%s",
          lcomm_last_error(m.comm));
  require(lcomm_state_read(m.comm, NULL, 0) == LCOMM_ERR_WIRE, "%s", lcomm_last_error(m.comm));
  require(lcomm_state_read(m.comm, NULL, 8) == LCOMM_ERR_ARGUMENT, "%s", lcomm_last_error(m.comm));
  fill_model(&m);
  lcomm_tensor_ready(m.comm, m.tensors[0]);
  require(lcomm_state_size(m.comm, &size) == LCOMM_ERR_STATE, "during a step");
  require(lcomm_state_write(m.comm, few, 8) == LCOMM_ERR_STATE, "during a step");
  require(lcomm_state_read(m.comm, few, 8) == LCOMM_ERR_STATE, "during a step");
  for (int i = 1; i < TENSORS; i++) {
    lcomm_tensor_ready(m.comm, m.tensors[i]);
  }
  require(lcomm_tensors_wait(m.comm) == LCOMM_OK, "%s", lcomm_last_error(m.comm));
  run_model(&m, 1);
  free_model(&m);
}

static const mpi_property properties[] = {
    PROPERTY(a_block_is_the_file),
    PROPERTY(size_and_write_are_local),
    PROPERTY(a_restored_run_goes_on_bit_for_bit),
    PROPERTY_OF(2, other_ranks_take_over_the_whole_mass),
    PROPERTY(hostile_blocks_are_refused_on_every_rank),
    PROPERTY_OF(2, blocks_that_are_missing_are_named),
    PROPERTY(mistakes_are_refused_and_harmless),
};
RUN_PROPERTIES(mpi_property_main, properties)
