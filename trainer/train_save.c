/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_save.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trainer/train_checkpoint.h"
#include "trainer/train_report.h"

enum { PATH_SIZE = 1024, KEPT = 2, RANKS_MAX = 1 << 20 };

typedef char path_text[PATH_SIZE];

/* -------------------------------------------------------------------- folders */

/* Folder, slash and name; options_parse() sees to it that they fit. */
__attribute__((noinline)) static void join(path_text made, const char *folder, const char *name) {
  snprintf(made, sizeof(path_text), "%s/%s", folder, name);
}

static int fail_file(const char *doing, const char *path, failure *why) {
  return failure_set(why, EXIT_SETUP, "cannot %s %s: %s", doing, path, strerror(errno));
}

static int remove_entry(const char *path, const struct stat *about, int kind, struct FTW *walk) {
  (void)about;
  (void)kind;
  (void)walk;
  return remove(path);
}

/* What is not there is removed already. */
static int remove_folder(const char *path, failure *why) {
  if (nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS) == 0 || errno == ENOENT) {
    return 0;
  }
  return fail_file("remove", path, why);
}

/* Names in a folder are on the disk only when the folder is. */
static int sync_folder(const char *path, failure *why) {
  int folder = open(path, O_RDONLY | O_DIRECTORY);
  int result = folder >= 0 ? fsync(folder) : -1;
  if (result) {
    fail_file("write to the disk", path, why);
  }
  if (folder >= 0) {
    close(folder);
  }
  return result;
}

/* "step-" and twelve digits; the order of the names is that of the steps. */
static int is_checkpoint(const struct dirent *entry) {
  size_t digits =
      strspn(entry->d_name + (strncmp(entry->d_name, "step-", 5) == 0 ? 5 : 0), "0123456789");
  return digits == 12 && strlen(entry->d_name) == 17;
}

/* All checkpoints in a folder, the oldest first; free with free_list(). A folder that is not there
 * has none. Returns how many, or -1 with `why`. */
static int list_checkpoints(const char *folder, struct dirent ***entries, failure *why) {
  *entries = NULL;
  int count = scandir(folder, entries, is_checkpoint, alphasort);
  if (count < 0 && errno == ENOENT) {
    return 0;
  }
  return count < 0 ? fail_file("read the folder", folder, why) : count;
}

static void free_list(struct dirent **entries, int count) {
  for (int i = 0; i < count; i++) {
    free(entries[i]);
  }
  free(entries);
}

static int remove_old(const char *folder, failure *why) {
  struct dirent **entries;
  int count = list_checkpoints(folder, &entries, why);
  int result = count < 0 ? -1 : 0;
  for (int i = 0; i < count - KEPT && result == 0; i++) {
    path_text path;
    join(path, folder, entries[i]->d_name);
    result = remove_folder(path, why);
  }
  free_list(entries, count);
  return result;
}

/* --------------------------------------------------------------- what is saved */

/* `statistics` are those of `ranks` ranks, one after the other. */
static int list_vectors(training *self, float *statistics, uint64_t ranks,
                        checkpoint_vector vectors[CHECKPOINT_VECTORS_MAX]) {
  size_t size = self->net.weight_count * sizeof(float);
  int count = 0;
  vectors[count++] = (checkpoint_vector){self->net.weights, size};
  vectors[count++] = (checkpoint_vector){self->optimizer.first, size};
  if (self->optimizer.second) {
    vectors[count++] = (checkpoint_vector){self->optimizer.second, size};
  }
  if (self->net.statistics_count > 0) {
    size = ranks * self->net.statistics_count * sizeof(float);
    vectors[count++] = (checkpoint_vector){statistics, size};
  }
  return count;
}

/* Adam's corrections follow from the steps, see resume_optimizer(). */
static checkpoint head_of(const training *self, double loss) {
  checkpoint made = {.at = {{.weight_count = self->net.weight_count,
                             .optimizer = self->chosen->optimizer,
                             .ranks = (uint64_t)self->ranks.size,
                             .seed = self->chosen->seed,
                             .data_hash = task_hash(&self->task),
                             .epoch = (uint64_t)self->epoch,
                             .samples = self->step_of_epoch * (uint64_t)samples_per_step(self),
                             .steps = self->step,
                             .skipped = self->skipped,
                             .loss = loss}}};
  snprintf(made.model, sizeof made.model, "%s", self->chosen->model);
  return made;
}

/* --------------------------------------------------------------------- saving */

int save_check(const training *self, failure *why) {
  const options *chosen = self->chosen;
  if (!chosen->save || (chosen->resume && strcmp(chosen->save, chosen->resume) == 0)) {
    return 0;
  }
  struct dirent **entries;
  int count = list_checkpoints(chosen->save, &entries, why);
  free_list(entries, count);
  if (count <= 0) {
    return count;
  }
  return failure_set(why, EXIT_SETUP,
                     "%s holds checkpoints of another run; go on with --resume %s, or give --save "
                     "another folder",
                     chosen->save, chosen->save);
}

