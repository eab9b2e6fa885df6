/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 5 */

/* Saved states that cannot be loaded, and calls that make no sense: every rank
 * gives the same answer, and nothing has changed. */

#include <sys/stat.h>

#include "tests/tensor/checkpoint_model.h"

#define POLICY "net=topk:0.01+ef min=8K momentum=0.9"

enum { BEFORE = 3, AFTER = 2 };

static void save_steps(const folder *f, int steps) {
  model m;
  make_model(&m, MPI_COMM_WORLD, POLICY, two_nodes());
  run_model(&m, steps);
  save_model(&m, f);
  free_model(&m);
}

/* Load into a model in flight: the answer of all ranks names `word`, and the
 * model goes on as if nothing had been asked. */
static void check_refused(const folder *f, lcomm_status status, const char *word) {
  model m, undisturbed;
  MPI_Barrier(MPI_COMM_WORLD);
  make_model(&m, MPI_COMM_WORLD, POLICY, two_nodes());
  make_model(&undisturbed, MPI_COMM_WORLD, POLICY, two_nodes());
  run_model(&m, 1);
  run_model(&undisturbed, 1);
  lcomm_status answer = lcomm_state_load(m.comm, f->path);
  require(answer == status, "%s, not %s: %s", lcomm_status_name(answer), lcomm_status_name(status),
          lcomm_last_error(m.comm));
  require(strstr(lcomm_last_error(m.comm), word) != NULL, "no word of %s: %s", word,
          lcomm_last_error(m.comm));
  require(hash_steps(&m, AFTER) == hash_steps(&undisturbed, AFTER), "the model has changed");
  free_model(&m);
  free_model(&undisturbed);
}

static void path_of(const folder *f, int rank, int ranks, char *path, size_t size) {
  snprintf(path, size, "%s/rank-%05d-of-%05d.lcs", f->path, rank, ranks);
}

/* Change the last rank's file, on rank 0. */
typedef void (*damage)(const char *path);

static void cut(const char *path) {
  struct stat found;
  require(stat(path, &found) == 0 && truncate(path, found.st_size - 9) == 0, "cannot cut");
}

static void empty(const char *path) {
  require(truncate(path, 0) == 0, "cannot cut");
}

static void flip(const char *path) {
  FILE *file = fopen(path, "r+b");
  require(file && fseek(file, -2000, SEEK_END) == 0, "cannot open");
  int byte = fgetc(file);
  fseek(file, -1, SEEK_CUR);
  fputc(byte ^ 4, file);
  fclose(file);
}

static void erase(const char *path) {
  require(unlink(path) == 0, "cannot erase");
}

static void check_damage(damage harm, lcomm_status status) {
  char path[600];
  folder f;
  make_folder(&f);
  save_steps(&f, BEFORE);
  path_of(&f, mpi_size - 1, mpi_size, path, sizeof(path));
  if (mpi_rank == 0) {
    harm(path);
  }
  /* a lone rank sees an empty folder when its only file is gone */
  const char *name = strrchr(path, '/') + 1;
  check_refused(&f, status, mpi_size > 1 || harm != erase ? name : f.path);
  remove_folder(&f);
}

static void damaged_files_are_named_on_every_rank(void) {
  check_damage(cut, LCOMM_ERR_WIRE);
  check_damage(empty, LCOMM_ERR_WIRE);
  check_damage(flip, LCOMM_ERR_WIRE);
  check_damage(erase, LCOMM_ERR_SYSTEM);
}

