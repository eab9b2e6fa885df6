/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LIBCOMM_PAIRS_H
#define LIBCOMM_PAIRS_H

/* Messages between two ranks: the sends and receives of pipeline and model parallelism. libcomm.h
 * includes this header at its end; ownership, threads and errors are as it says at its beginning.
 *
 *   on the stage before   lcomm_isend(comm, activations, count, LCOMM_FLOAT32, next, &sent);
 *   on the next one       lcomm_recv(comm, activations, count, LCOMM_FLOAT32, before);
 *
 * MATCHING
 *   The n-th send to a rank is what that rank's n-th receive from this one gets, whichever of the
 *   calls below they are; there are no tags. Both have the same count and type. No other rank takes
 *   part, and no order with collective calls, or with messages to and from other ranks, is asked
 *   for. A rank may send to itself.
 *
 * CODEC
 *   Exact unless the policy has pipe=CODEC (libcomm.h, POLICY). Then messages between nodes are
 *   encoded: those of float32, float16 and bfloat16 that have min= bytes, 4 KiB at least, where
 *   the codec makes fewer bytes of them. The receiver gets what decoding gives; the sender's data
 *   stays as it is. All else is exact, as are messages inside a node. Long messages are encoded
 *   and decoded in pieces of 1 MiB of data, while the piece before travels; results are as if a
 *   message were encoded as a whole, but for the random numbers of stochastic rounding. A header
 *   says what comes, so a message that one side has encoded and the other does not expect so is a
 *   MISMATCH, like one of another count or type: both ranks are named, on all ranks. With
 *   check=xxhash all pieces have a checksum, and short messages travel as long ones do.
 *
 * WAITING
 *   Messages of up to 4072 bytes travel with their header: a send is over when it has left, whether
 *   it is received or not. Longer ones go when the receiver asks for them, so a send is over when
 *   it is received, and two ranks that send to each other first, and receive then, wait for each
 *   other until the time-out: they use requests, or a group.
 *   What a rank sends to itself is over when it is received, however short it is.
 *   Of the messages to one rank the first one that is not over is on its way, and the others are
 *   behind it. Messages to different ranks, and from them, do not wait for each other.
 *
 * TIME-OUT
 *   counts while somebody waits for a message, or has tested it, and from when nothing moved: then
 *   the communicator fails with TIMEOUT, and the sentence names the rank that did not send or did
 *   not receive. A rank that dies is named as in collectives. */

#include "libcomm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Send, receive.
 * data     `count` elements of `dtype` in memory of the host, aligned to their element; NULL is
 *          allowed when count is 0. It may be used again when the call returns
 * count    equal on both sides, like dtype (else MISMATCH, on all ranks); 0 is allowed
 * peer     a rank, 0 .. size-1
 * In a group they return at once (see below).
 * Errors: ARGUMENT (also for memory of a device, which needs a stream), MISMATCH, TRANSPORT,
 * TIMEOUT, WIRE, REMOTE, MEMORY (where more messages are in flight than ever before, or the first
 * one is encoded), or the sticky error. */
LCOMM_API lcomm_status lcomm_send(lcomm_comm *comm, const void *data, uint64_t count,
                                  lcomm_dtype dtype, int peer);
LCOMM_API lcomm_status lcomm_recv(lcomm_comm *comm, void *data, uint64_t count, lcomm_dtype dtype,
                                  int peer);

/* The same at once. The data is read, or written, until lcomm_wait() or lcomm_test() says that the
 * message is over; these return its result. Requests may be waited for in any order. In a group as
 * outside of it. lcomm_policy_set() is refused (STATE) until all messages are over. */
LCOMM_API lcomm_status lcomm_isend(lcomm_comm *comm, const void *data, uint64_t count,
                                   lcomm_dtype dtype, int peer, lcomm_request *request);
LCOMM_API lcomm_status lcomm_irecv(lcomm_comm *comm, void *data, uint64_t count, lcomm_dtype dtype,
                                   int peer, lcomm_request *request);

/* Messages that are made together. Between the two calls lcomm_send() and lcomm_recv() return at
 * once, and lcomm_group_end() waits for all of them: in whatever order they are made, they do not
 * wait for each other. Until then data is not used otherwise. lcomm_receive_on_stream() begins at
 * the end of the group, behind all sends of it. Groups may be nested: the outermost end counts.
 * Collective calls, requests and sends on a stream are as outside.
 * Errors: those of the messages; of the end STATE without a begin. */
LCOMM_API lcomm_status lcomm_group_begin(lcomm_comm *comm);
LCOMM_API lcomm_status lcomm_group_end(lcomm_comm *comm);

