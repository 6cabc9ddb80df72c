/* SPDX-License-Identifier: MIT */
/*
 * Build: make -C testdata/vmlinux-fixtures lib-gcc12-O2-dwarf5.elf, which runs
 *   gcc-12 -O2 -g -gdwarf-5 -fPIC -ftls-model=global-dynamic -shared -nostdlib lib.c
 *
 * A position-independent user-space image with .eh_frame: no link-time base,
 * vector registers, thread-local variables, 128-bit integers.
 */
typedef unsigned long long u64;
typedef unsigned __int128 u128;

struct session {
	const char *user;
	u64 bytes;
	double rate;
	char host[12];
};

__thread u64 session_current;
u64 session_total;
static u64 session_peak;

extern u64 lib_opaque(u64 value);

static inline __attribute__((always_inline)) void session_add(struct session *s, u64 bytes)
{
	s->bytes += bytes;
	session_total += bytes;
}

static inline __attribute__((always_inline)) void session_rate(struct session *s, double rate)
{
	s->rate = rate;
}

static inline __attribute__((always_inline)) void session_note(u64 peak, double rate, u128 wide)
{
	(void)peak;
	(void)rate;
	(void)wide;
	asm volatile("" : : : "memory");
}

u64 session_write(struct session *s, const char *buf, u64 bytes, double rate)
{
	session_add(s, bytes);
	session_add(s, 16);
	session_rate(s, rate * 2);
	session_current = bytes;
	session_note(session_peak, rate, 0);
	return bytes + (u64)buf[0] + lib_opaque(bytes);
}

u64 session_wide(u128 product, u64 shift)
{
	session_note((u64)product, 1.5, product);
	if (shift > session_peak)
		session_peak = shift;
	return (u64)(product >> 64) + shift + session_current;
}

long my_func_lib_abcd(const char *label, long arg1)
{
	return arg1 * label[0] + (long)lib_opaque((u64)arg1);
}
