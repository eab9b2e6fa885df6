/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_save.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trainer/train_checkpoint.h"
#include "trainer/train_folder.h"
#include "trainer/train_report.h"

enum { KEPT = 2 };

/* --------------------------------------------------------------- what is saved */

checkpoint_vectors checkpoint_vectors_of(training *self) {
  checkpoint_vectors made = {0};
  made.values[made.count++] = self->master ? self->master : self->net.weights;
  made.values[made.count++] = self->optimizer.first;
  if (self->optimizer.second) {
    made.values[made.count++] = self->optimizer.second;
  }
  return made;
}

uint64_t checkpoint_values_of(training *self, uint64_t ranks) {
  checkpoint_vectors vectors = checkpoint_vectors_of(self);
  return (uint64_t)vectors.count * self->net.weight_count + ranks * self->net.statistics_count;
}

/* Adam's corrections follow from the steps, see take_up(). */
static checkpoint head_of(training *self, double loss) {
  uint64_t ranks = (uint64_t)self->ranks.size;
  checkpoint made = {.at = {{.values = checkpoint_values_of(self, ranks),
                             .weight_count = self->net.weight_count,
                             .optimizer = self->chosen->optimizer,
                             .ranks = ranks,
                             .seed = self->chosen->seed,
                             .data_hash = task_hash(&self->task),
                             .epoch = (uint64_t)self->epoch,
                             .samples = self->deal.used,
                             .steps = self->step,
                             .skipped = self->skipped,
                             .loss = loss,
                             .precision = self->chosen->precision,
                             .scale = (double)self->scale.factor,
                             .good = self->scale.good,
                             .frozen = self->optimizer.frozen,
                             .sharded = is_sharded(self)}}};
  snprintf(made.model, sizeof made.model, "%s", self->chosen->model);
  return made;
}

/* --------------------------------------------------------------------- saving */

static int remove_old(const char *folder, failure *why) {
  struct dirent **entries;
  int count = folder_list(folder, &entries, why);
  int result = count < 0 ? -1 : 0;
  for (int i = 0; i < count - KEPT && result == 0; i++) {
    folder_path path;
    folder_join(path, folder, entries[i]->d_name);
    result = folder_remove(path, why);
  }
  folder_list_free(entries, count);
  return result;
}

int save_check(const training *self, failure *why) {
  const options *chosen = self->chosen;
  if (!chosen->save || (chosen->resume && strcmp(chosen->save, chosen->resume) == 0)) {
    return 0;
  }
  struct dirent **entries;
  int count = folder_list(chosen->save, &entries, why);
  folder_list_free(entries, count);
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
    folder_fail("make the folder", folder, why);
  } else if (folder_remove(place, why) == 0 && mkdir(place, 0777) != 0) {
    folder_fail("make the folder", place, why);
  }
}

/* Ranks on other hosts may have written to disks of their own. */
static int find_all_ranks(const training *self, const char *states, failure *why) {
  for (int rank = 0; rank < self->ranks.size; rank++) {
    folder_path path;
    char name[64];
    snprintf(name, sizeof name, "rank-%05d-of-%05d.lcs", rank, self->ranks.size);
    folder_join(path, states, name);
    if (access(path, F_OK) != 0) {
      return failure_set(why, EXIT_SETUP,
                         "rank %d has not written to %s; --save needs a folder that all ranks see",
                         rank, path);
    }
  }
  return 0;
}

/* Ranks whose vectors are sharded bring them together bucket by bucket; rank 0 alone has a file. */
static int put_vector(training *self, checkpoint_file *file, const float *values, failure *why) {
  if (!is_sharded(self)) {
    size_t count = self->net.weight_count;
    return file->file ? checkpoint_put(file, training_look(self, values, count), count, why) : 0;
  }
  int result = 0;
  for (int i = 0; i < self->shard.plan.bucket_count; i++) {
    lcomm_status status = shard_gather_values(&self->shard, i, values);
    if (peers_check(self->comm, status, "gathering what is saved", why)) {
      return -1;
    }
    if (file->file && result == 0) {
      size_t count = self->shard.plan.buckets[i].count;
      result = checkpoint_put(file, training_look(self, self->shard.bucket, count), count, why);
    }
  }
  return result;
}

/* All ranks go on to the end, also after a failure of rank 0, as the others do not know of it. */
static void put_vectors(training *self, checkpoint_file *file, failure *why) {
  checkpoint_vectors vectors = checkpoint_vectors_of(self);
  int result = 0;
  for (int i = 0; i < vectors.count; i++) {
    result |= put_vector(self, file, vectors.values[i], why);
  }
  if (file->file && result == 0 && self->net.statistics_count > 0) {
    checkpoint_put(file, self->statistics, (size_t)self->ranks.size * self->net.statistics_count,
                   why);
  }
}

static void begin_file(training *self, const char *place, double loss, folder_path path,
                       checkpoint_file *file, failure *why) {
  checkpoint head = head_of(self, loss);
  folder_join(path, place, "libcomm");
  if (find_all_ranks(self, path, why)) {
    return;
  }
  folder_join(path, place, "trainer");
  checkpoint_begin(path, &head, file, why);
}

/* Of this step, by ranks of which some were lost before all knew of it. What has a name is whole.
 */
static bool is_there_already(int trouble) {
  return trouble == EEXIST || trouble == ENOTEMPTY;
}

static int finish_saving(const training *self, const char *place, const char *name,
                         checkpoint_file *file, failure *why) {
  if (why->exit_code || checkpoint_finish(file, why) || folder_sync(place, why)) {
    return -1;
  }
  if (rename(place, name) != 0 && (!is_there_already(errno) || folder_remove(place, why))) {
    return folder_fail("name the checkpoint", name, why);
  }
  return folder_sync(self->chosen->save, why) || remove_old(self->chosen->save, why) ? -1 : 0;
}

/* What the ranks know is in one file that rank 0 writes. */
static int save_file(training *self, const char *place, const char *name, double loss,
                     failure *why) {
  checkpoint_file file = {0};
  folder_path path;
  if (self->ranks.rank == 0) {
    begin_file(self, place, loss, path, &file, why);
  }
  put_vectors(self, &file, why);
  if (self->ranks.rank == 0) {
    finish_saving(self, place, name, &file, why);
  }
  checkpoint_close(&file);
  return peers_agree(&self->ranks, why);
}

/* Rank 0 makes the folder, all save their states in it, rank 0 adds the rest and names it. */
int save_checkpoint(training *self, failure *why) {
  const char *folder = self->chosen->save;
  folder_path place, states, name;
  char step[64];
  if (self->saved_step == self->step) {
    return 0;
  }
  failure mine = {0};
  if (late_sync(self, why)) {
    return -1;
  }
  folder_join(place, folder, ".saving");
  folder_join(states, place, "libcomm");
  snprintf(step, sizeof step, "step-%012" PRIu64, self->step);
  folder_join(name, folder, step);
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
  if (save_file(self, place, name, loss / self->ranks.size, &mine)) {
    *why = mine;
    return -1;
  }
  self->saved_step = self->step;
  log_checkpoint(self, "saved", name);
  return 0;
}
