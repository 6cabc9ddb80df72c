#ifndef PROGRAM_H
#define PROGRAM_H

#include <stdbool.h>

#include "truth.h"

enum colour { RED = -1, GREEN = 5, BLUE = 1000 };

struct small {
	int a;
	short b;
	unsigned char c;
	signed char d;
};

struct pair {
	long x, y;
};

struct mixed {
	long n;
	double d;
};

struct large {
	long a[3];
	int n;
	char name[12];
};

struct bits {
	unsigned a : 3;
	int b : 5;
	unsigned c : 12;
	unsigned long d : 40;
};

struct node {
	struct node *next;
	long value;
	const char *name;
	struct pair at;
};

long many(int a, long b, short c, unsigned d, char e, long f, int g, unsigned char h, long i);
long far_sum(const struct node *n, int depth);
long far_mode(int mode, long x);

void scalars(void);
void structures(void);
void loops(void);
void pointers(void);
void calls(void);
void kinds(void);
void assigned(void);

#endif
