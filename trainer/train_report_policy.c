/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUE_SIZE = 1024 };

typedef struct writer {
  char *text;
  size_t size;
  size_t used;
} writer;

__attribute__((format(printf, 2, 3))) static void say(writer *to, const char *format, ...) {
  if (to->used >= to->size) {
    return;
  }
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(to->text + to->used, to->size - to->used, format, arguments);
  va_end(arguments);
  if (length > 0) {
    to->used += (size_t)length;
  }
}

/* The value of `key` in a policy, or `otherwise`. */
static void find_value(const char *policy, const char *key, const char *otherwise,
                       char value[VALUE_SIZE]) {
  size_t key_length = strlen(key);
  snprintf(value, VALUE_SIZE, "%s", otherwise);
  for (const char *word = policy; *word;) {
    size_t blank = strspn(word, " \t\n");
    word += blank;
    size_t length = strcspn(word, " \t\n");
    if (length > key_length && strncmp(word, key, key_length) == 0 && word[key_length] == '=') {
      snprintf(value, VALUE_SIZE, "%.*s", (int)(length - key_length - 1), word + key_length + 1);
    }
    word += length;
  }
}

static const struct {
  const char *codec;
  const char *words;
} codec_words[] = {
    {"none", "exact float32"},
    {"fp16", "rounded to 16-bit floats, half the bytes"},
    {"bf16", "rounded to bfloat16, half the bytes"},
    {"fp8e4m3", "rounded to 8-bit floats (e4m3), a quarter of the bytes"},
    {"fp8e5m2", "rounded to 8-bit floats (e5m2), a quarter of the bytes"},
    {"int8", "rounded to 8-bit integers, a quarter of the bytes"},
    {"int4", "rounded to 4-bit integers, a sixth of the bytes"},
    {"int2", "rounded to 2 bits, a fifteenth of the bytes"},
    {"sign", "signs of one bit, a thirtieth of the bytes"},
};

/* Is `word` one of the endings or options of the codec? */
static bool has_part(const char *codec, const char *word) {
  const char *found = strstr(codec, word);
  return found && strchr(",+", found[strlen(word)]) != NULL; /* the end, too */
}

static void say_kept(writer *to, const char *argument) {
  if (strncmp(argument, "k=", 2) == 0) {
    say(to, "only the largest %.*s values of each tensor", (int)strspn(argument + 2, "0123456789"),
        argument + 2);
  } else {
    say(to, "only the largest %g %% of the values", 100.0 * strtod(argument, NULL));
  }
  if (has_part(argument, "values=int8")) {
    say(to, ", those as 8-bit integers");
  }
}

/* Low rank always has error feedback. */
static void say_rank(writer *to, const char *argument) {
  const char *values = strstr(argument, "values=");
  say(to, "matrices as two factors of rank %.*s", (int)strspn(argument, "0123456789"), argument);
  if (values) {
    say(to, ", those as %s", values + strlen("values="));
  }
  say(to, "; the error is made up for later");
}

/* NAME[:OPTION,...][+ef][+zstd], as lcomm_policy_string writes it. */
static void say_codec(writer *to, const char *codec) {
  size_t length = strcspn(codec, ":+-");
  bool known = false;
  for (size_t i = 0; i < sizeof codec_words / sizeof codec_words[0]; i++) {
    if (strlen(codec_words[i].codec) == length &&
        strncmp(codec, codec_words[i].codec, length) == 0) {
      say(to, "%s", codec_words[i].words);
      known = true;
    }
  }
  if (strncmp(codec, "topk:", 5) == 0) {
    say_kept(to, codec + 5);
  } else if (strncmp(codec, "lowrank:", 8) == 0) {
    say_rank(to, codec + 8);
  } else if (!known) {
    say(to, "%s", codec);
  }
  if (has_part(codec, "stochastic")) {
    say(to, ", up or down by chance");
  }
  if (has_part(codec, "+zstd")) {
    say(to, ", then zstd");
  }
  if (has_part(codec, "+ef")) {
    say(to, "; the error is made up for later");
  }
}

/* ------------------------------------------------------------------ tensors */

static bool is_exact(const char *codec) {
  return strcmp(codec, "none") == 0;
}

/* The first tensor with the codec of tensor `index`. */
static int first_alike(const policy_codec *codecs, int index) {
  int first = 0;
  while (strcmp(codecs[first], codecs[index]) != 0) {
    first++;
  }
  return first;
}

