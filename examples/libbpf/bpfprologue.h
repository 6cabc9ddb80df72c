/*
 * Attaches the programs of an object file that "prolog-dump object" wrote, with libbpf 1.1 or newer:
 *
 *	struct bpfprologue attached = {};
 *
 *	obj = bpf_object__open_file("count.o", NULL);	(or a skeleton's: skel->obj)
 *	bpfprologue_prepare(obj);			before the object is loaded
 *	bpf_object__load(obj);
 *	bpfprologue_attach(obj, -1, &attached);		-1 for all processes, 0 for this one
 *	bpfprologue_detach(&attached);
 *
 * Functions return 0, or a negative error number. Sites that the kernel refuses are counted. Uprobes are attached together where the kernel can.
 */
#ifndef BPFPROLOGUE_H
#define BPFPROLOGUE_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

/* The tables in the map .rodata.sites: see go doc github.com/bpfprologue/bpfprologue/export Object. */
struct bpfprologue_site {
	unsigned long long offset, cookie;
	unsigned int flags, number;
	char where[64];
};
struct bpfprologue_image {
	char build_id[48], path[272];
	unsigned long long stext;
};
enum { BPFPROLOGUE_RETURN = 1, BPFPROLOGUE_AGAIN = 2 };
#define BPFPROLOGUE_MULTI ((enum bpf_attach_type)48) /* BPF_TRACE_UPROBE_MULTI */

struct bpfprologue {
	struct bpfprologue_link { struct bpf_link *link; int fd; } *links; /* the latter where the former is NULL */
	int count;		    /* of links */
	int probes, refused, error; /* sites with a probe, and without, and the last error */
};

/* bpfprologue_table returns a program's table, and how many entries of a size it has. */
static inline void *bpfprologue_table(const struct bpf_object *obj, const char *kind, const char *program, size_t size, size_t *n)
{
	const struct btf *btf = bpf_object__btf(obj);
	struct bpf_map *map = bpf_object__find_map_by_name(obj, ".rodata.sites");
	char *data = map ? (char *)bpf_map__initial_value(map, n) : NULL;
	int id = btf ? btf__find_by_name_kind(btf, ".rodata.sites", BTF_KIND_DATASEC) : -1;
	const struct btf_type *section = id > 0 ? btf__type_by_id(btf, id) : NULL;
	char name[256];
	*n = 0, snprintf(name, sizeof(name), "%s_%s", kind, program);
	for (int i = 0; data && section && i < btf_vlen(section); i++) {
		const struct btf_var_secinfo *v = btf_var_secinfos(section) + i;
		if (!strcmp(btf__name_by_offset(btf, btf__type_by_id(btf, v->type)->name_off), name)) {
			*n = v->size / size;
			return data + v->offset;
		}
	}
	return NULL;
}

/* bpfprologue_check compares the build ID of a file, or of the running kernel, with that of the image that an object is for. */
static inline int bpfprologue_check(const struct bpfprologue_image *image)
{
	static unsigned char b[1 << 16];
	FILE *f = fopen(image->path[0] ? image->path : "/sys/kernel/notes", "re");
	size_t n = f ? fread(b, 1, sizeof(b), f) : 0;
	int err = -ENOENT;
	if (!f)
		return -errno;
	fclose(f);
	/* The note has the lengths of its name and the ID, NT_GNU_BUILD_ID, the name, and the ID. */
	for (size_t i = 0; err && i + 16 <= n; i += 4) {
		char text[sizeof(image->build_id)] = "";
		size_t size = b[i + 4];
		if (memcmp(b + i, "\4\0\0", 4) || memcmp(b + i + 5, "\0\0\0\3\0\0\0GNU", 11) || 2 * size >= sizeof(text) || size > n - i - 16)
			continue;
		for (size_t k = 0; k < size; k++)
			sprintf(text + 2 * k, "%02x", b[i + 16 + k]);
		err = strcmp(text, image->build_id) ? -ESTALE : 0;
	}
	return err;
}

/* bpfprologue_move makes link-time addresses of a kernel those of the running one. */
static inline int bpfprologue_move(struct bpfprologue_image *image, unsigned long long *addresses, size_t n)
{
	unsigned long long at = 0;
	char name[64] = "";
	FILE *f = fopen("/proc/kallsyms", "re");
	if (!f)
		return -errno;
	while (strcmp(name, "_stext") && fscanf(f, "%llx %*c %63s%*[^\n]", &at, name) == 2);
	fclose(f);
	if (!at || strcmp(name, "_stext"))
		return -EPERM; /* the file has zeros for those who may not see addresses */
	for (size_t i = 0; i < n; i++)
		addresses[i] += at - image->stext;
	image->stext = at;
	return 0;
}

/* bpfprologue_multi attaches a program to places of a file at once. It returns a file descriptor. The structure is of union bpf_attr (Linux 6.6). */
static inline int bpfprologue_multi(int prog, const char *path, const struct bpfprologue_site *s, size_t n, int pid)
{
	unsigned long long *of = calloc(2 * n, sizeof(*of));
	struct {
		unsigned int prog, target, type, flags;
		unsigned long long path, offsets, counters, cookies;
		unsigned int count, multi_flags, pid, unused;
	} a = { prog, 0, BPFPROLOGUE_MULTI, 0, (size_t)path, (size_t)of, 0, (size_t)(of + n), n, s->flags & BPFPROLOGUE_RETURN, pid, 0 };
	int fd;
	for (size_t i = 0; of && i < n; i++)
		of[i] = s[i].offset, of[n + i] = s[i].cookie;
	fd = of && (fd = syscall(__NR_bpf, BPF_LINK_CREATE, &a, sizeof(a))) >= 0 ? fd : -errno;
	return free(of), fd;
}

