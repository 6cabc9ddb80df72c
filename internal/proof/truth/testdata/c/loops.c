// Functions inlined in loops that compilers unroll, peel, turn and rewrite.
#include "program.h"

#define COUNT 7

static volatile long sink;
static long values[COUNT];
static int table[COUNT][3];

// The truth of a function that is called once for each element, with the element and its
// index.
static void run_elements(const char *label, int n)
{
	for (int i = 0; i < n; i++)
		truth_run(label), truth_int("v", (uint64_t)values[i]), truth_int("i", (uint64_t)i);
}

// trace: visit v i
static inline void visit(long v, int i)
{
	sink = v + i;
}

// trace: visit_all a n first=a[0] second=a[1]
NOINLINE static void visit_all(const long *a, int n)
{
	for (int i = 0; i < n; i++)
		visit(a[i], i);
}

// trace: visit_fixed v i
static inline void visit_fixed(long v, int i)
{
	sink = v - i;
	if (v & 1)
		sink = i;
}

// Always four turns: unrolled, with a constant index in each.
static NOINLINE void visit_four(const long *a)
{
	for (int i = 0; i < 4; i++)
		visit_fixed(a[i], i);
}

// trace: gather v i
static inline long gather(long v, int i)
{
	return v ^ (v >> (i & 7));
}

// The function has no effects: a candidate for vectors.
static NOINLINE long gather_all(const long *a, int n)
{
	long sum = 0;

	for (int i = 0; i < n; i++)
		sum += gather(a[i], i);
	return sum;
}

// trace: first_turn v i is_first
static inline long first_turn(long v, int i, bool is_first)
{
	if (is_first)
		sink = v;
	return v + i;
}

// The first turn is different: peeled.
static NOINLINE long peeled(const long *a, int n)
{
	long r = 0;

	for (int i = 0; i < n; i++) {
		r += first_turn(a[i], i, i == 0);
		sink = r;
	}
	return r;
}

// trace: cell row column v
static inline int cell(int row, int column, int v)
{
	sink = row * 100 + column;
	return v * 2;
}

static NOINLINE int cells(int rows)
{
	int sum = 0;

	for (int row = 0; row < rows; row++)
		for (int column = 0; column < 3; column++)
			sum += cell(row, column, table[row][column]);
	return sum;
}

// A pointer is stepped in place of an index.
// trace: step at v
static inline void step(const long *at, long v)
{
	sink = *at - v;
}

static NOINLINE void steps(const long *a, int n)
{
	for (int i = 0; i < n; i++)
		step(&a[i], a[i]);
}

// trace: list_item value=n->value x=n->at.x name=n->name:string
static inline long list_item(const struct node *n)
{
	sink = n->value;
	return n->at.x;
}

static NOINLINE long list(const struct node *n)
{
	long r = 0;

	for (; n; n = n->next)
		r += list_item(n);
	return r;
}

// trace: doubled n limit
static inline unsigned doubled(unsigned n, unsigned limit)
{
	do {
		n *= 2;
		sink = n;
	} while (n < limit);
	return n;
}

// trace: invariant k i
static inline long invariant(long k, int i)
{
	sink = k * k + i;
	return k;
}

static NOINLINE void invariants(long k, int n)
{
	for (int i = n; i > 0; i--)
		invariant(k * 3 + 1, i);
}

// trace: chosen n which
static inline void chosen(int n, int which)
{
	switch (which) {
	case 0: sink = n; break;
	case 1: sink = n + 5; break;
	case 2: sink = n * 3; break;
	default: sink = -n;
	}
}

static NOINLINE void choices(int n)
{
	for (int i = 0; i < 4; i++)
		chosen(n, i);
}

static void elements(void)
{
	int n = COUNT - (int)(truth_random() & 3);
	const long *a = values;
	long r;

	truth_open();
	truth_run("visit_all"), truth_int("a", (uint64_t)values), INT(n), truth_int("first", (uint64_t)values[0]), truth_int("second", (uint64_t)values[1]);
	run_elements("visit", n);
	truth_start();
	HIDE(n), HIDE(a);
	visit_all(a, n);
	truth_stop();

	truth_open();
	run_elements("visit_fixed", 4);
	truth_start();
	HIDE(a);
	visit_four(a);
	truth_stop();

	truth_open();
	run_elements("gather", n);
	truth_start();
	HIDE(n), HIDE(a);
	r = gather_all(a, n);
	KEEP(r);
	truth_stop();

	truth_open();
	for (int i = 0; i < n; i++)
		truth_run("first_turn"), truth_int("v", (uint64_t)values[i]), INT(i), truth_int("is_first", i == 0);
	truth_start();
	HIDE(n), HIDE(a);
	r = peeled(a, n);
	KEEP(r);
	truth_stop();

	truth_open();
	for (int i = 0; i < n; i++)
		truth_run("step"), truth_int("at", (uint64_t)&values[i]), truth_int("v", (uint64_t)values[i]);
	truth_start();
	HIDE(n), HIDE(a);
	steps(a, n);
	truth_stop();
}

static void others(void)
{
	int rows = 1 + (int)(truth_random() & 3), n = (int)truth_random(), count = 3, sum;
	unsigned first = 1 + ((unsigned)truth_random() & 7), limit = 50, got;
	long k = truth_random(), r;
	struct node nodes[3] = {
		{&nodes[1], truth_random(), "one", {truth_random(), 0}},
		{&nodes[2], truth_random(), "two", {truth_random(), 0}},
		{NULL, truth_random(), "three", {truth_random(), 0}},
	};
	struct node *head = nodes;

	truth_open();
	for (int row = 0; row < rows; row++)
		for (int column = 0; column < 3; column++)
			truth_run("cell"), INT(row), INT(column), truth_int("v", (uint64_t)table[row][column]);
	truth_start();
	HIDE(rows);
	sum = cells(rows);
	KEEP(sum);
	truth_stop();

	truth_open();
	for (int i = 0; i < 3; i++)
		truth_run("list_item"), truth_int("value", (uint64_t)nodes[i].value), truth_int("x", (uint64_t)nodes[i].at.x), truth_str("name", nodes[i].name);
	truth_start();
	HIDE(head);
	r = list(head);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("doubled"), truth_int("n", first), INT(limit);
	truth_start();
	HIDE(first);
	got = doubled(first, 50);
	KEEP(got);
	truth_stop();

	truth_open();
	for (int i = count; i > 0; i--)
		truth_run("invariant"), truth_int("k", (uint64_t)k * 3 + 1), INT(i);
	truth_start();
	HIDE(k), HIDE(count);
	invariants(k, count);
	truth_stop();

	truth_open();
	for (int which = 0; which < 4; which++)
		truth_run("chosen"), INT(n), INT(which);
	truth_start();
	HIDE(n);
	choices(n);
	truth_stop();
}

void loops(void)
{
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < COUNT; i++) {
			values[i] = truth_random();
			for (int j = 0; j < 3; j++)
				table[i][j] = (int)truth_random();
		}
		elements();
		others();
	}
}
