/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_HOLD_H
#define LCOMM_HOLD_H

/* A stream that is held until an operation is over. The stream waits for a number
 * in pinned memory; whoever drives the communicator writes it. Numbers of a place
 * only grow, so a place can be used again while a stream that is far behind has
 * not looked at it yet; and places are never freed. */

#include "libcomm/device/device.h"

typedef struct lcomm_hold lcomm_hold;

/* Hold `stream`, of a device that can wait for values, from here on; NULL when it
 * cannot be done: too many are held, or there is no memory. Any thread. */
lcomm_hold *lcomm_hold_stream(const lcomm_device_table *table, void *stream);

/* How many streams of this process are held now. What waits for a whole device, as
 * giving memory back does, waits for them, too. Any thread. */
unsigned lcomm_hold_count(void);

/* Let it go; whatever became of the operation. Any thread, once. */
void lcomm_hold_release(lcomm_hold *hold);

#endif
