/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_DEVICE_STREAM_GATE_H
#define LCOMM_DEVICE_STREAM_GATE_H

/* A stream that is held until an operation is over. The stream waits for a number
 * in pinned memory; whoever drives the communicator writes it. Numbers of a place
 * only grow, so a place can be used again while a stream that is far behind has
 * not looked at it yet; and places are never freed. */

#include "libcomm/device/device.h"

typedef struct lcomm_stream_gate lcomm_stream_gate;

/* Memory for it; the first call for a table may wait for the whole device. Any thread. */
void lcomm_stream_gate_prepare(const lcomm_device_table *table);

/* Hold `stream`, of a device that can wait for values, from here on; NULL when it
 * cannot be done: too many are held, or nothing was prepared. Any thread. */
lcomm_stream_gate *lcomm_stream_gate_close(const lcomm_device_table *table, void *stream);

/* How many streams of this process are held now. What waits for a whole device, as
 * giving memory back does, waits for them, too, and keeps others from the work that
 * would let them go: see wait_value in device.h. Any thread. */
unsigned lcomm_stream_gate_count(void);

/* From here to resume no further stream is held: a call that would hold one waits
 * itself. Whoever wants to do such a thing pauses, and waits until none is held.
 * Pauses of several threads add up. Any thread. */
void lcomm_stream_gate_quiesce(void);
void lcomm_stream_gate_resume(void);

/* Let it go; whatever became of the operation. Any thread, once. */
void lcomm_stream_gate_open(lcomm_stream_gate *hold);

#endif
