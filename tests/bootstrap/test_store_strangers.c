/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Who should not be at the meeting is refused with a reason, and the meeting
 * goes on as if nothing had been. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/bootstrap/crew.h"
#include "tests/support/few_files.h"
#include "tests/support/unit_tests.h"

/* Ranks 0 and 1 of a world of 2; rank 1 comes when the strangers are done. */
static crew begin_meeting(void) {
  crew c = new_crew(2, meet_and_gather);
  start_member(&c, 0);
  return c;
}

static void end_meeting_well(crew *c) {
  start_member(c, 1);
  end_crew(c);
  for (int rank = 0; rank < c->size; rank++) {
    if (!c->reports[rank].good) {
      print_error("rank %d: %s\n", rank, c->reports[rank].sentence);
    }
    assert_true(c->reports[rank].good);
  }
  dismiss(c);
}

static void say(int fd, const void *bytes, size_t size) {
  assert_int_equal(send(fd, bytes, size, MSG_NOSIGNAL), size);
}

static void expect_refusal(int fd, lcomm_status status, const char *words) {
  uint8_t bytes[LCOMM_STORE_HEADER_SIZE + LCOMM_STORE_REASON_MAX];
  lcomm_store_frame frame;
  lcomm_store_reason reason;
  size_t got = listen_to_end(fd, bytes, sizeof(bytes));
  close(fd);
  assert_true(got > LCOMM_STORE_HEADER_SIZE);
  assert_int_equal(lcomm_store_read_frame(bytes, &frame), LCOMM_OK);
  assert_int_equal(frame.kind, LCOMM_STORE_REFUSED);
  assert_int_equal(frame.size, got - LCOMM_STORE_HEADER_SIZE);
  assert_int_equal(
      lcomm_store_read_reason(bytes + LCOMM_STORE_HEADER_SIZE, (size_t)frame.size, &reason),
      LCOMM_OK);
  if (!strstr(reason.text, words)) {
    print_error("no '%s' in: %s\n", words, reason.text);
  }
  assert_non_null(strstr(reason.text, words));
  assert_int_equal(reason.status, status);
}

static void pack_greeting_of(const crew *c, uint32_t rank, uint64_t process, uint32_t attempt,
                             uint8_t *bytes) {
  lcomm_store_handshake handshake = {.rank = rank,
                                     .world_size = (uint32_t)c->size,
                                     .host = "elsewhere",
                                     .process = process,
                                     .attempt = attempt};
  memcpy(handshake.token, c->place.token, sizeof(handshake.token));
  lcomm_store_pack_handshake(&handshake, bytes);
}

static void pack_greeting(const crew *c, uint32_t rank, uint8_t *bytes) {
  pack_greeting_of(c, rank, 1000, 1, bytes);
}

/* The greeting was taken: rank 0 says that it waits for the others. */
static void expect_place(int fd) {
  uint8_t bytes[LCOMM_STORE_HEADER_SIZE];
  lcomm_store_frame frame;
  assert_int_equal(recv(fd, bytes, sizeof(bytes), MSG_WAITALL), sizeof(bytes));
  assert_int_equal(lcomm_store_read_frame(bytes, &frame), LCOMM_OK);
  assert_int_equal(frame.kind, LCOMM_STORE_WAIT);
}

/* --------------------------------------------------------------- strangers */

/* Connections to the meeting, of which all but the first may fail: -1. */
static void call_often(const crew *c, int *fds, int count) {
  fds[0] = call_until_heard(c);
  for (int i = 1; i < count; i++) {
    fds[i] = call_in(c);
  }
}

static void hang_up(const int *fds, int count) {
  for (int i = 0; i < count; i++) {
    if (fds[i] >= 0) {
      close(fds[i]);
    }
  }
}

