/* Counts the runs of functions by the value of an argument. The section name is a definition: "prolog-dump object" makes of this object one
 * with the prologues of all places where such a function runs, inlined or not. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 10240);
	__type(key, long);
	__type(value, long);
} counts SEC(".maps");

long hits, missing, sum;
const volatile long scale = 1;

static __attribute__((noinline)) long scaled(long v)
{
	return v * scale;
}

SEC("func=my_func_*_abcd arg1")
int func(void *ctx, int err, long arg1)
{
	long one = 1, *n;

	if (err) {
		__sync_fetch_and_add(&missing, 1);
		return 0;
	}
	__sync_fetch_and_add(&hits, 1);
	__sync_fetch_and_add(&sum, scaled(arg1));
	n = bpf_map_lookup_elem(&counts, &arg1);
	if (n)
		__sync_fetch_and_add(n, 1);
	else
		bpf_map_update_elem(&counts, &arg1, &one, BPF_NOEXIST);
	return 0;
}

char _license[] SEC("license") = "GPL";