/* Codecs that are at work, of `count` tensors. */
static int count_codecs(const policy_codec *codecs, int count) {
  int different = 0;
  for (int i = 0; i < count; i++) {
    different += !is_exact(codecs[i]) && first_alike(codecs, i) == i;
  }
  return different;
}

/* The tensors with the codec of tensor `first`, and how much of the gradient they are. Returns how
 * many. */
static int say_alike(writer *to, const policy_codec *codecs, int first, const model *net) {
  size_t values = 0;
  int tensors = 0;
  for (int i = first; i < net->parameter_count; i++) {
    if (first_alike(codecs, i) == first) {
      say(to, "%s%s", tensors > 0 ? ", " : "", net->parameters[i].name);
      values += net->parameters[i].count;
      tensors++;
    }
  }
  say(to, " (%.0f %% of the values)", 100.0 * (double)values / (double)net->weight_count);
  return tensors;
}

/* Which tensors a codec acts on, a line for each codec. */
static void say_tensors(writer *to, const policy_codec *codecs, const model *net,
                        const char *indent) {
  int different = count_codecs(codecs, net->parameter_count), compressed = 0;
  const char *separator = "";
  for (int i = 0; i < net->parameter_count; i++) {
    if (is_exact(codecs[i]) || first_alike(codecs, i) != i) {
      continue;
    }
    say(to, "%s%s%s%s: ", separator, indent, different > 1 ? "by " : "compressed",
        different > 1 ? codecs[i] : "");
    compressed += say_alike(to, codecs, i, net);
    separator = "\n";
  }
  if (different == 0) {
    say(to, "%scompressed: nothing, all tensors are small (min=) or exempt\n", indent);
  } else {
    say(to, "; %d of %d tensors stay exact\n", net->parameter_count - compressed,
        net->parameter_count);
  }
}

/* STEPS[,OPTION...], as lcomm_policy_string writes it. */
static void say_guard(writer *to, const char *guard, const char *indent) {
  bool reports = has_part(guard, ",report");
  say(to, "%severy %.*s steps a sample of the results is compared with exact sums%s\n", indent,
      (int)strspn(guard, "0123456789"), guard, reports ? "" : ";");
  if (!reports) {
    say(to, "%sa tensor that is too far from them goes to a milder codec\n", indent);
  }
}

static void say_stale(writer *to, const char *policy, const char *indent) {
  char stale[VALUE_SIZE], late[VALUE_SIZE];
  find_value(policy, "stale", "", stale);
  find_value(policy, "late", "10", late);
  int steps = (int)strtol(stale, NULL, 10);
  say(to,
      "%sa step waits %s ms for its averages, and goes on for up to %d step%s without the newest",
      indent, late, steps, steps == 1 ? "" : "s");
  say(to, "%s\n", has_part(stale, ":drop") ? "; who is farther behind sends later" : "");
}

static void say_steps(writer *to, const char *policy, const char *indent) {
  char warmup[VALUE_SIZE], ramp[VALUE_SIZE], momentum[VALUE_SIZE], clip[VALUE_SIZE],
      guard[VALUE_SIZE];
  find_value(policy, "warmup", "0", warmup);
  find_value(policy, "ramp", "", ramp);
  find_value(policy, "momentum", "", momentum);
  find_value(policy, "clip", "", clip);
  find_value(policy, "guard", "", guard);
  if (strcmp(warmup, "0") != 0) {
    say(to, "%sthe first %s steps are exact\n", indent, warmup);
  }
  if (ramp[0]) {
    say(to, "%sthe density comes down in stages: %s\n", indent, ramp);
  }
  if (clip[0]) {
    size_t norm = strcspn(clip, ":");
    say(to, "%s%s of a rank %s clipped at norm %.*s / sqrt(ranks)\n", indent,
        clip[norm] ? "all tensors together" : "each tensor", clip[norm] ? "are" : "is", (int)norm,
        clip);
  }
  if (guard[0]) {
    say_guard(to, guard, indent);
  }
  if (policy_has_quorum(policy)) {
    char quorum[VALUE_SIZE], late[VALUE_SIZE];
    find_value(policy, "quorum", "", quorum);
    find_value(policy, "late", "10", late);
    say(to, "%sa step waits for %s of the ranks, and %s ms for the others\n", indent, quorum, late);
  }
  if (policy_is_stale(policy)) {
    say_stale(to, policy, indent);
  }
  if (momentum[0]) {
    say(to, "%smomentum %s is kept by libcomm; the optimiser's is off\n", indent, momentum);
  }
  if (policy_sends_momentum(policy)) {
    say(to, "%sthen what travels is the momentum of Adam, whose variance is frozen\n", indent);
  }
  if (policy_discards(policy)) {
    say(to, "%ssteps whose averages are not finite are skipped and leave nothing behind\n", indent);
  }
}