static void port_scanners_are_refused(void **state) {
  (void)state;
  static const char web[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  static const uint8_t tls[] = {0x16, 0x03, 0x01, 0x02, 0x00, 0x01};
  uint8_t much[65536];
  memset(much, 'x', sizeof(much));
  crew c = begin_meeting();
  int first = call_until_heard(&c), second = call_in(&c), third = call_in(&c);
  say(first, web, sizeof(web) - 1);
  say(second, tls, sizeof(tls));
  send(third, much, sizeof(much), MSG_NOSIGNAL);
  expect_refusal(first, LCOMM_ERR_WIRE, "not a greeting of libcomm");
  expect_refusal(second, LCOMM_ERR_WIRE, "not a greeting of libcomm");
  close(third);
  end_meeting_well(&c);
}

static void silent_and_half_open_connections_disturb_nobody(void **state) {
  (void)state;
  enum { SILENT = 40 };
  int fds[SILENT];
  uint8_t greeting[LCOMM_STORE_HANDSHAKE_SIZE];
  crew c = begin_meeting();
  pack_greeting(&c, 1, greeting);
  fds[0] = call_until_heard(&c);
  for (int i = 1; i < SILENT; i++) {
    fds[i] = call_in(&c);
    say(fds[i], greeting, (size_t)i * 8); /* all of it but for some bytes */
  }
  for (int i = 1; i < SILENT; i += 3) {
    close(fds[i]);
    fds[i] = -1;
  }
  end_meeting_well(&c);
  hang_up(fds, SILENT);
}

static void who_says_nothing_is_told_to_leave(void **state) {
  (void)state;
  crew c = begin_meeting();
  expect_refusal(call_until_heard(&c), LCOMM_ERR_TIMEOUT, "did not say in time who it is");
  end_meeting_well(&c);
}

static void more_connections_than_there_is_room_for_are_outlived(void **state) {
  (void)state;
  enum { MANY = LCOMM_STORE_VISITORS_MAX + 30 };
  int fds[MANY];
  crew c = begin_meeting();
  call_often(&c, fds, MANY);
  end_meeting_well(&c);
  hang_up(fds, MANY);
}

/* They stay, and are silent: rank 1 comes behind all of them. */
static void silent_strangers_do_not_lock_a_rank_out(void **state) {
  (void)state;
  enum { MANY = 600 };
  int fds[MANY];
  lcomm_descriptors_raise();
  if (lcomm_descriptors_free() < 2 * MANY) {
    skip();
  }
  crew c = begin_meeting();
  c.timeout_s = 60;
  call_often(&c, fds, MANY);
  for (int i = 0; i < MANY; i++) {
    assert_true(fds[i] >= 0);
  }
  end_meeting_well(&c);
  hang_up(fds, MANY);
}

/* Rank 0 may open few files, and strangers have more connections than that. */
static void meet_with_few_files(const crew *c, int rank, report *mine) {
  if (rank > 0 || leave_files(24, true)) {
    meet_and_gather(c, rank, mine);
  }
}

static void strangers_do_not_use_up_the_file_descriptors(void **state) {
  (void)state;
  enum { MANY = 60 };
  int fds[MANY];
  crew c = new_crew(4, meet_with_few_files);
  start_member(&c, 0);
  call_often(&c, fds, MANY);
  start_member(&c, 3);
  start_member(&c, 2);
  end_meeting_well(&c);
  hang_up(fds, MANY);
}

static void other_versions_are_refused(void **state) {
  (void)state;
  uint8_t greeting[LCOMM_STORE_HANDSHAKE_SIZE];
  crew c = begin_meeting();
  pack_greeting(&c, 1, greeting);
  greeting[8]++;
  int fd = call_until_heard(&c), shorter = call_in(&c);
  say(fd, greeting, sizeof(greeting));
  expect_refusal(fd, LCOMM_ERR_UNSUPPORTED, "another version");
  say(shorter, greeting, 100); /* all that the greeting of that version has */
  expect_refusal(shorter, LCOMM_ERR_UNSUPPORTED, "another version");
  end_meeting_well(&c);
}

static void who_talks_after_the_greeting_loses_its_place(void **state) {
  (void)state;
  uint8_t greeting[LCOMM_STORE_HANDSHAKE_SIZE + 1] = {0}, bytes[64];
  crew c = new_crew(3, meet_and_gather);
  start_member(&c, 0);
  pack_greeting(&c, 1, greeting);
  int fd = call_until_heard(&c);
  say(fd, greeting, sizeof(greeting));
  listen_to_end(fd, bytes, sizeof(bytes));
  close(fd);
  start_member(&c, 2);
  end_meeting_well(&c);
}

/* ------------------------------------------------- ranks that do not belong */

static void wrong_token_is_refused(void **state) {
  enum { TOKEN_AT = 96 };
  (void)state;
  uint8_t greeting[LCOMM_STORE_HANDSHAKE_SIZE];
  crew c = begin_meeting();
  for (int at = 0; at < LCOMM_TOKEN_MAX; at += 51) {
    pack_greeting(&c, 1, greeting);
    greeting[TOKEN_AT + at] ^= 1;
    int fd = call_until_heard(&c);
    say(fd, greeting, sizeof(greeting));
    expect_refusal(fd, LCOMM_STORE_OTHER_JOB, "which has it from LCOMM_TOKEN");
  }
  end_meeting_well(&c);
}

static void rank_with_a_wrong_token_says_why_it_was_refused(void **state) {
  (void)state;
  crew c = new_crew(2, meet_and_gather);
  c.timeout_s = 4;
  start_member(&c, 0);
  snprintf(c.place.token, sizeof(c.place.token), "another secret");
  start_member(&c, 1);
  end_crew(&c);
  expect_failure(&c.reports[0], LCOMM_ERR_TIMEOUT, "ranks did not come");
  expect_failure(&c.reports[0], LCOMM_ERR_TIMEOUT, "the token is not that of rank 0");
  expect_failure(&c.reports[1], LCOMM_ERR_MISMATCH, "the token is not that of rank 0");
  assert_null(strstr(c.reports[1].sentence, "secret"));
  dismiss(&c);
}

/* Member 3 comes from a world of 4, member 5 as rank 7. */
static void come_as_a_wrong_rank(const crew *c, int member, report *mine) {
  crew other = *c;
  other.place.world_size = member == 3 ? 4 : 2;
  lcomm_store *store = meet(&other, member == 5 ? 7 : 1, mine);
  mine->good = store != NULL;
  lcomm_store_close(store);
}

static void rank_that_comes_twice_is_refused(void **state) {
  (void)state;
  static const uint64_t processes[] = {1000, 1001};
  uint8_t greeting[LCOMM_STORE_HANDSHAKE_SIZE];
  crew c = new_crew(3, meet_and_gather);
  start_member(&c, 0);
  pack_greeting_of(&c, 1, 1000, 5, greeting);
  int fd = call_until_heard(&c);
  say(fd, greeting, sizeof(greeting));
  expect_place(fd);
  for (int i = 0; i < 2; i++) { /* an older greeting of the same, and another one */
    pack_greeting_of(&c, 1, processes[i], i == 0 ? 4 : 6, greeting);
    int twin = call_in(&c);
    say(twin, greeting, sizeof(greeting));
    expect_refusal(twin, LCOMM_ERR_MISMATCH, "rank 1 is here already, from host elsewhere");
  }
  close(fd); /* and so rank 1 may come again */
  start_member(&c, 2);
  end_meeting_well(&c);
}

static void rank_that_greets_again_has_its_place(void **state) {
  (void)state;
  uint8_t greeting[LCOMM_STORE_HANDSHAKE_SIZE], bytes[64];
  int fds[3];
  crew c = new_crew(3, meet_and_gather);
  start_member(&c, 0);
  for (uint32_t i = 0; i < 3; i++) {
    pack_greeting_of(&c, 1, 1000, i + 1, greeting);
    fds[i] = i == 0 ? call_until_heard(&c) : call_in(&c);
    say(fds[i], greeting, sizeof(greeting));
    expect_place(fds[i]);
  }
  for (int i = 0; i < 2; i++) { /* whose connection nobody needs any more */
    listen_to_end(fds[i], bytes, sizeof(bytes));
    close(fds[i]);
  }
  close(fds[2]);
  start_member(&c, 2);
  end_meeting_well(&c);
}

/* Rank 0 stands still while a rank greets, gives up, and greets again: then it finds
 * both greetings, the dead one first. */
static void greeting_of_the_dead_takes_no_place(void **state) {
  (void)state;
  enum { TIMES = 3 };
  uint8_t greeting[LCOMM_STORE_HANDSHAKE_SIZE];
  crew c = begin_meeting();
  int fd = call_until_heard(&c);
  assert_int_equal(kill(c.pids[0], SIGSTOP), 0);
  for (uint32_t i = 0; i < TIMES; i++) {
    int dead = call_in(&c);
    pack_greeting_of(&c, 1, 1000 + i, 1, greeting);
    say(dead, greeting, sizeof(greeting));
    close(dead);
  }
  start_member(&c, 1);
  sleep_ms(500); /* for it to greet, most of the time */
  assert_int_equal(kill(c.pids[0], SIGCONT), 0);
  end_crew(&c);
  close(fd);
  expect_good(&c);
  dismiss(&c);
}

static void another_world_or_rank_is_refused(void **state) {
  (void)state;
  crew c = begin_meeting();
  c.part = come_as_a_wrong_rank;
  start_member(&c, 3);
  start_member(&c, 5);
  for (int i = 3; i <= 5; i += 2) {
    int code = 0;
    assert_int_equal(waitpid(c.pids[i], &code, 0), c.pids[i]);
    c.pids[i] = 0;
  }
  expect_failure(&c.reports[3], LCOMM_ERR_MISMATCH, "it says it is rank 1 of 4");
  expect_failure(&c.reports[3], LCOMM_ERR_MISMATCH, "WORLD_SIZE=2");
  expect_failure(&c.reports[5], LCOMM_ERR_MISMATCH, "it says it is rank 7 of 2");
  c.part = meet_and_gather;
  end_meeting_well(&c);
}

/* ----------------------------------------------------- a stranger in our place */

/* Listens where rank 0 would; the connection of rank 1. That is started first, so that it does not
 * inherit our sockets. */
static int accept_rank_1(crew *c, int *listener) {
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)c->place.port),
                                .sin_addr = {htonl(INADDR_LOOPBACK)}};
  int yes = 1;
  start_member(c, 1);
  *listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  setsockopt(*listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  assert_int_equal(bind(*listener, (struct sockaddr *)&address, sizeof(address)), 0);
  assert_int_equal(listen(*listener, 4), 0);
  int fd = accept(*listener, NULL, NULL);
  assert_true(fd >= 0);
  return fd;
}

