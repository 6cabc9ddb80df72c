#include "lost.h"

struct mask global;
struct outer *made;
volatile int sink;

void truth(const char *what, const volatile void *p) { printf("%s %lu\n", what, (unsigned long)p); }
void hold(struct inner *in, int how) { in->pad += how; }

#define DECLARE(i) void caller##i(struct outer *, long); void said##i(struct outer *, long); void reader##i(struct outer *, long); void saidby##i(struct outer *, long);
HALF(DECLARE)
REST(DECLARE)

#define RUN(i) \
	printf("caller%d 0\n", i); \
	said##i(made + argc, 2 * i); \
	caller##i(made + argc, 2 * i); \
	printf("reader%d 0\n", i); \
	saidby##i(made + argc, 2 * i); \
	reader##i(made + argc, 2 * i);

int main(int argc, char **argv)
{
	made = calloc(8, sizeof *made);
	for (int i = 0; i < 8; i++)
		made[i].in = calloc(1, sizeof(struct inner));
	HALF(RUN)
	REST(RUN)
}
