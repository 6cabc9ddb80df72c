/* A little of everything that compilers describe, without a header: any target can build it. */
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long u64;

enum color { RED, GREEN = 5, BLUE = -3 };
struct point { int x, y; };
struct node {
	struct node *next;
	struct point at;
	u32 low : 3, mid : 7;
	enum color color;
	char name[12];
	union { u64 number; void *pointer; struct point pair[2]; };
	int (*visit)(struct node *, const volatile u8 *);
};

int counter;
static u64 table[4][3];
__thread int own;
const char *const greeting = "hello";

#define KEEP(x) __asm__ volatile("" : : "r"(x) : "memory")

static inline __attribute__((always_inline)) u32 mix(u32 a, u32 b, const u32 rounds)
{
	u32 sum = a;

	for (u32 i = 0; i < rounds; i++)
		sum = sum * 31 + (b ^ i);
	return sum;
}

static inline __attribute__((always_inline)) int step(struct node *n, struct point by)
{
	struct point next = { n->at.x + by.x, n->at.y + by.y };
	int sum = mix(next.x, next.y, 2);

	n->at = next;
	return sum;
}

__attribute__((noinline)) int walk(struct node *head, u64 limit, u8 flag, short s)
{
	int total = 0;

	for (struct node *n = head; n && limit; n = n->next, limit--) {
		total += step(n, (struct point){ flag, s });
		if (n->visit && n->visit(n, &flag) < 0)
			break;
	}
	KEEP(total);
	return total;
}

__attribute__((noinline)) struct point turn(struct point p, double by, float f)
{
	struct point q = { p.y, -p.x };

	if (by > f)
		q.x += (int)(by * 2);
	return q;
}

__attribute__((noinline)) u64 fill(int n, const char *text)
{
	u8 room[n + 1];
	u64 sum = 0;

	for (int i = 0; i < n; i++) {
		room[i] = text[i];
		sum += mix(room[i], i, 1);
	}
	KEEP(room);
	own += n;
	table[n & 3][1] = sum;
	return sum;
}

__attribute__((noinline)) int choose(enum color c, u32 a, u32 b, u32 d, u32 e, u32 f, u32 g, u32 h)
{
	switch (c) {
	case RED: return mix(a, b, 3);
	case GREEN: return mix(d, e, 3);
	case BLUE: return mix(f, g, 3) + h;
	default: __builtin_trap();
	}
}

int entry(struct node *n, int count)
{
	u64 sum = fill(count & 7, greeting) + walk(n, sum = 3, count, 2);
	struct point p = turn(n->at, 1.5, 2.5f);

	counter += choose(n->color, p.x, p.y, count, 4, 5, 6, 7);
	return sum + counter;
}
