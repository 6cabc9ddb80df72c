// The library of docs/cookbook.md: a store that has little.
#include "store.h"

static int left = 40;

int store_take(const char *who, int count) {
	if (count > left || !who) {
		return -1;
	}
	left -= count;
	return left;
}