/* The same when other ranks have to read it. */
static void damaged_files_of_other_ranks_are_refused(void) {
  char path[600];
  folder f;
  for (int i = 0; i < 3; i++) {
    static const damage damages[] = {cut, flip, erase};
    make_folder(&f);
    save_steps(&f, BEFORE);
    path_of(&f, mpi_size - 1, mpi_size, path, sizeof(path));
    if (mpi_rank == 0) {
      damages[i](path);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    model m;
    make_model(&m, MPI_COMM_WORLD, POLICY, 1); /* not as many nodes as saved */
    require(lcomm_state_load(m.comm, f.path) != LCOMM_OK, "it was loaded");
    require(strstr(lcomm_last_error(m.comm), strrchr(path, '/') + 1) != NULL, "%s",
            lcomm_last_error(m.comm));
    run_model(&m, 1);
    free_model(&m);
    remove_folder(&f);
  }
}

static void move_file(const folder *from, int rank, const folder *to, int as) {
  char source[600], target[600];
  MPI_Barrier(MPI_COMM_WORLD);
  path_of(from, rank, mpi_size, source, sizeof(source));
  path_of(to, as, mpi_size, target, sizeof(target));
  require(mpi_rank != 0 || rename(source, target) == 0, "cannot move %s", source);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void mixed_sets_are_refused(void) {
  folder f, g;
  make_folder(&f);
  make_folder(&g);
  save_steps(&f, BEFORE);
  save_steps(&g, BEFORE + 1);
  move_file(&g, 1, &f, 1);
  check_refused(&f, LCOMM_ERR_MISMATCH, "one save"); /* of another step */
  move_file(&f, 0, &f, 1);
  check_refused(&f, LCOMM_ERR_SYSTEM, "rank-00000-of"); /* gone */
  move_file(&g, 0, &f, 0);
  check_refused(&f, LCOMM_ERR_WIRE, "rank-00001-of"); /* of another rank */
  remove_folder(&f);
  remove_folder(&g);
}

/* One whose name belongs to another set of files. */
static void add_stray_file(const folder *f, int ranks) {
  char path[600];
  path_of(f, ranks - 1, ranks, path, sizeof(path));
  FILE *file = mpi_rank == 0 ? fopen(path, "w") : NULL;
  require(mpi_rank != 0 || file, "cannot make %s", path);
  if (file) {
    fclose(file);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static void sets_of_different_sizes_in_one_folder_are_refused(void) {
  folder f;
  make_folder(&f);
  save_steps(&f, BEFORE);
  add_stray_file(&f, mpi_size + 1);
  check_refused(&f, LCOMM_ERR_WIRE, "mixed");
  remove_folder(&f);
}

/* What was there can still be loaded, and so can what is saved elsewhere. */
static void a_save_into_the_folder_of_other_ranks_is_refused(void) {
  folder f, g;
  model m;
  make_folder(&f);
  make_folder(&g);
  if (mpi_rank == 0) {
    mkdir(f.path, 0777);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  add_stray_file(&f, mpi_size + 1);
  make_model(&m, MPI_COMM_WORLD, POLICY, two_nodes());
  run_model(&m, BEFORE);
  lcomm_status status = lcomm_state_save(m.comm, f.path);
  require(status == LCOMM_ERR_ARGUMENT, "%s", lcomm_status_name(status));
  require(strstr(lcomm_last_error(m.comm), "new folder") &&
              strstr(lcomm_last_error(m.comm), f.path),
          "%s", lcomm_last_error(m.comm));
  require(count_files(&f, ".lcs") == 1 && count_files(&f, "tmp") == 0, "a file was written");
  save_model(&m, &g);
  save_model(&m, &g); /* over files of as many ranks */
  load_model(&m, &g);
  free_model(&m);
  remove_folder(&f);
  remove_folder(&g);
}

static void a_folder_without_a_state_is_refused(void) {
  folder f;
  make_folder(&f);
  check_refused(&f, LCOMM_ERR_SYSTEM, f.path);
  if (mpi_rank == 0) {
    mkdir(f.path, 0777);
  }
  check_refused(&f, LCOMM_ERR_SYSTEM, "no saved state");
  remove_folder(&f);
}

/* Without a tensor, with another count, with another operation. */
static void tensors_that_do_not_match_are_named(void) {
  folder f;
  make_folder(&f);
  save_steps(&f, BEFORE);
  for (int kind = 0; kind < 3; kind++) {
    model m;
    make_ranks(&m, MPI_COMM_WORLD, POLICY, two_nodes());
    for (int i = 0; i < TENSORS; i++) {
      uint64_t count = i == 2 && kind == 1 ? sizes[i] - 1 : sizes[i];
      lcomm_op op = i == 2 && kind == 2 ? LCOMM_AVG : ops[i];
      if (i != 2 || kind != 0) {
        add_tensor(&m, i, count, op);
      }
    }
    lcomm_status status = lcomm_state_load(m.comm, f.path);
    require(status == LCOMM_ERR_ARGUMENT, "kind %d: %s", kind, lcomm_status_name(status));
    require(strstr(lcomm_last_error(m.comm), names[2]) != NULL, "%s", lcomm_last_error(m.comm));
    free_model(&m);
  }
  remove_folder(&f);
}

static void tensors_are_compared_when_a_state_is_loaded(void) {
  folder f;
  make_folder(&f);
  save_steps(&f, BEFORE);
  model m;
  make_ranks(&m, MPI_COMM_WORLD, POLICY, 2);
  add_tensor(&m, 0, sizes[0] - (mpi_rank == 1), ops[0]);
  require(lcomm_state_load(m.comm, f.path) == LCOMM_ERR_MISMATCH, "%s", lcomm_last_error(m.comm));
  require(strstr(lcomm_last_error(m.comm), names[0]) != NULL, "%s", lcomm_last_error(m.comm));
  free_model(&m);
  remove_folder(&f);
}

static void mistakes_are_refused_and_harmless(void) {
  folder f;
  model m;
  make_folder(&f);
  make_model(&m, MPI_COMM_WORLD, POLICY, two_nodes());
  require(lcomm_state_save(NULL, f.path) == LCOMM_ERR_ARGUMENT, "no communicator");
  require(lcomm_state_load(NULL, f.path) == LCOMM_ERR_ARGUMENT, "no communicator");
  require(lcomm_state_save(m.comm, NULL) == LCOMM_ERR_ARGUMENT, "no folder");
  require(lcomm_state_load(m.comm, "") == LCOMM_ERR_ARGUMENT, "no folder");
  fill_model(&m);
  lcomm_tensor_ready(m.comm, m.tensors[0]);
  require(lcomm_state_save(m.comm, f.path) == LCOMM_ERR_STATE, "saved during a step");
  require(lcomm_state_load(m.comm, f.path) == LCOMM_ERR_STATE, "loaded during a step");
  for (int i = 1; i < TENSORS; i++) {
    lcomm_tensor_ready(m.comm, m.tensors[i]);
  }
  require(lcomm_tensors_wait(m.comm) == LCOMM_OK, "%s", lcomm_last_error(m.comm));
  save_model(&m, &f);
  require(count_files(&f, ".lcs") == mpi_size && count_files(&f, "tmp") == 0, "files are missing");
  /* a file is no folder */
  char path[600];
  path_of(&f, mpi_rank, mpi_size, path, sizeof(path));
  require(lcomm_state_save(m.comm, path) == LCOMM_ERR_SYSTEM, "a file was taken for a folder");
  require(strstr(lcomm_last_error(m.comm), path) != NULL, "%s", lcomm_last_error(m.comm));
  run_model(&m, 1);
  free_model(&m);
  remove_folder(&f);
}

static void a_save_that_fails_leaves_no_file(void) {
  char path[600];
  folder f;
  model m;
  make_folder(&f);
  make_model(&m, MPI_COMM_WORLD, POLICY, two_nodes());
  run_model(&m, 1);
  path_of(&f, mpi_rank, mpi_size, path, sizeof(path));
  mkdir(f.path, 0777);
  mkdir(path, 0777); /* in the way */
  require(lcomm_state_save(m.comm, f.path) == LCOMM_ERR_SYSTEM, "saved over a folder");
  require(strstr(lcomm_last_error(m.comm), path) != NULL, "%s", lcomm_last_error(m.comm));
  MPI_Barrier(MPI_COMM_WORLD);
  require(count_files(&f, "tmp") == 0, "a temporary file was left");
  MPI_Barrier(MPI_COMM_WORLD);
  rmdir(path);
  save_model(&m, &f);
  load_model(&m, &f);
  free_model(&m);
  remove_folder(&f);
}

static void a_save_before_the_first_step_holds_nothing_and_can_be_loaded(void) {
  folder f;
  model m, fresh;
  make_folder(&f);
  save_steps(&f, 0);
  make_model(&m, MPI_COMM_WORLD, POLICY, two_nodes());
  make_model(&fresh, MPI_COMM_WORLD, POLICY, two_nodes());
  run_model(&m, 2);
  load_model(&m, &f);
  m.step = 0;
  require(hash_steps(&m, AFTER) == hash_steps(&fresh, AFTER), "it did not begin anew");
  free_model(&m);
  free_model(&fresh);
  remove_folder(&f);
}

static const mpi_property properties[] = {
    PROPERTY(damaged_files_are_named_on_every_rank),
    PROPERTY_OF(2, damaged_files_of_other_ranks_are_refused),
    PROPERTY_OF(2, mixed_sets_are_refused),
    PROPERTY(sets_of_different_sizes_in_one_folder_are_refused),
    PROPERTY(a_save_into_the_folder_of_other_ranks_is_refused),
    PROPERTY(a_folder_without_a_state_is_refused),
    PROPERTY(tensors_that_do_not_match_are_named),
    PROPERTY_OF(2, tensors_are_compared_when_a_state_is_loaded),
    PROPERTY(mistakes_are_refused_and_harmless),
    PROPERTY(a_save_that_fails_leaves_no_file),
    PROPERTY(a_save_before_the_first_step_holds_nothing_and_can_be_loaded),
};
RUN_PROPERTIES(mpi_property_main, properties)
