// Pointers, strings, literals, globals and their addresses.
#include "program.h"

#include <string.h>

static volatile long sink;

static struct node global_node = {NULL, 3, "global", {1, 2}};
static long global_counter = 10;
static const char global_text[] = "text of the image";
int shared_numbers[6] = {1, 2, 3, 4, 5, 6};
static long (*global_function)(long);

// trace: text_of s t=s:string n
NOINLINE static long text_of(const char *s, int n)
{
	return s[0] * n + (long)strlen(s);
}

// trace: text_in t=s:string n
static inline long text_in(const char *s, int n)
{
	sink = s[n & 1];
	return n + s[0];
}

// trace: literal s=t:string k
static inline void literal(const char *t, long k)
{
	sink = t[k & 3];
}

// trace: log_line level format=f:string
NOINLINE static void log_line(int level, const char *f)
{
	sink = level + f[0];
}

// trace: log_error format=f:string code
static inline void log_error(const char *f, int code)
{
	if (code < 0)
		log_line(code, f);
	sink = code;
}

// trace: node_of n value=n->value y=n->at.y name=n->name:string next=n->next
NOINLINE static long node_of(struct node *n)
{
	n->value++;
	return n->at.y + n->value;
}

// trace: node_in value=n->value name=n->name:string second=n->next->value
static inline long node_in(const struct node *n)
{
	return n->value * n->next->value;
}

// The argument is the address of a global.
// trace: take n value=n->value k
NOINLINE static long take(struct node *n, int k)
{
	n->value += k;
	sink = n->value;
	return n->at.x;
}

// trace: take_in n value=n->value k
static inline long take_in(struct node *n, int k)
{
	sink = n->value * k;
	return n->at.y;
}

// trace: take_numbers p third=p[2] k
static inline long take_numbers(int *p, int k)
{
	p[1] = k;
	return p[2] + p[0];
}

// trace: take_text p t=p:string
NOINLINE static long take_text(const char *p)
{
	return p[3] + sink;
}

// trace: take_function f k
NOINLINE static long take_function(long (*f)(long), long k)
{
	return f(k);
}

// trace: take_local p v=p[0] k
static inline void take_local(long *p, long k)
{
	*p += k;
	sink = *p;
}

// trace: out_local v=p[0] k
NOINLINE static void out_local(long *p, long k)
{
	*p ^= k;
	sink = *p;
}

// trace: see_globals k counter=global_counter value=global_node.value n1=shared_numbers[1] name=global_node.name:string
NOINLINE static long see_globals(long k)
{
	global_counter += k;
	return global_counter + shared_numbers[1] + global_node.value;
}

// trace: null_or p k
static inline long null_or(const long *p, long k)
{
	return p ? *p + k : k;
}

// trace: array_of a=m[0][0] b=m[1][1] n
NOINLINE static long array_of(long m[][2], int n)
{
	return m[0][0] + m[1][1] * n;
}

// trace: fill size c
static inline void fill(char *to, size_t size, char c)
{
	memset(to, c, size);
	sink = to[0];
}

static long twice(long k)
{
	return k * 2 + sink;
}

static void texts(void)
{
	static const char *const words[] = {"alpha", "beta gamma", "", "delta-epsilon-zeta", "a string of 32 bytes is this one"};
	int n = (int)truth_random();
	long k = truth_random() & 3, r;
	const char *s = words[(unsigned)n % 5];

	truth_open();
	truth_run("text_of"), truth_int("s", (uint64_t)s), truth_str("t", s), INT(n);
	truth_start();
	HIDE(s), HIDE(n);
	r = text_of(s, n);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("text_in"), truth_str("t", s), INT(n);
	truth_start();
	HIDE(s), HIDE(n);
	r = text_in(s, n);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("literal"), truth_str("s", "a literal"), INT(k);
	truth_start();
	HIDE(k);
	literal("a literal", k);
	truth_stop();

	truth_open();
	truth_run("text_of"), truth_str("t", "another literal"), INT(n);
	truth_start();
	HIDE(n);
	r = text_of("another literal", n);
	KEEP(r);
	truth_stop();

	n = -1 - (n & 0xff);
	truth_open();
	truth_run("log_error"), truth_str("format", "it failed: %d"), truth_int("code", (uint64_t)n);
	truth_run("log_line"), truth_int("level", (uint64_t)n), truth_str("format", "it failed: %d");
	truth_start();
	HIDE(n);
	log_error("it failed: %d", n);
	truth_stop();
}