static void begin_saving(const char *folder, const char *place, failure *why) {
  if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
    fail_file("make the folder", folder, why);
  } else if (remove_folder(place, why) == 0 && mkdir(place, 0777) != 0) {
    fail_file("make the folder", place, why);
  }
}

/* Ranks on other hosts may have written to disks of their own. */
static int find_all_ranks(const training *self, const char *states, failure *why) {
  for (int rank = 0; rank < self->ranks.size; rank++) {
    path_text path;
    char name[64];
    snprintf(name, sizeof name, "rank-%05d-of-%05d.lcs", rank, self->ranks.size);
    join(path, states, name);
    if (access(path, F_OK) != 0) {
      return failure_set(why, EXIT_SETUP,
                         "rank %d has not written to %s; --save needs a folder that all ranks see",
                         rank, path);
    }
  }
  return 0;
}

static int finish_saving(training *self, const char *place, const char *name, double loss,
                         failure *why) {
  path_text path;
  checkpoint_vector vectors[CHECKPOINT_VECTORS_MAX];
  int count = list_vectors(self, self->statistics, (uint64_t)self->ranks.size, vectors);
  checkpoint head = head_of(self, loss);
  join(path, place, "libcomm");
  if (find_all_ranks(self, path, why)) {
    return -1;
  }
  join(path, place, "trainer");
  if (checkpoint_write(path, &head, vectors, count, why) || sync_folder(place, why)) {
    return -1;
  }
  if (rename(place, name) != 0) {
    return fail_file("name the checkpoint", name, why);
  }
  return sync_folder(self->chosen->save, why) || remove_old(self->chosen->save, why) ? -1 : 0;
}

/* Rank 0 makes the folder, all save their states in it, rank 0 adds the rest and names it. */
int save_checkpoint(training *self, failure *why) {
  const char *folder = self->chosen->save;
  path_text place, states, name;
  char step[64];
  if (self->saved_step == self->step) {
    return 0;
  }
  failure mine = {0};
  join(place, folder, ".saving");
  join(states, place, "libcomm");
  snprintf(step, sizeof step, "step-%012" PRIu64, self->step);
  join(name, folder, step);
  double loss = self->loss_sum;
  if (self->ranks.rank == 0) {
    begin_saving(folder, place, &mine);
  }
  if (peers_agree(&self->ranks, &mine) == 0) {
    peers_check(self->comm, lcomm_state_save(self->comm, states), "saving the state", &mine);
  }
  if (peers_agree(&self->ranks, &mine) || peers_sum_real(&self->ranks, &loss, &mine) ||
      (self->net.statistics_count > 0 && statistics_gather(self, &mine))) {
    *why = mine;
    return -1;
  }
  if (self->ranks.rank == 0) {
    finish_saving(self, place, name, loss / self->ranks.size, &mine);
  }
  if (peers_agree(&self->ranks, &mine)) {
    *why = mine;
    return -1;
  }
  self->saved_step = self->step;
  log_checkpoint(self, "saved", name);
  return 0;
}

/* ------------------------------------------------------------------- resuming */

static int find_last(const char *folder, path_text found, failure *why) {
  struct dirent **entries;
  int count = list_checkpoints(folder, &entries, why);
  if (count > 0) {
    join(found, folder, entries[count - 1]->d_name);
  }
  free_list(entries, count);
  if (count == 0) {
    return failure_set(why, EXIT_SETUP, "%s holds no checkpoint to go on from", folder);
  }
  return count < 0 ? -1 : 0;
}

static int differs(const char *path, const char *option, const char *saved, const char *given,
                   failure *why) {
  return failure_set(why, EXIT_SETUP,
                     "the checkpoint %s is of a run with --%s %s, this one has %s; give the same",
                     path, option, saved, given);
}

