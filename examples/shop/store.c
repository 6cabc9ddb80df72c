// The library of docs/cookbook.md: a store that has little.
#if __has_include(<sys/sdt.h>) // Debian's systemtap-sdt-dev
#include <sys/sdt.h>
#else
#define DTRACE_PROBE3(provider, name, a, b, c)
#endif

#include "store.h"

static int left = 40;

int store_take(const char *who, int count) {
	if (count > left || !who) {
		DTRACE_PROBE3(store, refused, who, count, left);
		return -1;
	}
	left -= count;
	return left;
}
