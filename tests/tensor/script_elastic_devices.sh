#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# Tensors and residuals go over to communicators with other ranks where their buffers are on
# (emulated) devices: the properties of those on the host.
set -u

# shellcheck source=tests/support/expect.sh
. "$(dirname "$0")/../support/expect.sh"

# on_devices PROGRAM PROPERTY: that one runs, and holds.
on_devices() {
  CMOCKA_MESSAGE_OUTPUT=tap ELASTIC_ON_DEVICE=1 timeout -k 10 "$limit" "$build/tests/tensor/$1" "$2" | tee "$work/said" &&
    grep -q "^ok 1 - $2$" "$work/said"
}

for property in other_policies_go_on the_others_of_a_node_go_on one_rank_may_be_left \
  a_step_that_one_has_passed_is_finished no_step_is_over_before_all_have_its_results; do
  expect "tensors_$property" on_devices test_tensor_carry $property
done
expect tensors_what_was_carried_goes_back_and_over_again on_devices test_tensor_carry_again what_was_carried_goes_back_and_over_again
for property in int8_loses_nothing momentum_loses_nothing low_rank_loses_nothing; do
  expect "tensors_when_ranks_leave_$property" on_devices test_tensor_regroup $property
done
for property in topk_loses_nothing what_is_held_is_not_lost_with_a_newcomer; do
  expect "tensors_when_ranks_join_$property" on_devices test_tensor_join $property
done
for property in residuals_of_topk_go_on other_policies_go_on a_call_is_finished_on_all_or_undone_on_all \
  a_request_may_be_waited_for_afterwards; do
  expect "calls_$property" on_devices test_residual_carry $property
done
for property in int8_loses_nothing nothing_is_lost_with_a_newcomer; do
  expect "calls_when_ranks_change_$property" on_devices test_residual_regroup $property
done
exit $((failures > 0))
