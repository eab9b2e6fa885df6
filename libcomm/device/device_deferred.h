/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_DEVICE_DEVICE_DEFERRED_H
#define LCOMM_DEVICE_DEVICE_DEFERRED_H

/* Threads that a library starts to make and end communicators in place of its program, because that
 * waits for other ranks. They are none of the program's, so they call no CUDA: what they have to
 * know of a device a thread of the program has asked before, and what they would free there a later
 * call of the program frees. lcomm_device_get gives them a table that does so:
 *
 *   use, current   the device that such a thread stands for
 *   facts          of devices that were noted
 *   whatever frees, destroys, closes or finishes      0, and it is deferred
 *   locate         HOST
 *   all others     those of the machine's table, which refuse a thread that is barred */

#include "libcomm/device/device.h"

/* Note what is known of the device in use by this thread, for threads that defer. Its number, or
 * LCOMM_DEVICE_NONE. Calls CUDA, where there is a device. */
int lcomm_device_note(void);

/* The calling thread is one that defers, to its end, and barred (lcomm_device_bar).
 * ordinal   the device that it stands for, noted before; LCOMM_DEVICE_NONE: none */
void lcomm_device_defer(int ordinal);

/* The table to free by: `table`, or, in a thread that defers, the one that does so. */
const lcomm_device_table *lcomm_device_freeing(const lcomm_device_table *table);

/* Do call(table, argument) with a device in use: now, or, in a thread that defers, when such calls
 * are done, in order. Without memory to remember it by it is not done. */
void lcomm_device_free_by(int ordinal,
                          void (*call)(const lcomm_device_table *table, void *argument),
                          void *argument);

/* Do all that was deferred; nothing in a thread that defers. No turn is held: it may wait for
 * devices. */
void lcomm_device_do_deferred(void);

#endif