bool policy_sends_momentum(const char *policy) {
  char adam[VALUE_SIZE];
  find_value(policy, "adam", "", adam);
  return adam[0] != '\0';
}

/* As lcomm_policy_string writes it, beta1= is there where it is not 0.9. */
bool policy_has_other_beta(const char *policy) {
  char adam[VALUE_SIZE];
  find_value(policy, "adam", "", adam);
  return strstr(adam, ",beta1=") != NULL;
}

bool policy_keeps_momentum(const char *policy) {
  char momentum[VALUE_SIZE];
  find_value(policy, "momentum", "", momentum);
  return momentum[0] != '\0';
}

/* Of net, or of a pattern; net=auto may choose it. */
bool policy_keeps_residuals(const char *policy) {
  char net[VALUE_SIZE];
  find_value(policy, "net", "none", net);
  return strstr(policy, "+ef") || strstr(policy, "=lowrank:") ||
         strncmp(net, "auto", strlen("auto")) == 0;
}

bool policy_compresses(const char *policy) {
  char between[VALUE_SIZE], inside[VALUE_SIZE];
  find_value(policy, "net", "none", between);
  find_value(policy, "node", "none", inside);
  return !is_exact(between) || !is_exact(inside) || strstr(policy, "net[") != NULL;
}

bool policy_has_quorum(const char *policy) {
  char quorum[VALUE_SIZE];
  find_value(policy, "quorum", "", quorum);
  return quorum[0] != '\0';
}

bool policy_has_servers(const char *policy) {
  char servers[VALUE_SIZE];
  find_value(policy, "servers", "", servers);
  return servers[0] != '\0';
}

bool policy_discards(const char *policy) {
  char nonfinite[VALUE_SIZE];
  find_value(policy, "nonfinite", "report", nonfinite);
  return strcmp(nonfinite, "discard") == 0;
}

void policy_words(const char *policy, int nodes, const model *net, const policy_codec *codecs,
                  const char *indent, char *text, size_t size) {
  writer to = {text, size, 0};
  text[0] = '\0';
  char between[VALUE_SIZE], inside[VALUE_SIZE], in_rack[VALUE_SIZE];
  find_value(policy, "net", "none", between);
  find_value(policy, "node", "none", inside);
  find_value(policy, "rack", "none", in_rack);
  say(&to, "%sbetween nodes: ", indent);
  if (nodes > 1) {
    say_codec(&to, between);
  } else {
    say(&to, "nothing, all ranks are on one node (LCOMM_NODES=2 lets them pose as two)");
  }
  if (!is_exact(in_rack)) {
    say(&to, "\n%sinside a rack, where racks are known: ", indent);
    say_codec(&to, in_rack);
  }
  say(&to, "\n%sinside a node: ", indent);
  say_codec(&to, inside);
  say(&to, "\n");
  if (nodes > 1 ? policy_compresses(policy) : !is_exact(inside)) {
    say_tensors(&to, codecs, net, indent);
    say_steps(&to, policy, indent);
  }
}

void policy_stage_words(const char *policy, bool one_node, const char *indent, char *text,
                        size_t size) {
  writer to = {text, size, 0};
  char value[VALUE_SIZE];
  find_value(policy, "pipe", "none", value);
  say(&to, "%sbetween stages on different nodes: ", indent);
  say_codec(&to, value);
  if (one_node) {
    find_value(policy, "node", "none", value);
    say(&to, "\n%sgradients of a stage stay inside a node: ", indent);
    say_codec(&to, value);
  }
  say(&to, "\n");
}

bool policy_is_stale(const char *policy) {
  char stale[VALUE_SIZE];
  find_value(policy, "stale", "", stale);
  return stale[0] != '\0';
}
