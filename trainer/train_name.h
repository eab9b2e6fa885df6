/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_NAME_H
#define TRAINER_TRAIN_NAME_H

/* Names of the values of an option, in the order of its enum. */

/* The index of `name` among the `count` names; `count` where it is none of them. */
int name_find(const char *const *names, int count, const char *name);

#endif
