/* SPDX-License-Identifier: MIT */
/*
 * Build: make -C testdata/vmlinux-fixtures (see Makefile: this unit is compiled
 * with the flags of its image), for example
 *   gcc-12 -O2 -g -gdwarf-5 $(KERNEL_CFLAGS) -c opaque.c
 *
 * Functions that the other units call and cannot see into, and the patch
 * tables of a kernel image: jump labels, static calls, alternatives, BUG.
 */
#include "toy.h"

u64 toy_ticks = 1;

u64 opaque_use(u64 value)
{
	use(value);
	return value ^ toy_ticks;
}

u64 opaque_ptr(const void *p)
{
	use(p);
	return *(const u8 *)p;
}

u64 opaque_pure(u64 value)
{
	return value * 2654435761u;
}

u32 port_read(u32 port)
{
	u32 v;

	port_input(v, port);
	return v;
}

void toy_panic(const char *why, u64 value)
{
	use(why);
	use(value);
	for (;;)
		cpu_halt();
}

/* Entries laid out as in Linux 6.1, each with its symbol pair in vmlinux.lds. */
#ifdef __x86_64__
u64 branch_key;

/* A jump label: one nop of five bytes. Entry: s32 code, s32 target, s64 key. */
int noinline patch_branch(int budget)
{
	asm goto("patch_branch_site: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n\t"
		 ".pushsection __jump_table, \"aw\"\n\t"
		 ".balign 8\n\t"
		 ".long patch_branch_site - .\n\t"
		 ".long %l[slow] - .\n\t"
		 ".quad %c0 - .\n\t"
		 ".popsection"
		 : : "i"(&branch_key) : : slow);
	return budget;
slow:
	return (int)opaque_use((u64)budget);
}

/* A static call: call rel32. Entry: s32 site, s32 key. */
void noinline patch_call(void)
{
	asm volatile("patch_call_site: call port_read\n\t"
		     ".pushsection .static_call_sites, \"a\"\n\t"
		     ".balign 4\n\t"
		     ".long patch_call_site - .\n\t"
		     ".long branch_key - .\n\t"
		     ".popsection"
		     : : : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory");
}

/* An alternative: s32 site, s32 replacement, u16 feature, u8 and u8 lengths. */
void noinline patch_alternative(void *line)
{
	asm volatile("patch_alternative_site: .byte 0x66, 0x66, 0x90\n\t"
		     ".pushsection .altinstr_replacement, \"ax\"\n\t"
		     "patch_alternative_with: .byte 0x0f, 0xae, 0xe8\n\t" /* lfence */
		     ".popsection\n\t"
		     ".pushsection .altinstructions, \"a\"\n\t"
		     ".long patch_alternative_site - .\n\t"
		     ".long patch_alternative_with - .\n\t"
		     ".word 122\n\t"
		     ".byte 3, 3\n\t"
		     ".popsection"
		     : : "r"(line) : "memory");
}

/* A BUG: ud2. Entry: s32 address, s32 file, u16 line, u16 flags. */
void noinline patch_bug(int level)
{
	if (unlikely(level > 3))
		asm volatile("patch_bug_site: ud2\n\t"
			     ".pushsection .rodata.str, \"a\"\n\t"
			     "patch_bug_file: .asciz \"opaque.c\"\n\t"
			     ".popsection\n\t"
			     ".pushsection __bug_table, \"aw\"\n\t"
			     ".long patch_bug_site - .\n\t"
			     ".long patch_bug_file - .\n\t"
			     ".word 99, 0\n\t"
			     ".popsection");
	toy_ticks++;
}
#endif
