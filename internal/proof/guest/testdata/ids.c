/* Attaches an object's programs with the header of examples/libbpf, makes system calls, and prints what was counted. */
#include "bpfprologue.h"
#include "ids.skel.h"

int main(void)
{
	struct bpfprologue attached = {};
	struct ids_bpf *skel = ids_bpf__open();
	int err = skel ? bpfprologue_prepare(skel->obj) : -errno;

	if (!err)
		err = ids_bpf__load(skel);
	if (!err)
		err = bpfprologue_attach(skel->obj, -1, &attached);
	if (err) {
		fprintf(stderr, "ids: %s\n", strerror(-err));
		return 1;
	}
	for (int i = 1; i <= 100; i++) {
		getpgid(0x40000000 + i);
		getpgrp();
	}
	printf("%d probes, %d refused: %ld hits, %ld without a value, pids %ld, processors %ld\n", attached.probes, attached.refused,
	       skel->bss->hits, skel->bss->missing, skel->bss->pids, skel->bss->cpus);
	bpfprologue_detach(&attached);
	ids_bpf__destroy(skel);
	return 0;
}
