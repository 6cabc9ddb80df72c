// The program, and functions that only link-time optimization can inline into other units.
#include "program.h"

static volatile long sink;

// trace: far_sum n depth value=n->value
long far_sum(const struct node *n, int depth)
{
	long r = 0;

	for (; n && depth; n = n->next, depth--)
		r += n->value;
	return r;
}

// trace: far_mode mode x
long far_mode(int mode, long x)
{
	sink = mode;
	return mode == 4 ? x * 3 : x;
}

int main(void)
{
	scalars();
	structures();
	loops();
	pointers();
	calls();
	kinds();
	assigned();
	truth_print();
	return 0;
}
