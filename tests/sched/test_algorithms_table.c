/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The tables of libcomm/sched/ALGORITHMS.md say what the schedules cost. Every row that
 * begins with the name of an algorithm is read, its formulas are evaluated for many shapes
 * and compared with what is counted in the schedules of all ranks. */

#include "tests/sched/cost_formula.h"
#include "tests/sched/schedule_costs.h"
#include "tests/support/unit_tests.h"

#define TABLES "libcomm/sched/ALGORITHMS.md"

enum { CELLS_MAX = 12, LINE_MAX_SIZE = 1024, NAME_MAX_SIZE = 64 };

/* -------------------------------------------------------------- algorithms */

typedef enum world_kind { ONE_GROUP, SEVERAL_NODES, ONE_NODE, MOVES, RACKS } world_kind;

typedef struct algorithm {
  const char *row; /* as the first cell has it */
  collective_kind kind;
  lcomm_allreduce_shape shape;
  world_kind world;
  int folds; /* groups that are no power of two: 1 only these, -1 none of them, 0 any */
} algorithm;

#define FLAT(name)                                                                                 \
  { .exchange = LCOMM_EXCHANGE_##name, .chunks = 1 }
#define HIER(name)                                                                                 \
  { .exchange = LCOMM_EXCHANGE_##name, .chunks = 1, .hierarchical = true }
#define LEADERS(name, tells)                                                                       \
  {                                                                                                \
    .exchange = LCOMM_EXCHANGE_##name, .chunks = 1, .hierarchical = true, .leaders = true,         \
    .tells_sum = tells                                                                             \
  }

#define BY_RACKS(name)                                                                             \
  { .exchange = LCOMM_EXCHANGE_##name, .chunks = 1, .hierarchical = true, .by_racks = true }

static const algorithm algorithms[] = {
    {"direct", ALLREDUCE, FLAT(DIRECT), ONE_GROUP, 0},
    {"gather", ALLREDUCE, FLAT(GATHER), ONE_GROUP, 0},
    {"ring", ALLREDUCE, FLAT(RING), ONE_GROUP, 0},
    {"sparse", ALLREDUCE, FLAT(SPARSE), ONE_GROUP, 0},
    {"doubling, P = Q", ALLREDUCE, FLAT(DOUBLING), ONE_GROUP, -1},
    {"doubling, P > Q", ALLREDUCE, FLAT(DOUBLING), ONE_GROUP, 1},
    {"halving, P = Q", ALLREDUCE, FLAT(HALVING), ONE_GROUP, -1},
    {"halving, P > Q", ALLREDUCE, FLAT(HALVING), ONE_GROUP, 1},
    {"hier(direct)", ALLREDUCE, HIER(DIRECT), SEVERAL_NODES, 0},
    {"hier(gather)", ALLREDUCE, HIER(GATHER), SEVERAL_NODES, 0},
    {"hier(ring)", ALLREDUCE, HIER(RING), SEVERAL_NODES, 0},
    {"hier(sparse)", ALLREDUCE, HIER(SPARSE), SEVERAL_NODES, 0},
    {"hier(doubling), N = Q", ALLREDUCE, HIER(DOUBLING), SEVERAL_NODES, -1},
    {"hier(doubling), N > Q", ALLREDUCE, HIER(DOUBLING), SEVERAL_NODES, 1},
    {"hier(halving), N = Q", ALLREDUCE, HIER(HALVING), SEVERAL_NODES, -1},
    {"hier(halving), N > Q", ALLREDUCE, HIER(HALVING), SEVERAL_NODES, 1},
    {"leaders(direct)", ALLREDUCE, LEADERS(DIRECT, false), SEVERAL_NODES, 0},
    {"leaders(gather)", ALLREDUCE, LEADERS(GATHER, true), SEVERAL_NODES, 0},
    {"leaders(doubling), N = Q", ALLREDUCE, LEADERS(DOUBLING, true), SEVERAL_NODES, -1},
    {"leaders(halving), N = Q", ALLREDUCE, LEADERS(HALVING, true), SEVERAL_NODES, -1},
    {"racks(direct)", ALLREDUCE, BY_RACKS(DIRECT), RACKS, 0},
    {"racks(gather)", ALLREDUCE, BY_RACKS(GATHER), RACKS, 0},
    {"racks(ring)", ALLREDUCE, BY_RACKS(RING), RACKS, 0},
    {"racks(doubling), K = Q", ALLREDUCE, BY_RACKS(DOUBLING), RACKS, -1},
    {"racks(halving), K = Q", ALLREDUCE, BY_RACKS(HALVING), RACKS, -1},
    {"reduce-scatter", REDUCE_SCATTER, {0}, SEVERAL_NODES, 0},
    {"reduce-scatter, ring", REDUCE_SCATTER, {.exchange = LCOMM_EXCHANGE_RING}, SEVERAL_NODES, 0},
    {"reduce-scatter, one node", REDUCE_SCATTER, {0}, ONE_NODE, 0},
    {"all-gather", ALLGATHER, {0}, SEVERAL_NODES, 0},
    {"all-gather, ring", ALLGATHER, {.exchange = LCOMM_EXCHANGE_RING}, SEVERAL_NODES, 0},
    {"all-gather, doubling", ALLGATHER, {.exchange = LCOMM_EXCHANGE_DOUBLING}, SEVERAL_NODES, 0},
    {"all-gather, one node", ALLGATHER, {0}, ONE_NODE, 0},
    {"all-to-all", ALLTOALL, {0}, MOVES, 0},
    {"broadcast, tree", BROADCAST, {0}, MOVES, 0},
    {"broadcast, one node in chunks", BROADCAST, {.chunks = 4}, ONE_NODE, 0},
    {"broadcast, chain", BROADCAST, {.chunks = 4}, SEVERAL_NODES, 0},
};

enum { ALGORITHMS = sizeof(algorithms) / sizeof(algorithms[0]) };

/* ------------------------------------------------------------------ shapes */

typedef struct nodes_shape {
  int nodes, each;
} nodes_shape;

static const nodes_shape one_group[] = {{2, 1}, {3, 1}, {4, 1},  {5, 1},  {6, 1}, {7, 1},
                                        {8, 1}, {9, 1}, {12, 1}, {16, 1}, {0, 0}};
static const nodes_shape several_nodes[] = {{2, 2}, {2, 3}, {3, 2}, {3, 4}, {4, 2},
                                            {4, 4}, {5, 2}, {6, 3}, {8, 2}, {0, 0}};
static const nodes_shape one_node[] = {{1, 2}, {1, 3}, {1, 4}, {1, 7}, {1, 8}, {0, 0}};
static const nodes_shape any_nodes[] = {{1, 2}, {1, 5}, {3, 1}, {2, 2}, {3, 2}, {4, 4},
                                        {5, 1}, {6, 3}, {9, 2}, {8, 1}, {0, 0}};

static const nodes_shape in_racks[] = {{4, 2}, {4, 3},  {6, 2}, {6, 3},
                                       {9, 3}, {12, 2}, {8, 4}, {0, 0}};

/* Of these nodes; 0: not known. */
static int racks_of(const algorithm *a, nodes_shape shape) {
  static const int racks[] = {2, 2, 2, 3, 3, 4, 4};
  int i = 0;
  if (a->world != RACKS) {
    return 0;
  }
  while (in_racks[i].nodes != shape.nodes || in_racks[i].each != shape.each) {
    i++;
  }
  return racks[i];
}

static const nodes_shape *shapes_of(world_kind kind) {
  static const nodes_shape *const shapes[] = {[ONE_GROUP] = one_group,
                                              [SEVERAL_NODES] = several_nodes,
                                              [ONE_NODE] = one_node,
                                              [MOVES] = any_nodes,
                                              [RACKS] = in_racks};
  return shapes[kind];
}

/* The largest power of two up to `value`. */
static int power_below(int value) {
  int power = 1;
  while (power * 2 <= value) {
    power *= 2;
  }
  return power;
}

/* What doubling and halving go over. */
static int parties_of(const algorithm *a, nodes_shape shape) {
  return a->world == RACKS ? racks_of(a, shape) : shape.nodes;
}

static bool takes(const algorithm *a, nodes_shape shape) {
  bool folds = power_below(parties_of(a, shape)) != parties_of(a, shape);
  return a->folds == 0 || folds == (a->folds > 0);
}

/* Pieces and stripes of it have one size each, and end where blocks do. */
static collective collective_of(const algorithm *a, nodes_shape shape) {
  uint64_t ranks = (uint64_t)shape.nodes * (uint64_t)shape.each, unit = 128 * 16;
  unit = a->shape.exchange == LCOMM_EXCHANGE_SPARSE ? LCOMM_TILE : unit;
  bool segments = a->kind == REDUCE_SCATTER || a->kind == ALLGATHER || a->kind == ALLTOALL;
  return (collective){a->kind, .count = segments ? 128 : unit * ranks, .shape = a->shape};
}

/* ------------------------------------------------------------------- table */

typedef struct table_row {
  int cells;
  char cell[CELLS_MAX][NAME_MAX_SIZE]; /* without code quotes */
} table_row;

/* "| `a` | b |": false for other lines. */
static bool read_row(char *line, table_row *row) {
  row->cells = 0;
  if (line[0] != '|') {
    return false;
  }
  for (char *cell = strtok(line + 1, "|"); cell; cell = strtok(NULL, "|")) {
    size_t used = 0;
    cell += strspn(cell, " ");
    if (*cell == '\n' || row->cells == CELLS_MAX) {
      break;
    }
    for (; *cell && used + 1 < NAME_MAX_SIZE; cell++) {
      if (*cell != '`') {
        row->cell[row->cells][used++] = *cell;
      }
    }
    while (used > 0 && row->cell[row->cells][used - 1] == ' ') {
      used--;
    }
    row->cell[row->cells++][used] = '\0';
  }
  return row->cells > 0;
}

static const algorithm *find_algorithm(const char *name) {
  for (int i = 0; i < ALGORITHMS; i++) {
    if (strcmp(algorithms[i].row, name) == 0) {
      return &algorithms[i];
    }
  }
  return NULL;
}

/* ----------------------------------------------------------------- compare */

/* Figures of one shape: with a codec between nodes, and with plain copies. */
typedef struct figures {
  schedule_costs coded, exact;
} figures;

static double figure_of(const char *column, const figures *f, bool exact_only) {
  const schedule_costs *c = exact_only ? &f->exact : &f->coded;
  const struct {
    const char *column;
    uint64_t value;
  } columns[] = {{"rounds", c->rounds},
                 {"messages", c->messages},
                 {"messages between nodes", c->far_messages},
                 {"messages between racks", c->rack_messages},
                 {"bytes sent", c->sent},
                 {"bytes between nodes", c->node_sent},
                 {"bytes in the rack", c->node_in_rack},
                 {"bytes between racks", c->rack_sent},
                 {"quantisations", c->quantisations},
                 {"memory, coded", f->coded.slots},
                 {"memory, exact", f->exact.slots}};
  for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
    if (strcmp(columns[i].column, column) == 0) {
      return (double)columns[i].value;
    }
  }
  fail_msg("%s has an unknown column \"%s\"", TABLES, column);
  return NAN;
}

static void compare_cell(const algorithm *a, nodes_shape shape, const char *column,
                         const char *formula, double figure, const double letters[26]) {
  bool at_most = strncmp(formula, "<=", 2) == 0;
  double value = formula_value(formula + (at_most ? 2 : 0), letters);
  bool fits = at_most ? figure <= value : fabs(figure - value) < 1e-6 * (1 + value);
  if (!fits) {
    fail_msg("%s of %s on %d nodes of %d ranks: %s says %s, which is %g, the schedules have %g",
             column, a->row, shape.nodes, shape.each, TABLES, formula, value, figure);
  }
}

static void set_letters(double letters[26], const algorithm *a, nodes_shape shape,
                        const collective *what) {
  int ranks = shape.nodes * shape.each;
  for (int i = 0; i < 26; i++) {
    letters[i] = NAN;
  }
  letters['P' - 'A'] = ranks;
  letters['N' - 'A'] = shape.nodes;
  letters['L' - 'A'] = shape.each;
  letters['Q' - 'A'] = power_below(parties_of(a, shape));
  if (a->world == RACKS) {
    letters['K' - 'A'] = racks_of(a, shape);
    letters['M' - 'A'] = (double)shape.nodes / racks_of(a, shape);
  }
  letters['C' - 'A'] = a->shape.chunks;
  letters['S' - 'A'] = (double)vector_count(what, ranks) / (a->kind == ALLTOALL ? 2 : 1);
}

/* As much as it sends, but where one rank tells others all that there is. */
static uint64_t received_of(const algorithm *a, const collective *what, const world_shape *world,
                            uint64_t sent) {
  bool gathers = a->kind == ALLGATHER && a->shape.exchange == LCOMM_EXCHANGE_DOUBLING;
  uint64_t ranks = (uint64_t)(world->nodes * world->sizes[0]);
  return a->kind == BROADCAST ? what->count : gathers ? what->count * ranks : sent;
}

static void compare_shape(const algorithm *a, nodes_shape shape, const table_row *head,
                          const table_row *row) {
  static const bool coded[LCOMM_STAGE_COUNT] = {false, true, true}, none[LCOMM_STAGE_COUNT];
  double letters[26];
  world_shape world = even_world(shape.nodes, shape.each);
  for (int i = 0; a->world == RACKS && i < shape.nodes; i++) {
    world.racks[i] = 1 + i * racks_of(a, shape) / shape.nodes;
  }
  collective what = collective_of(a, shape);
  figures f = {costs_of(&world, &what, coded), costs_of(&world, &what, none)};
  set_letters(letters, a, shape, &what);
  bool exact_only = false;
  for (int i = 1; i < row->cells; i++) {
    exact_only |= strcmp(row->cell[i], "exact") == 0;
  }
  for (int i = 1; i < row->cells; i++) {
    bool empty = strcmp(row->cell[i], "-") == 0 || strcmp(row->cell[i], "exact") == 0;
    double figure = figure_of(head->cell[i], &f, exact_only);
    if (!empty) {
      compare_cell(a, shape, head->cell[i], row->cell[i], figure, letters);
    }
  }
  assert_true(f.exact.received == received_of(a, &what, &world, f.exact.sent));
  assert_true(f.exact.rounds == f.coded.rounds && f.exact.sent == f.coded.sent);
}

static void compare_row(const algorithm *a, const table_row *head, const table_row *row) {
  int compared = 0;
  assert_int_equal(row->cells, head->cells);
  for (const nodes_shape *shape = shapes_of(a->world); shape->nodes > 0; shape++) {
    if (takes(a, *shape)) {
      compare_shape(a, *shape, head, row);
      compared++;
    }
  }
  assert_true(compared > 2);
}

/* ------------------------------------------------------------------- tests */

static void every_row_is_what_the_schedules_cost(void **state) {
  (void)state;
  char line[LINE_MAX_SIZE];
  table_row head = {0}, row;
  bool found[ALGORITHMS] = {false};
  FILE *file = fopen(TABLES, "r");
  assert_non_null(file);
  while (fgets(line, sizeof(line), file)) {
    if (!read_row(line, &row)) {
      head.cells = 0;
    } else if (head.cells == 0) {
      head = row;
    } else if (strcmp(head.cell[0], "algorithm") == 0 && row.cell[0][0] != '-') {
      const algorithm *a = find_algorithm(row.cell[0]);
      if (!a) {
        fail_msg("%s has a row \"%s\", which no test knows", TABLES, row.cell[0]);
      } else {
        compare_row(a, &head, &row);
        found[a - algorithms] = true;
      }
    }
  }
  fclose(file);
  for (int i = 0; i < ALGORITHMS; i++) {
    if (!found[i]) {
      fail_msg("%s has no row \"%s\"", TABLES, algorithms[i].row);
    }
  }
}

/* Chunks move through the phases by themselves: as many bytes in as many more messages. */
static void chunks_multiply_messages_only(void **state) {
  (void)state;
  static const bool coded[LCOMM_STAGE_COUNT] = {false, true, true};
  world_shape world = even_world(3, 2);
  for (int kind = LCOMM_EXCHANGE_DIRECT; kind <= LCOMM_EXCHANGE_HALVING; kind++) {
    collective what = sum_of((lcomm_exchange_kind)kind, LCOMM_TILE * 3 * 2 * 3);
    schedule_costs one = costs_of(&world, &what, coded);
    what.shape.chunks = 3;
    schedule_costs three = costs_of(&world, &what, coded);
    assert_true(three.messages == 3 * one.messages);
    assert_true(three.far_messages == 3 * one.far_messages);
    assert_true(three.sent == one.sent && three.node_sent == one.node_sent);
    assert_true(three.slots == one.slots);
    assert_true(three.rounds == one.rounds && three.quantisations == one.quantisations);
  }
}

/* The formulas are read as people read them. */
static void formulas_are_evaluated(void **state) {
  (void)state;
  double letters[26];
  for (int i = 0; i < 26; i++) {
    letters[i] = NAN;
  }
  letters['P' - 'A'] = 5;
  letters['S' - 'A'] = 100;
  assert_true(formula_value("2(P-1)S/P", letters) == 160);
  assert_true(formula_value(" P S - 3", letters) == 497);
  assert_true(formula_value("lg(P)+lgup(P)", letters) == 5);
  assert_true(formula_value("2lg(P)S", letters) == 400);
  assert_true(isnan(formula_value("2(P-1", letters)));
  assert_true(isnan(formula_value("P+", letters)));
  assert_true(isnan(formula_value("P)", letters)));
  assert_true(isnan(formula_value("X", letters)));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(formulas_are_evaluated),
    cmocka_unit_test(every_row_is_what_the_schedules_cost),
    cmocka_unit_test(chunks_multiply_messages_only),
};
RUN_TESTS(tests)
