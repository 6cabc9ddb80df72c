/* Runs a command while count.bpf.c counts: ./count ./target */
#include "bpfprologue.h"
#include "count.skel.h"

int main(int argc, char **argv)
{
	struct bpfprologue attached = {};
	struct count_bpf *skel = count_bpf__open();
	int err = skel ? bpfprologue_prepare(skel->obj) : -errno;

	if (!err)
		err = count_bpf__load(skel);
	if (!err)
		err = bpfprologue_attach(skel->obj, -1, &attached);
	if (err) {
		fprintf(stderr, "count: %s\n", strerror(-err));
		return 1;
	}
	printf("%d probes, %d refused\n", attached.probes, attached.refused);
	fflush(stdout);
	err = argc > 1 ? system(argv[1]) : 0;
	printf("%ld hits, %ld without the argument, sum %ld\n", skel->bss->hits, skel->bss->missing, skel->bss->sum);
	bpfprologue_detach(&attached);
	count_bpf__destroy(skel);
	return err;
}
