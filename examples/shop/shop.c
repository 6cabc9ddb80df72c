// The program of docs/cookbook.md: a shop that handles some orders, of which every fifth is slow.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "store.h"

enum kind { RETAIL, TRADE };

struct customer {
	const char *name;
	enum kind kind;
};

struct order {
	int id;
	int count;
	double price;
	const struct customer *customer;
	const char *note; // NULL if there is none
};

// Too small for a call: it has no code of its own.
static inline int discount(const struct order *o, int percent) {
	return o->customer->kind == TRADE ? percent : 0;
}

__attribute__((noinline)) static int total(const struct order *o, int shipping) {
	int off = discount(o, 20);
	int sum = o->price * o->count;
	return sum - sum * off / 100 + shipping;
}

static long taken;

__attribute__((noinline)) static int handle(const struct order *o, const char *where) {
	if (o->id % 5 == 0) {
		usleep(2000); // an address that nobody knows
	}
	if (store_take(o->customer->name, o->count) < 0) {
		return -1;
	}
	int shipping = discount(o, 10) > 0 ? 0 : (int)(where[0] == 'n') + 4;
	int sum = total(o, shipping);
	taken += sum;
	return sum;
}

// The argument is how many seconds to wait before the first order.
int main(int argc, char **argv) {
	if (argc > 1) {
		sleep(atoi(argv[1]));
	}
	static const struct customer customers[] = {{"ann", RETAIL}, {"bob", TRADE}, {"eve", RETAIL}};
	static const char *const where[] = {"north", "south"};
	int refused = 0;
	for (int i = 1; i <= 12; i++) {
		struct order o = {i, 1 + i % 7, 2.5 * i, &customers[i % 3], i % 4 ? NULL : "gift"};
		refused += handle(&o, where[i % 2]) < 0;
	}
	printf("%ld taken, %d refused\n", taken, refused);
	return 0;
}