/* The same messages in order with `stream`, as "buffers of devices" in libcomm_collectives.h says.
 * data     on a device, of one for all messages of a communicator
 * Both return at once. The stream goes on behind a send when the data was copied, whether it is
 * received or not, and behind a receive when the data is there; so ranks that exchange data send
 * first, or make a group. A receive in a stream of one communicator comes after the receives before
 * it, whichever rank they are from. Data crosses through memory of the host, of which as much is
 * kept, in powers of two, as was in flight at once; there it is encoded and decoded by the
 * processor.
 * A send or receive whose other side does not come within the time-out fails the communicator;
 * lcomm_destroy() waits for all.
 *
 * On a stream that is being captured into a graph they are put there, and each launch of the graph
 * sends or receives again, any number of times, with what the buffers hold then; in a group, too,
 * that begins and ends in the capture, and beside collectives. The n-th captured send to a rank is
 * what its n-th captured receive from this one gets, whichever graphs they are in, and the r-th
 * launch of the one is for the r-th launch of the other; captured messages and others do not meet.
 * No rank is asked at the capture, so a message that was captured on one side only is found when it
 * is launched, by the time-out, and one of another count or type is a MISMATCH then. The codec is
 * that of the policy at the capture. A captured message has memory of its own, which it gets at the
 * capture, as a call that gets memory (libcomm_collectives.h), until its graph is gone; of each
 * one launch is in flight: the stream goes on behind a send when the data was copied, but that
 * waits until the message of the launch before has left. One of no elements is left out. Graphs are
 * launched in an order, and end, as libcomm_collectives.h says.
 * Errors: ARGUMENT, also of lcomm_group_end() where a capture has begun or ended in the group, and
 * where 8191 messages to a rank, or from it, were captured before; UNSUPPORTED where no thread may
 * move messages; and as above. */
LCOMM_API lcomm_status lcomm_send_on_stream(lcomm_comm *comm, const void *data, uint64_t count,
                                            lcomm_dtype dtype, int peer, void *stream);
LCOMM_API lcomm_status lcomm_receive_on_stream(lcomm_comm *comm, void *data, uint64_t count,
                                               lcomm_dtype dtype, int peer, void *stream);

/* ---------------------------------------------------------------- channels */

/* Error feedback for messages of one meaning to one rank, such as the gradients of one layer's
 * activations: what was not sent of one is added to the next one. It pays where messages of a
 * channel are alike or add up at the receiver; activations of other samples are neither, and are
 * better sent without. Only the sender knows of a channel: the receiver receives as always. */
typedef struct lcomm_channel lcomm_channel;

/* Make one, in which nothing waits. Local call.
 * peer     a rank, 0 .. size-1, that receives its messages
 * count    of float32 elements in each of them; 0 is allowed. It takes as many float32 of memory
 * channel  receives it, owned by the communicator: valid until lcomm_channel_destroy() or
 *          lcomm_destroy()
 * Errors: ARGUMENT, MEMORY, or the sticky error. */
LCOMM_API lcomm_status lcomm_channel_create(lcomm_comm *comm, int peer, uint64_t count,
                                            lcomm_channel **channel);

/* lcomm_send(), lcomm_isend() and lcomm_send_on_stream() of `count` float32 to its peer, with error
 * feedback where the policy has pipe=CODEC+ef and encodes the message; else without, and what waits
 * in the channel stays there. Several may be in flight: they are encoded in their order. A block of
 * a codec that holds NaN or Inf leaves nothing of these values behind.
 * In a graph each launch is another message of the channel.
 * Errors: as those; ARGUMENT for a channel that is gone. */
LCOMM_API lcomm_status lcomm_channel_send(lcomm_channel *channel, const void *data);
LCOMM_API lcomm_status lcomm_channel_isend(lcomm_channel *channel, const void *data,
                                           lcomm_request *request);
LCOMM_API lcomm_status lcomm_channel_send_on_stream(lcomm_channel *channel, const void *data,
                                                    void *stream);

/* What waits: `count` values. Of all messages of a channel that were encoded with error feedback,
 * sum(sent) == sum(received) + values, within rounding.
 * values  on the host
 * Errors: ARGUMENT, STATE while a message of it is in flight. */
LCOMM_API lcomm_status lcomm_channel_get(const lcomm_channel *channel, float *values);

/* Forget it, and what waits in it. Local call. Errors: ARGUMENT, STATE while a message of it is in
 * flight, or a graph has one. */
LCOMM_API lcomm_status lcomm_channel_destroy(lcomm_channel *channel);

#ifdef __cplusplus
}
#endif

#endif
