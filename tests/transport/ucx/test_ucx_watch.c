/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The completion list of the transport over UCX. */

#include "tests/support/unit_tests.h"
#include "tests/transport/ucx/test_ucx.h"
#include "tests/transport/watched_messages.h"

static const struct CMUnitTest tests[] = {
    UCX_TEST(messages_are_listed_when_there_is_news, 2),
    UCX_TEST(nothing_else_is_listed, 2),
};
RUN_TESTS(tests)
