#ifndef RUNS_H
#define RUNS_H

#include <stdio.h>

// Each traced function counts its own runs, in a variable that no compiler can do without. The
// program prints the counts at its end.
#define COUNTER(name) extern volatile unsigned long runs_##name
#define DEFINE(name) volatile unsigned long runs_##name
#define RUN(name) (runs_##name++)
#define SHOW(name) printf(#name " %lu\n", runs_##name)

#define NOINLINE __attribute__((noinline))
#define INLINE static inline __attribute__((always_inline))
#define unlikely(x) __builtin_expect(!!(x), 0)

extern volatile int sink, source; // source is always 0
extern int numbers[64];

long far_body(int a, long b);
int far_loop(const int *p, int n);
void bodies(int k);
void loops(int k);
void paths(int k);
void show_bodies(void), show_loops(void), show_paths(void), show_far(void);

#endif
