// What a program of package truth says of its own calls. The functions are in truth.c, which is
// compiled alone: no optimization of the program reaches them.
//
// A call is made so:
//
//	truth_open();                        // the next call's number
//	truth_run("scale"), INT(a), INT(b);  // what the probe at scale should see
//	HIDE(a);                             // a is not known to the compiler from here
//	truth_start();
//	r = scale(a, b);
//	KEEP(r);
//	truth_stop();
//
// Between truth_start and truth_stop, which are traced too, the call's hits belong to it.
#ifndef TRUTH_H
#define TRUTH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// truth_open begins the record of another call.
void truth_open(void);
// truth_run begins the record of a run of a function, in the order in which they happen.
void truth_run(const char *label);
// Values of the run, by the names that the definition gives them. A number is extended to 64
// bits as its type is.
void truth_int(const char *name, uint64_t value);
void truth_str(const char *name, const char *value);
void truth_bytes(const char *name, const void *value, size_t size);
// truth_start and truth_stop enclose the call.
void truth_start(void);
void truth_stop(void);
// truth_random returns numbers of many sizes, the same ones in each run of a program.
int64_t truth_random(void);
// truth_print writes all records.
void truth_print(void);

#ifdef __cplusplus
}
#endif

#define INT(v) truth_int(#v, (uint64_t)(v))
#define STR(v) truth_str(#v, (v))

// HIDE makes a variable's value unknown to the compiler. As all volatile assembly and all
// calls it stays where it is, so what needs the value comes after it.
#define HIDE(v) ({ __asm__ volatile("" : "+r"(v) : : "memory"); })
// KEEP uses a value, so that what makes it comes before.
#define KEEP(v) ({ __asm__ volatile("" : : "g"(v) : "memory"); })
#define KEEPMEM(v) ({ __asm__ volatile("" : : "m"(v) : "memory"); })

#define NOINLINE __attribute__((noinline))
#define ALWAYS inline __attribute__((always_inline))
#define ROUNDS 10

#endif
