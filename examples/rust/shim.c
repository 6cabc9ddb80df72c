/* The functions of ../libbpf/bpfprologue.h, which are inline there, for other languages. */
#include "bpfprologue.h"

int prologue_prepare(struct bpf_object *obj) { return bpfprologue_prepare(obj); }
int prologue_attach(struct bpf_object *obj, int pid, struct bpfprologue *to) { return bpfprologue_attach(obj, pid, to); }
void prologue_detach(struct bpfprologue *from) { bpfprologue_detach(from); }
