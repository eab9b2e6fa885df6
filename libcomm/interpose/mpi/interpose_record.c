/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* How calls are recorded for the report. */

#include <ctype.h>
#include <stdio.h>

#include "libcomm/interpose/interpose_report.h"
#include "libcomm/interpose/mpi/interpose_comm.h"

static const char *const functions[LCOMM_CALL_KINDS] = {
    [LCOMM_CALL_ALLREDUCE] = "MPI_Allreduce",
    [LCOMM_CALL_REDUCE_SCATTER] = "MPI_Reduce_scatter",
    [LCOMM_CALL_ALLGATHER] = "MPI_Allgather",
    [LCOMM_CALL_BROADCAST] = "MPI_Bcast",
};

static const char *name_of_op(MPI_Op op) {
  static const struct {
    MPI_Op op;
    const char *name;
  } *row, rows[] = {{MPI_OP_NULL, ""},      {MPI_SUM, "MPI_SUM"},       {MPI_MIN, "MPI_MIN"},
                    {MPI_MAX, "MPI_MAX"},   {MPI_PROD, "MPI_PROD"},     {MPI_LAND, "MPI_LAND"},
                    {MPI_LOR, "MPI_LOR"},   {MPI_BAND, "MPI_BAND"},     {MPI_BOR, "MPI_BOR"},
                    {MPI_BXOR, "MPI_BXOR"}, {MPI_MINLOC, "MPI_MINLOC"}, {MPI_MAXLOC, "MPI_MAXLOC"}};
  for (row = rows; row < rows + sizeof(rows) / sizeof *rows; row++) {
    if (row->op == op) {
      return row->name;
    }
  }
  return "user-defined";
}

static uint64_t parts_of(const lcomm_interpose_call *call, int ranks) {
  bool by_rank = call->kind == LCOMM_CALL_REDUCE_SCATTER ||
                 (call->kind == LCOMM_CALL_ALLGATHER && !call->part_counts);
  return by_rank ? (uint64_t)ranks : 1;
}

static void add_bytes(const lcomm_interpose_call *call, lcomm_interpose_record *record) {
  if (record->choice == LCOMM_SELECT_NONE || record->exact_now ||
      lcomm_interpose_report_lookup(record)) {
    return;
  }
  uint64_t parts =
      call->part_counts ? (uint64_t)call->at->size : 1; /* of the mean, where they are uneven */
  lcomm_preview_bytes(call->at->policy.preview, call->kind, call->count / parts, call->dtype,
                      call->op, record->choice == LCOMM_SELECT_EF, &record->sent_bytes,
                      &record->exact_bytes);
}

/* Shorten names that Open MPI gives, such as "MPI COMMUNICATOR 3 SPLIT FROM 0": their numbers would
 * make each copy of a communicator a class of its own. */
static void shorten_name(char name[MPI_MAX_OBJECT_NAME]) {
  char how[32];
  if (sscanf(name, "MPI COMMUNICATOR %*d %31s FROM", how) != 1) {
    return;
  }
  for (char *c = how; *c; c++) {
    *c = (char)tolower((unsigned char)*c);
  }
  snprintf(name, MPI_MAX_OBJECT_NAME, "unnamed %s", how);
}

void lcomm_interpose_record_call(MPI_Comm comm, MPI_Datatype type, MPI_Op op,
                                 const lcomm_interpose_call *call, lcomm_selection choice,
                                 bool taken, const char *why) {
  char name[MPI_MAX_OBJECT_NAME] = "?", type_name[MPI_MAX_OBJECT_NAME] = "";
  char members[LCOMM_INTERPOSE_MEMBERS_MAX] = "";
  int length = 0, element_size = 0;
  lcomm_interpose_record record = {.function = functions[call->kind],
                                   .type = type_name,
                                   .op = name_of_op(op),
                                   .comm = name,
                                   .count = call->count,
                                   .choice = choice,
                                   .exact_now = choice == LCOMM_SELECT_EF && !taken,
                                   .why = taken && choice != LCOMM_SELECT_EXACT ? "" : why};
  if (comm == MPI_COMM_NULL || type == MPI_DATATYPE_NULL) {
    return; /* MPI returns an error */
  }
  PMPI_Comm_get_name(comm, name, &length);
  shorten_name(name);
  PMPI_Comm_size(comm, &record.ranks);
  PMPI_Type_get_name(type, type_name, &length);
  PMPI_Type_size(type, &element_size);
  if (length == 0) {
    record.type = "derived";
  }
  if (call->at && record.ranks == call->at->size) {
    record.members =
        lcomm_interpose_members_text(call->at->members, record.ranks, members, sizeof(members));
    record.policy = lcomm_preview_policy(call->at->policy.preview);
  }
  record.nodes = call->at ? lcomm_preview_nodes(call->at->policy.preview) : 0;
  record.size_bytes = call->count * parts_of(call, record.ranks) * (uint64_t)element_size;
  add_bytes(call, &record);
  lcomm_interpose_report_add(&record);
}
