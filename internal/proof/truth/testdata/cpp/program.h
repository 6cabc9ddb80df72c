#ifndef PROGRAM_H
#define PROGRAM_H

#include "truth.h"

enum class Colour : unsigned char { red = 1, green = 200 };

struct Point {
	long x, y;
};

struct Wide {
	long a[4];
	int n;
};

long far_away(const Point &p, int n);

void classes();
void templates();
void references();
void kinds();

#endif