static void nodes(void)
{
	struct node second = {NULL, truth_random(), "second", {truth_random(), truth_random()}};
	struct node first = {&second, truth_random(), "first", {truth_random(), truth_random()}}, *n = &first;
	long r;

	truth_open();
	truth_run("node_of"), INT(n), truth_int("value", (uint64_t)n->value), truth_int("y", (uint64_t)n->at.y), truth_str("name", n->name), truth_int("next", (uint64_t)n->next);
	truth_start();
	HIDE(n);
	r = node_of(n);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("node_in"), truth_int("value", (uint64_t)n->value), truth_str("name", n->name), truth_int("second", (uint64_t)n->next->value);
	truth_start();
	HIDE(n);
	r = node_in(n);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("node_in"), truth_int("value", (uint64_t)first.value), truth_str("name", "first"), truth_int("second", (uint64_t)second.value);
	truth_start();
	r = node_in(&first);
	KEEP(r);
	truth_stop();
}

static void run_take(const char *label, int k)
{
	truth_run(label), truth_int("n", (uint64_t)&global_node), truth_int("value", (uint64_t)global_node.value), INT(k);
}

static void addresses(void)
{
	int k = (int)truth_random();
	long v = truth_random(), r, m[2][2] = {{truth_random(), 2}, {3, truth_random()}};

	truth_open();
	run_take("take", k);
	truth_start();
	HIDE(k);
	r = take(&global_node, k);
	KEEP(r);
	truth_stop();

	truth_open();
	run_take("take_in", k);
	truth_start();
	HIDE(k);
	r = take_in(&global_node, k);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("take_numbers"), truth_int("p", (uint64_t)&shared_numbers[2]), truth_int("third", (uint64_t)shared_numbers[4]), INT(k);
	truth_start();
	HIDE(k);
	r = take_numbers(&shared_numbers[2], k);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("take_text"), truth_int("p", (uint64_t)global_text), truth_str("t", global_text);
	truth_start();
	r = take_text(global_text);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("take_function"), truth_int("f", (uint64_t)twice), truth_int("k", (uint64_t)v);
	truth_start();
	HIDE(v);
	r = take_function(twice, v);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("take_local"), truth_int("p", (uint64_t)&v), INT(v), truth_int("k", (uint64_t)k);
	truth_start();
	KEEPMEM(v);
	take_local(&v, k);
	truth_stop();

	v = truth_random();
	truth_open();
	truth_run("take_local"), INT(v), truth_int("k", (uint64_t)k);
	truth_start();
	HIDE(v), HIDE(k);
	take_local(&v, k);
	KEEP(v);
	truth_stop();

	truth_open();
	truth_run("out_local"), INT(v), truth_int("k", (uint64_t)k);
	truth_start();
	HIDE(v), HIDE(k);
	out_local(&v, k);
	KEEP(v);
	truth_stop();

	truth_open();
	truth_run("array_of"), truth_int("a", (uint64_t)m[0][0]), truth_int("b", (uint64_t)m[1][1]), truth_int("n", (uint64_t)k);
	truth_start();
	HIDE(k);
	r = array_of(m, k);
	KEEP(r);
	truth_stop();
}

static void globals(void)
{
	long k = truth_random(), r;
	const long *p = &k;
	char room[40];

	shared_numbers[1] = (int)k;
	truth_open();
	truth_run("see_globals"), INT(k), truth_int("counter", (uint64_t)global_counter), truth_int("value", (uint64_t)global_node.value), truth_int("n1", (uint64_t)shared_numbers[1]), truth_str("name", global_node.name);
	truth_start();
	HIDE(k);
	r = see_globals(k);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("null_or"), truth_int("p", 0), INT(k);
	truth_start();
	HIDE(k);
	r = null_or(NULL, k);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("null_or"), INT(p), truth_int("k", 4);
	truth_start();
	HIDE(p);
	r = null_or(p, 4);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("fill"), truth_int("size", sizeof room), truth_int("c", 'z');
	truth_start();
	fill(room, sizeof room, 'z');
	KEEPMEM(room);
	truth_stop();
	global_function = twice;
	KEEPMEM(global_function);
}

void pointers(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		texts();
		nodes();
		addresses();
		globals();
	}
}
