/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/fidelity/fidelity_preset.h"

#include <string.h>

static const fidelity_preset reference = {"fp32", ""};

static const fidelity_preset known_presets[] = {
    {"fp16", "net=fp16"},
    {"bf16", "net=bf16"},
    {"fp8e4m3", "net=fp8e4m3"},
    {"fp8e5m2", "net=fp8e5m2"},
    {"int8", "net=int8"},
    {"int4", "net=int4"},
    {"int2", "net=int2"},
    {"sign", "net=sign"},
    {"lowrank:2", "net=lowrank:2 warmup=50"},
    {"lowrank:4", "net=lowrank:4 warmup=50"},
    {"topk-1%", "net=topk:0.01+ef"},
    {"topk-0.1%", "net=topk:0.001+ef"},
    {"topk:safe", "net=topk:safe"},
    {"topk:fast", "net=topk:fast"},
    {"int4:safe", "net=int4:safe"},
};

enum { KNOWN_COUNT = sizeof known_presets / sizeof known_presets[0] };

fidelity_preset fidelity_preset_reference(void) {
  return reference;
}

void fidelity_preset_add_known(fidelity_grid *grid) {
  for (size_t i = 0; i < KNOWN_COUNT; i++) {
    grid->presets[grid->preset_count++] = known_presets[i];
  }
}

static const fidelity_preset *find_known(const char *name) {
  for (size_t i = 0; i < KNOWN_COUNT; i++) {
    if (strcmp(known_presets[i].name, name) == 0) {
      return &known_presets[i];
    }
  }
  return NULL;
}

static bool is_name(const char *text, size_t length) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789:.,_+-%";
  return length > 0 && length < FIDELITY_NAME_MAX && strspn(text, letters) >= length;
}

bool fidelity_preset_read(const char *text, fidelity_preset *made) {
  size_t length = strcspn(text, "=");
  const fidelity_preset *known = find_known(text);
  if (known) {
    *made = *known;
    return true;
  }
  if (text[length] != '=' || !is_name(text, length) ||
      strlen(text + length + 1) >= sizeof made->policy) {
    return false;
  }
  *made = (fidelity_preset){.name = ""};
  memcpy(made->name, text, length);
  strcpy(made->policy, text + length + 1);
  return true;
}
