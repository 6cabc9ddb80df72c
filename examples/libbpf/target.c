/* Five functions of one kind: four are inlined into work, one of them at two places. They run 10,000 times in all. */
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

static inline __attribute__((always_inline)) void my_func_d_abcd(unsigned char arg1)
{
	sink |= arg1;
}

static inline __attribute__((always_inline)) void my_func_e_abcd(const long *arg0, long arg1)
{
	sink ^= *arg0 + arg1;
}

__attribute__((noinline)) long work(const long *n)
{
	my_func_a_abcd(*n + 1);
	if (*n & 1)
		my_func_b_abcd(*n);
	else
		my_func_a_abcd(*n * 2);
	my_func_c_abcd(*n);
	my_func_d_abcd(*n);
	my_func_e_abcd(n, 5 - *n);
	return sink;
}

int main(void)
{
	for (long i = 0; i < 2000; i++)
		work(&i);
	return 0;
}
