// Loops that compilers make vectors of, and leaf functions with variables below the stack pointer: with -O3 and -march=native what is
// of AVX2 and AVX-512 on the machine that runs it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 257 };
static float a[N], b[N], c[N];
static double d[N];
static int i32[N], index_of[N];
static unsigned char bytes[N], other[N];
static long long l[N];

#define INLINE static inline __attribute__((always_inline))

INLINE float dot(const float *x, const float *y, int n)
{
	float s = 0;
	for (int i = 0; i < n; i++)
		s += x[i] * y[i];
	return s;
}

__attribute__((noinline)) void scale(float *x, float by, int n)
{
	for (int i = 0; i < n; i++)
		x[i] = x[i] > 0.5f ? x[i] * by : x[i] + by;
}

__attribute__((noinline)) int gather(const int *from, const int *at, int n)
{
	int s = 0;
	for (int i = 0; i < n; i++)
		s ^= from[at[i]] << (i & 7);
	return s;
}

__attribute__((noinline)) int differ(const unsigned char *x, const unsigned char *y, int n)
{
	int s = 0;
	for (int i = 0; i < n; i++)
		s += x[i] > y[i] ? x[i] - y[i] : y[i] - x[i];
	return s;
}

__attribute__((noinline)) long zone(long x)
{
	volatile long local[10];
	long s = 0;
	for (int i = 0; i < 10; i++)
		local[i] = x * i;
	for (int i = 0; i < 10; i++)
		s = s * 31 + local[i];
	return s;
}

__attribute__((noinline)) double convert(const float *x, const int *y, double *to, int n)
{
	double s = 0;
	for (int i = 0; i < n; i++) {
		to[i] = x[i] / (1 + y[i] % 17);
		s += to[i];
	}
	return s;
}

__attribute__((noinline)) long long wide(long long *x, int n)
{
	long long s = 0;
	for (int i = 0; i < n; i++) {
		x[i] = x[i] * 6364136223846793005LL + 1442695040888963407LL;
		s += x[i] >> 33;
	}
	return s;
}

int main(void)
{
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < N; i++) {
			a[i] = i * 0.37f + round;
			b[i] = (N - i) * 0.11f;
			i32[i] = i * 7919 + round;
			index_of[i] = (i * 31) % N;
			bytes[i] = i * 3;
			other[i] = i * 5 + round;
			l[i] = i + round;
		}
		memcpy(c, a, sizeof c);
		scale(c, 1.25f, N);
		printf("%.6g %.6g %d %d %ld %.9g %lld\n", dot(a, b, N), dot(c, a, N), gather(i32, index_of, N), differ(bytes, other, N), zone(round + 7), convert(c, i32, d, N), wide(l, N));
	}
	return 0;
}