/* What must be as it was. Ranks, batch, learning rate, epochs and policy may be others. */
static int compare(const training *self, const char *path, const checkpoint *head, failure *why) {
  const options *chosen = self->chosen;
  if (strcmp(head->model, chosen->model) != 0 || head->at.weight_count != self->net.weight_count) {
    return differs(path, "model", head->model, chosen->model, why);
  }
  if (head->at.optimizer != (uint64_t)chosen->optimizer) {
    const char *saved = head->at.optimizer < OPTIMIZER_COUNT
                            ? optimizer_name((optimizer_kind)head->at.optimizer)
                            : "of another version";
    return differs(path, "optimizer", saved, optimizer_name(chosen->optimizer), why);
  }
  if (head->at.seed != chosen->seed) {
    char saved[32], given[32];
    snprintf(saved, sizeof saved, "%" PRIu64, head->at.seed);
    snprintf(given, sizeof given, "%" PRIu64, chosen->seed);
    return differs(path, "seed", saved, given, why);
  }
  if (head->at.data_hash != task_hash(&self->task)) {
    return failure_set(why, EXIT_SETUP,
                       "the checkpoint %s is of a run with other data than %s; give the same "
                       "--data",
                       path, task_where(&self->task));
  }
  if (head->at.ranks < 1 || head->at.ranks > RANKS_MAX) {
    return failure_set(why, EXIT_SETUP,
                       "the checkpoint %s is of %" PRIu64 " ranks, expected 1 to %d", path,
                       head->at.ranks, RANKS_MAX);
  }
  if (head->at.epoch < 1 || head->at.epoch > (uint64_t)chosen->epochs) {
    return failure_set(why, EXIT_SETUP,
                       "the checkpoint %s is in epoch %" PRIu64 " of a run of %d; give more "
                       "--epochs",
                       path, head->at.epoch, chosen->epochs);
  }
  return 0;
}

/* On another number of ranks, or with another batch, a step has other samples: those that are done
 * stay done, but for a part of a step. */
static void take_up(training *self, const checkpoint *head) {
  uint64_t done = head->at.samples / (uint64_t)samples_per_step(self);
  self->epoch = (int)head->at.epoch;
  self->step_of_epoch = done < self->steps_per_epoch ? done : self->steps_per_epoch;
  self->step = head->at.steps;
  self->skipped = head->at.skipped;
  self->loss_sum = head->at.loss;
  optimizer_set_steps(&self->optimizer, head->at.steps - head->at.skipped);
}

/* On as many ranks each goes on with its own statistics, else all with the mean. */
static void take_up_statistics(training *self, const float *all, uint64_t ranks) {
  size_t count = self->net.statistics_count;
  if (ranks == (uint64_t)self->ranks.size) {
    memcpy(self->net.statistics, all + (size_t)self->ranks.rank * count, count * sizeof(float));
  } else {
    statistics_mean(all, (int)ranks, count, self->net.statistics);
  }
}

static int load_vectors(training *self, checkpoint_file *file, const checkpoint *head,
                        failure *why) {
  checkpoint_vector vectors[CHECKPOINT_VECTORS_MAX];
  uint64_t ranks = head->at.ranks;
  float *statistics = malloc(ranks * self->net.statistics_count * sizeof(float) + 1);
  if (!statistics) {
    return failure_set(why, EXIT_SETUP, "no memory to load %s", file->path);
  }
  int count = list_vectors(self, statistics, ranks, vectors);
  int result = checkpoint_load(file, head, vectors, count, why);
  if (result == 0) {
    take_up_statistics(self, statistics, ranks);
  }
  free(statistics);
  return result;
}

static int load_trainer(training *self, const char *folder, failure *why) {
  path_text path;
  checkpoint_file file;
  checkpoint head;
  join(path, folder, "trainer");
  if (checkpoint_open(path, &file, &head, why)) {
    return -1;
  }
  int result = compare(self, path, &head, why);
  if (result == 0) {
    result = load_vectors(self, &file, &head, why);
  }
  checkpoint_close(&file);
  if (result == 0) {
    take_up(self, &head);
  }
  return result;
}

/* Ranks of hosts that see other folders may have found other checkpoints. */
static int compare_steps(training *self, failure *why) {
  uint64_t mine = self->step;
  const uint64_t *all = peers_gather(&self->ranks, &mine, 1, why);
  for (int rank = 1; all && rank < self->ranks.size; rank++) {
    if (all[rank] != all[0]) {
      return failure_set_common(why, EXIT_SETUP,
                                "rank %d found the checkpoint of step %" PRIu64
                                " in %s, rank 0 that of step %" PRIu64
                                "; --resume needs a folder that all ranks see",
                                rank, all[rank], self->chosen->resume, all[0]);
    }
  }
  return all ? 0 : -1;
}

int resume_checkpoint(training *self, failure *why) {
  path_text folder, states;
  if (!self->chosen->resume) {
    return 0;
  }
  failure mine = {0};
  if (find_last(self->chosen->resume, folder, &mine) == 0) {
    load_trainer(self, folder, &mine);
  }
  if (peers_agree(&self->ranks, &mine)) {
    *why = mine;
    return -1;
  }
  join(states, folder, "libcomm");
  if (compare_steps(self, why) ||
      peers_check(self->comm, lcomm_state_load(self->comm, states), "loading the state", why)) {
    return -1;
  }
  self->saved_step = self->step;
  snprintf(self->resumed, sizeof self->resumed, "%s", folder);
  return 0;
}
