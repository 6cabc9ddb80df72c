// A user's program: its section name is the definition. Built with
//   clang-14 -O2 -g -target bpf -c func.c -o func.o
// (make -C instances/testdata); func.o is committed, so that tests need no clang.
#define SEC(name) __attribute__((section(name), used))

static long (*const trace_printk)(const char *fmt, unsigned int size, ...) = (void *)6;

struct hit {
	long value;
	int err;
};

SEC("func=my_func_*_abcd arg1")
int func(void *ctx, int err, long arg1)
{
	struct hit hit = { .value = arg1, .err = err };
	char fmt[] = "arg1 %ld err %d\n";

	if (err)
		return 0;
	for (int i = 0; i < 3; i++)
		trace_printk(fmt, sizeof(fmt), hit.value + i, hit.err);
	return 1;
}

char _license[] SEC("license") = "GPL";
