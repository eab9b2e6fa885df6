/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_EMULATED_EMULATED_SANITIZERS_H
#define LCOMM_TESTS_SUPPORT_EMULATED_EMULATED_SANITIZERS_H

/* Which sanitizer a build has, by gcc's names also with clang. */

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif

#endif