/* Somebody else listens where rank 0 will be, says something and leaves. */
static void come_after_a_stranger(const void *bytes, size_t size) {
  crew c = new_crew(2, meet_and_gather);
  int listener, fd = accept_rank_1(&c, &listener);
  say(fd, bytes, size);
  sleep_ms(100);
  close(fd);
  close(listener);
  start_member(&c, 0);
  end_crew(&c);
  for (int rank = 0; rank < 2; rank++) {
    if (!c.reports[rank].good) {
      print_error("rank %d: %s\n", rank, c.reports[rank].sentence);
    }
    assert_true(c.reports[rank].good);
  }
  dismiss(&c);
}

static void who_is_not_rank_0_is_outlived(void **state) {
  (void)state;
  uint8_t huge[LCOMM_STORE_HEADER_SIZE];
  static const char shell[] = "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n";
  come_after_a_stranger(shell, sizeof(shell) - 1);
  come_after_a_stranger("", 0);
  lcomm_store_pack_frame((lcomm_store_frame){LCOMM_STORE_DATA, UINT64_MAX}, huge);
  come_after_a_stranger(huge, sizeof(huge));
  lcomm_store_pack_frame((lcomm_store_frame){LCOMM_STORE_FAILED, UINT64_MAX}, huge);
  come_after_a_stranger(huge, sizeof(huge));
}