/* bpfprologue_has_multi asks the kernel. Those that take a process for one of its threads do not refuse -1. */
static inline int bpfprologue_has_multi(void)
{
	struct bpf_insn code[] = { { .code = BPF_ALU64 | BPF_MOV | BPF_K }, { .code = BPF_JMP | BPF_EXIT } };
	struct bpfprologue_site s = {};
	LIBBPF_OPTS(bpf_prog_load_opts, o, .expected_attach_type = BPFPROLOGUE_MULTI);
	int prog = bpf_prog_load(BPF_PROG_TYPE_KPROBE, NULL, "GPL", code, 2, &o);
	int has = bpfprologue_multi(prog, "/", &s, 1, 0) == -EBADF && bpfprologue_multi(prog, "/", &s, 1, -1) == -EINVAL;
	return close(prog), has;
}

/* bpfprologue_prepare is called before an object is loaded. It returns -ESTALE if a file or the kernel is another build than its object's. */
static inline int bpfprologue_prepare(struct bpf_object *obj)
{
	struct bpf_program *prog;
	int err, multi = bpfprologue_has_multi();
	bpf_object__for_each_program(prog, obj) {
		size_t one, n;
		struct bpfprologue_image *image = bpfprologue_table(obj, "image", bpf_program__name(prog), sizeof(*image), &one);
		unsigned long long *addresses = bpfprologue_table(obj, "addresses", bpf_program__name(prog), sizeof(*addresses), &n);
		if (image && ((err = bpfprologue_check(image)) || (n && (err = bpfprologue_move(image, addresses, n)))))
			return err;
		if (image && image->path[0] && multi)
			bpf_program__set_expected_attach_type(prog, BPFPROLOGUE_MULTI);
	}
	return 0;
}

/* bpfprologue_link attaches a program at sites of one kind: together, or otherwise each for itself. */
static inline void bpfprologue_link(struct bpfprologue *to, struct bpf_program *prog, int pid, const struct bpfprologue_image *image, const struct bpfprologue_site *s, size_t n)
{
	int kind = bpf_program__expected_attach_type(prog), returns = s->flags & BPFPROLOGUE_RETURN;
	struct bpfprologue_link l = { .fd = -1 }, *links = realloc(to->links, (to->count + 1) * sizeof(*links));
	to->links = links ? links : to->links;
	if (links && kind == BPFPROLOGUE_MULTI) {
		l.fd = bpfprologue_multi(bpf_program__fd(prog), image->path, s, n, pid < 0 ? 0 : pid ? pid : getpid());
	} else if (links && image->path[0]) {
		LIBBPF_OPTS(bpf_uprobe_opts, o, .bpf_cookie = s->cookie, .retprobe = returns);
		l.link = bpf_program__attach_uprobe_opts(prog, pid, image->path, s->offset, &o);
	} else if (links) {
		LIBBPF_OPTS(bpf_kprobe_opts, o, .bpf_cookie = s->cookie, .offset = s->offset, .retprobe = returns);
		l.link = bpf_program__attach_kprobe_opts(prog, s->where, &o);
	}
	if (l.link || l.fd >= 0)
		to->links[to->count++] = l, to->probes += n;
	else if (n == 1 || !links)
		to->refused += n, to->error = links && kind == BPFPROLOGUE_MULTI ? l.fd : -errno;
	for (size_t i = 0; links && n > 1 && l.fd < 0 && i < n; i++)
		bpfprologue_link(to, prog, pid, image, s + i, 1);
}

/* bpfprologue_attach attaches all programs at all their sites: for a process, for this one if pid is 0, for all if it is negative. A kernel's probes have no process. */
static inline int bpfprologue_attach(struct bpf_object *obj, int pid, struct bpfprologue *to)
{
	struct bpf_program *prog;
	bpf_object__for_each_program(prog, obj) {
		size_t n, one, at, end;
		const struct bpfprologue_site *s = bpfprologue_table(obj, "sites", bpf_program__name(prog), sizeof(*s), &n);
		const struct bpfprologue_image *image = bpfprologue_table(obj, "image", bpf_program__name(prog), sizeof(*image), &one);
		int multi = bpf_program__expected_attach_type(prog) == BPFPROLOGUE_MULTI;
		for (at = 0; image && at < n; at = end) {
			for (end = at + 1; multi && end < n && !((s[end].flags ^ s[at].flags) & BPFPROLOGUE_RETURN);)
				end++;
			bpfprologue_link(to, prog, pid, image, s + at, end - at);
		}
	}
	return to->probes ? 0 : to->error ? to->error : -ENOENT;
}

static inline void bpfprologue_detach(struct bpfprologue *from)
{
	for (int i = 0; i < from->count; i++)
		from->links[i].link ? (void)bpf_link__destroy(from->links[i].link) : (void)close(from->links[i].fd);
	free(from->links);
	memset(from, 0, sizeof(*from));
}

#endif
