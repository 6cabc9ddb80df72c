// Counts the hits at each site of the matching functions, and adds up the values of the
// argument. The section name is the definition. Built with
//   clang-14 -O2 -g -target bpf -c hits.c -o hits.o
// and once more for the kernel, with -DDEFINITION=..., as kmalloc.o
// (make -C examples/hits/bpf); both are committed, so that the example needs no clang.
#ifndef DEFINITION
#define DEFINITION "func=m[aiu]* key"
#endif

#define SEC(name) __attribute__((section(name), used))

typedef unsigned int __u32;
typedef unsigned long long __u64;

static __u64 (*const get_attach_cookie)(void *ctx) = (void *)174;
static void *(*const map_lookup_elem)(void *map, const void *key) = (void *)1;

struct count {
	__u64 hits, sum, missing;
};

// One entry for each site: the attach cookie is its number.
struct {
	int (*type)[2]; // BPF_MAP_TYPE_ARRAY
	__u32 *key;
	struct count *value;
	int (*max_entries)[4096];
} counts SEC(".maps");

SEC(DEFINITION)
int func(void *ctx, int err, long value)
{
	__u32 site = get_attach_cookie(ctx);
	struct count *c = map_lookup_elem(&counts, &site);

	if (!c)
		return 0;
	__sync_fetch_and_add(&c->hits, 1);
	if (err)
		__sync_fetch_and_add(&c->missing, 1);
	else
		__sync_fetch_and_add(&c->sum, value);
	return 0;
}

char _license[] SEC("license") = "GPL";
