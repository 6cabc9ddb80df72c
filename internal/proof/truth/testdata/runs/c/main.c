// The program, and functions that only link-time optimization can inline into other units.
#include "runs.h"

volatile int sink, source;
int numbers[64];

DEFINE(far_body);
DEFINE(far_loop);

// trace: far_body
long far_body(int a, long b)
{
	RUN(far_body);
	if (a > 5)
		sink = a;
	return a * b;
}

// trace: far_loop
int far_loop(const int *p, int n)
{
	int s = 0;

	while (n-- > 0)
		s += p[n] ^ sink;
	RUN(far_loop);
	return s;
}

void show_far(void)
{
	SHOW(far_body);
	SHOW(far_loop);
}

int main(void)
{
	for (int i = 0; i < 64; i++)
		numbers[i] = i * 7 % 11;
	for (int k = 0; k < 12; k++) {
		bodies(k);
		loops(k);
		paths(k);
	}
	show_bodies();
	show_loops();
	show_paths();
	show_far();
	return 0;
}
