/* Counts what getpgid and getpgrp ask for. The second argument is a variable of the kernel: its address is where that was loaded. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

long hits, missing, pids, cpus;

SEC("func=do_getpgid pid nr_cpu_ids")
int ids(void *ctx, int err, long pid, long cpus_of_kernel)
{
	__sync_fetch_and_add(&hits, 1);
	if (err)
		__sync_fetch_and_add(&missing, 1);
	__sync_fetch_and_add(&pids, pid);
	__sync_fetch_and_add(&cpus, cpus_of_kernel);
	return 0;
}

char _license[] SEC("license") = "GPL";
