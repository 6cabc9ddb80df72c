// Hands each hit of a definition to user space. The structures and the prototype are those that
//   prolog-dump -x IMAGE header 'mix key k'
// prints. Built with
//   clang-14 -O2 -g -target bpf -c events.c -o events.o
// (make -C examples/events/bpf) and committed, so that the example needs no clang.
#define SEC(name) __attribute__((section(name), used))

typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;

static __u64 (*const get_attach_cookie)(void *ctx) = (void *)174;
static long (*const ringbuf_output)(void *map, void *data, __u64 size, __u64 flags) = (void *)130;

struct func_event {
	__u64 site; /* bpf_get_attach_cookie(ctx) */
	__u64 err;
	__s64 key;
	__u64 k;
};

struct {
	int (*type)[27]; // BPF_MAP_TYPE_RINGBUF
	int (*max_entries)[1 << 20];
} events SEC(".maps");

SEC("func=mix key k")
int func(void *ctx, int err, __s64 key, __u32 k)
{
	struct func_event e = {get_attach_cookie(ctx), err, key, k};

	ringbuf_output(&events, &e, sizeof(e), 0);
	return 0;
}

char _license[] SEC("license") = "GPL";