/* Rank 0 lets it in, and the connection breaks: not rank 0. */
static void rank_whose_connection_breaks_comes_again(void **state) {
  (void)state;
  uint8_t wait[LCOMM_STORE_HEADER_SIZE];
  lcomm_store_pack_frame((lcomm_store_frame){LCOMM_STORE_WAIT, 0}, wait);
  come_after_a_stranger(wait, sizeof(wait));
}

/* --------------------------------------------- a rank that turns out hostile */

static void say_something_else(const crew *c, int rank, report *mine) {
  uint8_t bytes[LCOMM_STORE_HEADER_SIZE];
  lcomm_store *store = meet(c, rank, mine);
  if (store && rank == 1) {
    lcomm_store_pack_frame((lcomm_store_frame){LCOMM_STORE_WELCOME, 0}, bytes);
    send(store->fd, bytes, sizeof(bytes), MSG_NOSIGNAL);
  }
  mine->good = store && !gather_once(store, 64, mine);
  lcomm_store_close(store);
}

static void rank_that_sends_nonsense_is_named(void **state) {
  (void)state;
  crew c = new_crew(3, say_something_else);
  run_crew(&c);
  for (int rank = 0; rank < 3; rank++) {
    assert_true(c.reports[rank].good);
    expect_failure(&c.reports[rank], LCOMM_ERR_WIRE, "rank 1 (host ");
  }
  dismiss(&c);
}

