/*
 * Attaches the programs of an object file that "prolog-dump object" wrote, with libbpf 1.1 or newer:
 *
 *	struct bpfprologue attached = {};
 *
 *	obj = bpf_object__open_file("count.o", NULL);	(or a skeleton's: skel->obj)
 *	bpfprologue_prepare(obj);			before the object is loaded
 *	bpf_object__load(obj);
 *	bpfprologue_attach(obj, -1, &attached);		-1 for all processes
 *	...
 *	bpfprologue_detach(&attached);
 *
 * Functions return 0, or a negative error number. Sites that the kernel refuses are counted, and the last error is kept.
 */
#ifndef BPFPROLOGUE_H
#define BPFPROLOGUE_H

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
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
	char build_id[48];
	char path[272];
};
enum { BPFPROLOGUE_RETURN = 1, BPFPROLOGUE_AGAIN = 2 };

struct bpfprologue {
	struct bpf_link **links;
	int probes, refused; /* sites with a probe, and without */
	int count;	     /* of links */
	int error;	     /* of the last site that was refused */
};

/* bpfprologue_table returns a program's table, and how many bytes it has. */
static inline const void *bpfprologue_table(const struct bpf_object *obj, const char *kind, const char *program, size_t *bytes)
{
	const struct btf *btf = bpf_object__btf(obj);
	const struct bpf_map *map = bpf_object__find_map_by_name(obj, ".rodata.sites");
	const char *data = map ? (const char *)bpf_map__initial_value((struct bpf_map *)map, bytes) : NULL;
	int id = btf ? btf__find_by_name_kind(btf, ".rodata.sites", BTF_KIND_DATASEC) : -1;
	const struct btf_type *section = id > 0 ? btf__type_by_id(btf, id) : NULL;
	char name[256];

	snprintf(name, sizeof(name), "%s_%s", kind, program);
	for (int i = 0; data && section && i < btf_vlen(section); i++) {
		const struct btf_var_secinfo *v = btf_var_secinfos(section) + i;

		if (!strcmp(btf__name_by_offset(btf, btf__type_by_id(btf, v->type)->name_off), name)) {
			*bytes = v->size;
			return data + v->offset;
		}
	}
	return NULL;
}

/* bpfprologue_notes looks for a build ID, in hexadecimal digits, among notes. */
static inline int bpfprologue_notes(const unsigned char *b, size_t n, const char *want)
{
	while (n > sizeof(Elf64_Nhdr)) {
		const Elf64_Nhdr *h = (const void *)b;
		size_t name = ((size_t)h->n_namesz + 3) & ~3UL, desc = ((size_t)h->n_descsz + 3) & ~3UL, all = sizeof(*h) + name + desc;
		char text[48] = "";

		if (all > n)
			break;
		if (h->n_type == NT_GNU_BUILD_ID && h->n_namesz == 4 && !memcmp(b + sizeof(*h), "GNU", 4)) {
			for (unsigned i = 0; i < h->n_descsz && i < 23; i++)
				sprintf(text + 2 * i, "%02x", b[sizeof(*h) + name + i]);
			return strcmp(text, want) ? -ESTALE : 0;
		}
		b += all, n -= all;
	}
	return -ENOENT;
}

/* bpfprologue_check compares the build ID of a file, or of the running kernel, with that of the image that an object is for. */
static inline int bpfprologue_check(const struct bpfprologue_image *image)
{
	static unsigned char b[1 << 16];
	FILE *f = fopen(image->path[0] ? image->path : "/sys/kernel/notes", "re");
	size_t n = f ? fread(b, 1, sizeof(b), f) : 0;
	const Elf64_Ehdr *e = (const void *)b;
	int err = -ENOENT;

	if (!f)
		return -errno;
	if (!image->path[0]) {
		err = bpfprologue_notes(b, n, image->build_id);
	} else if (n > sizeof(*e) && e->e_ident[EI_CLASS] == ELFCLASS64) {
		for (int i = 0; i < e->e_phnum && e->e_phoff <= n && (i + 1) * sizeof(Elf64_Phdr) <= n - e->e_phoff && err == -ENOENT; i++) {
			const Elf64_Phdr *p = (const void *)(b + e->e_phoff + i * sizeof(*p));

			if (p->p_type == PT_NOTE && p->p_offset <= n && p->p_filesz <= n - p->p_offset)
				err = bpfprologue_notes(b + p->p_offset, p->p_filesz, image->build_id);
		}
	}
	fclose(f);
	return err;
}

/* bpfprologue_prepare says what is wrong before an object is loaded: -ESTALE if a file or the kernel is another build than its object's. */
static inline int bpfprologue_prepare(struct bpf_object *obj)
{
	struct bpf_program *prog;

	bpf_object__for_each_program(prog, obj) {
		size_t bytes;
		const struct bpfprologue_image *image = bpfprologue_table(obj, "image", bpf_program__name(prog), &bytes);
		int err = image ? bpfprologue_check(image) : 0;

		if (err)
			return err;
	}
	return 0;
}

/* bpfprologue_attach attaches all programs at all their sites. */
static inline int bpfprologue_attach(struct bpf_object *obj, int pid, struct bpfprologue *to)
{
	struct bpf_program *prog;

	bpf_object__for_each_program(prog, obj) {
		size_t bytes = 0, unused;
		const char *name = bpf_program__name(prog);
		const struct bpfprologue_site *s = bpfprologue_table(obj, "sites", name, &bytes);
		const struct bpfprologue_image *image = bpfprologue_table(obj, "image", name, &unused);

		if (!s || !image)
			continue;
		for (size_t i = 0; i < bytes / sizeof(*s); i++) {
			struct bpf_link *link, **links = (struct bpf_link **)realloc(to->links, (to->count + 1) * sizeof(*links));

			if (!links)
				return -ENOMEM;
			to->links = links;
			if (image->path[0]) {
				LIBBPF_OPTS(bpf_uprobe_opts, o, .bpf_cookie = s[i].cookie, .retprobe = s[i].flags & BPFPROLOGUE_RETURN);
				link = bpf_program__attach_uprobe_opts(prog, pid, image->path, s[i].offset, &o);
			} else {
				LIBBPF_OPTS(bpf_kprobe_opts, o, .bpf_cookie = s[i].cookie, .offset = s[i].offset, .retprobe = s[i].flags & BPFPROLOGUE_RETURN);
				link = bpf_program__attach_kprobe_opts(prog, s[i].where, &o);
			}
			if (!link) {
				to->refused++, to->error = -errno;
				continue;
			}
			to->links[to->count++] = link, to->probes++;
		}
	}
	return to->probes ? 0 : to->error ? to->error : -ENOENT;
}

static inline void bpfprologue_detach(struct bpfprologue *from)
{
	while (from->count)
		bpf_link__destroy(from->links[--from->count]);
	free(from->links);
	memset(from, 0, sizeof(*from));
}

#endif
