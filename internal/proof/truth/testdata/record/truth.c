#include "truth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *text;
static size_t used, room;
static uint64_t call;
static uint64_t state = 0x9e3779b97f4a7c15;
static volatile uint64_t marked;

static char *need(size_t n)
{
	if (used + n > room) {
		room = 2 * room + n + (1 << 16);
		text = (char *)realloc(text, room);
		if (!text)
			abort();
	}
	return text + used;
}

void truth_open(void)
{
	call++;
}

void truth_run(const char *label)
{
	size_t n = strlen(label) + 32;
	char *at = need(n);

	used += (size_t)snprintf(at, n, "\n%llu %s", (unsigned long long)call, label);
}

void truth_int(const char *name, uint64_t value)
{
	size_t n = strlen(name) + 32;
	char *at = need(n);

	used += (size_t)snprintf(at, n, " %s=x%llx", name, (unsigned long long)value);
}

static void bytes(const char *name, char kind, const void *value, size_t size)
{
	size_t n = strlen(name) + 2 * size + 8;
	char *at = need(n);

	used += (size_t)snprintf(at, n, " %s=%c", name, kind);
	for (size_t i = 0; i < size; i++)
		used += (size_t)snprintf(text + used, 3, "%02x", ((const unsigned char *)value)[i]);
}

void truth_str(const char *name, const char *value)
{
	bytes(name, 's', value, strlen(value));
}

void truth_bytes(const char *name, const void *value, size_t size)
{
	bytes(name, 'b', value, size);
}

// truth_mark is probed: its argument is the number of the call that begins, or 0 after it.
// trace: truth_mark call=%di
__attribute__((noinline)) void truth_mark(uint64_t number)
{
	marked = number;
}

void truth_start(void)
{
	truth_mark(call);
}

void truth_stop(void)
{
	truth_mark(0);
}

int64_t truth_random(void)
{
	uint64_t r;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	r = state * 0x2545f4914f6cdd1d;
	switch (r % 8) {
	case 0:
		return (int64_t)(r >> 60);
	case 1:
		return -(int64_t)(r >> 56) - 1;
	case 2:
		return (int64_t)(r >> 32);
	case 3:
		return (int64_t)(r >> 3);
	case 4:
		return (int64_t)0x8000000000000000;
	default:
		return (int64_t)r;
	}
}

void truth_print(void)
{
	fwrite(text, 1, used, stdout);
	fputc('\n', stdout);
	fflush(stdout);
}
