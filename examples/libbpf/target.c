/* Three functions of one kind: two are inlined into work, one at two places. */
volatile long sink;

static inline __attribute__((always_inline)) void my_func_a_abcd(long arg1)
{
	sink += arg1;
}

static inline __attribute__((always_inline)) void my_func_b_abcd(int arg1)
{
	sink ^= arg1 * 3;
}

__attribute__((noinline)) void my_func_c_abcd(short arg1)
{
	sink -= arg1;
}

__attribute__((noinline)) long work(long n)
{
	my_func_a_abcd(n + 1);
	if (n & 1)
		my_func_b_abcd(n);
	else
		my_func_a_abcd(n * 2);
	my_func_c_abcd(n);
	return sink;
}

int main(void)
{
	for (long i = 0; i < 2500; i++)
		work(i);
	return 0;
}
