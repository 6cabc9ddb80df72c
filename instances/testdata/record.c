// A user's program whose arguments are in a record, and which has a function of its own.
// Built as func.c is.
#define SEC(name) __attribute__((section(name), used))

typedef unsigned char __u8;
typedef signed long long __s64;
typedef unsigned long long __u64;

static long (*const trace_printk)(const char *fmt, unsigned int size, ...) = (void *)6;

struct func_args {
	char text[64] __attribute__((aligned(8)));
	__s64 l;
	char c[16] __attribute__((aligned(8)));
	__u64 e;
	__s64 lv;
	__u64 t;
};

static __attribute__((noinline)) int print(const char *text, __s64 l, int err)
{
	char fmt[] = "%s %ld err %d\n";

	trace_printk(fmt, sizeof(fmt), text, l, err);
	return (int)l + err;
}

SEC("func=words text:string l c=$comm e lv t")
int func(void *ctx, int err, struct func_args *args)
{
	char text[64];

	if (err & 1)
		return 0;
	for (int i = 0; i < 64; i++)
		text[i] = args->text[i];
	text[63] = args->c[0];
	return print(text, args->l + args->lv, err) + print(args->c, args->e, args->t);
}

char _license[] SEC("license") = "GPL";