/* A rank 0 that lets rank 1 in and then answers with these bytes. */
static void expect_answer_refused(const uint8_t *answer, size_t size, lcomm_status status,
                                  const char *words) {
  uint8_t bytes[LCOMM_STORE_HANDSHAKE_SIZE];
  uint8_t welcome[2 * LCOMM_STORE_HEADER_SIZE + LCOMM_STORE_PLACE_SIZE];
  lcomm_store_place star = {.way = LCOMM_STORE_WAY_STAR};
  crew c = new_crew(2, meet_and_gather);
  int listener, fd = accept_rank_1(&c, &listener);
  assert_int_equal(recv(fd, bytes, sizeof(bytes), MSG_WAITALL), sizeof(bytes));
  lcomm_store_pack_frame((lcomm_store_frame){LCOMM_STORE_WAIT, 0}, welcome);
  lcomm_store_pack_frame((lcomm_store_frame){LCOMM_STORE_WELCOME, LCOMM_STORE_PLACE_SIZE},
                         welcome + LCOMM_STORE_HEADER_SIZE);
  lcomm_store_pack_place(&star, welcome + 2 * LCOMM_STORE_HEADER_SIZE);
  say(fd, welcome, sizeof(welcome));
  say(fd, answer, size);
  shutdown(fd, SHUT_WR);
  end_crew(&c);
  close(fd);
  close(listener);
  expect_failure(&c.reports[1], status, words);
  dismiss(&c);
}

static void rank_0_that_sends_nonsense_is_named(void **state) {
  (void)state;
  static const uint64_t sizes[] = {1, 3, 65536, UINT64_MAX};
  static const uint8_t zeros[LCOMM_STORE_HEADER_SIZE];
  uint8_t bytes[LCOMM_STORE_HEADER_SIZE + 65536] = {0};
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) { /* 2 bytes are asked for */
    lcomm_store_pack_frame((lcomm_store_frame){LCOMM_STORE_DATA, sizes[i]}, bytes);
    expect_answer_refused(bytes, sizeof(bytes), LCOMM_ERR_WIRE, "what was not asked for");
  }
  lcomm_store_pack_frame((lcomm_store_frame){LCOMM_STORE_FAILED, 60000}, bytes);
  expect_answer_refused(bytes, sizeof(bytes), LCOMM_ERR_WIRE, "what was not asked for");
  lcomm_store_pack_frame((lcomm_store_frame){LCOMM_STORE_WELCOME, 0}, bytes);
  expect_answer_refused(bytes, LCOMM_STORE_HEADER_SIZE, LCOMM_ERR_WIRE, "what was not asked for");
  expect_answer_refused(zeros, sizeof(zeros), LCOMM_ERR_WIRE, "what was not asked for");
  size_t size = lcomm_store_pack_reason(LCOMM_STORE_FAILED, (lcomm_status)77, "\033[2Jbad", bytes);
  expect_answer_refused(bytes, size, LCOMM_ERR_REMOTE, "stopped by ?[2Jbad");
  expect_answer_refused(bytes, size - 1, LCOMM_ERR_TRANSPORT, "has gone");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(port_scanners_are_refused),
    cmocka_unit_test(silent_and_half_open_connections_disturb_nobody),
    cmocka_unit_test(who_says_nothing_is_told_to_leave),
    cmocka_unit_test(more_connections_than_there_is_room_for_are_outlived),
    cmocka_unit_test(silent_strangers_do_not_lock_a_rank_out),
    cmocka_unit_test(strangers_do_not_use_up_the_file_descriptors),
    cmocka_unit_test(other_versions_are_refused),
    cmocka_unit_test(who_talks_after_the_greeting_loses_its_place),
    cmocka_unit_test(wrong_token_is_refused),
    cmocka_unit_test(rank_with_a_wrong_token_says_why_it_was_refused),
    cmocka_unit_test(rank_that_comes_twice_is_refused),
    cmocka_unit_test(rank_that_greets_again_has_its_place),
    cmocka_unit_test(greeting_of_the_dead_takes_no_place),
    cmocka_unit_test(another_world_or_rank_is_refused),
    cmocka_unit_test(who_is_not_rank_0_is_outlived),
    cmocka_unit_test(rank_whose_connection_breaks_comes_again),
    cmocka_unit_test(rank_that_sends_nonsense_is_named),
    cmocka_unit_test(rank_0_that_sends_nonsense_is_named),
};
RUN_TESTS(tests)
