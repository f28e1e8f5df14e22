// SPDX-License-Identifier: Apache-2.0
//
// Makes special.jsonl.gz, in the format of vectors.jsonl.gz: the cases that C
// and the x87 decide, on all pairs of special values. amd64, gcc:
//
//	gcc -O1 -fsignaling-nans -o /tmp/special special.c && /tmp/special | gzip -9n > special.jsonl.gz
#include <complex.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static void hex(const char *key, const void *p, size_t size, size_t bytes, int last)
{
	const unsigned char *b = p;
	printf("\"%s\":\"", key);
	for (size_t i = 0; i < bytes; i++)
		printf("%02x", size == 16 && i % 16 >= 10 ? 0 : b[i]);
	printf(last ? "\"}\n" : "\",");
}

static void line(const char *func, const char *op, const char *dt, size_t part, size_t n, size_t bytes,
		 const void *dst, const void *buf, const void *cmp, const void *out)
{
	printf("{\"func\":\"%s\",\"op\":\"%s\",\"dt\":\"%s\",\"n\":%zu,", func, op, dt, n);
	hex("dst", dst, part, bytes, 0);
	hex("buf", buf, part, bytes, 0);
	if (cmp) {
		hex("cmp", cmp, part, bytes, 0);
		hex("res", dst, part, bytes, 0);
	}
	hex("out", out, part, bytes, 1);
}

// Products of complex numbers, each part one of 9 values: 6561 a type.
#define PRODUCTS(T, name, max)                                                          \
	static void products_##name(void)                                               \
	{                                                                               \
		static T complex a[6561], b[6561], c[6561];                             \
		const T v[9] = { 0, -0.0, 1, -2, max, -max, INFINITY, -INFINITY, NAN }; \
		memset(a, 0, sizeof a), memset(b, 0, sizeof b), memset(c, 0, sizeof c); \
		for (int i = 0; i < 6561; i++) {                                        \
			T *x = (T *)&a[i], *y = (T *)&b[i];                             \
			x[0] = v[i % 9], x[1] = v[i / 9 % 9];                           \
			y[0] = v[i / 81 % 9], y[1] = v[i / 729];                        \
			volatile T complex p = a[i], q = b[i];                          \
			c[i] = p * q;                                                   \
		}                                                                       \
		line("base", "prod", #name, sizeof(T), 6561, sizeof a, a, b, NULL, c);  \
	}
PRODUCTS(float, float_complex, FLT_MAX)
PRODUCTS(double, double_complex, DBL_MAX)
PRODUCTS(long double, long_double_complex, LDBL_MAX)

// Encodings of long double: also those that only the x87 gives a meaning to.
static const struct { uint64_t m; uint16_t se; } enc[] = {
	{ 0, 0 }, { 0, 0x8000 }, { 1, 0 }, { ~0ull >> 1, 0x8000 },	// zeros, subnormals
	{ 1ull << 63, 0 }, { ~0ull, 0x8000 },				// pseudo-denormals
	{ 1ull << 63, 1 }, { ~0ull, 1 }, { 1ull << 63, 0x8001 },	// smallest normals
	{ 1ull << 63, 0x3fff }, { 1ull << 63, 0xbfff }, { 3ull << 62 | 1, 0x3fff },
	{ 1ull << 63, 0x3fff - 64 }, { 1ull << 63 | 1, 0xbfff - 64 }, { ~0ull, 0x3ffe },
	{ 1ull << 63, 0x2000 }, { ~0ull, 0x1fff }, { 1ull << 63, 0x5fff }, { ~0ull, 0xdffe },
	{ ~0ull, 0x7ffe }, { ~0ull, 0xfffe }, { 1ull << 63, 0x7ffe },	// largest
	{ 1ull << 63, 0x7fff }, { 1ull << 63, 0xffff },			// infinities
	{ 3ull << 62, 0x7fff }, { 1ull << 63 | 1, 0xffff },		// NaNs
	{ 0, 0x7fff }, { 1, 0xffff },					// pseudo-infinity, pseudo-NaN
	{ 1ull << 62, 0x3fff }, { 0, 0xbfff }, { ~0ull >> 1, 1 },	// unnormals
};
enum { E = sizeof enc / sizeof enc[0], N = E * E };
static long double A[N], B[N], C[N];

#define LD(func, op, cmp, expr)                                                       \
	for (int i = 0; i < N; i++) {                                                 \
		volatile long double p, q;                                            \
		memcpy((void *)&p, &A[i], 16), memcpy((void *)&q, &B[i], 16);         \
		long double t = p, b = q;                                             \
		memcpy(&C[i], &A[i], 16);                                             \
		expr;                                                                 \
	}                                                                             \
	line(func, op, "long_double", 16, N, sizeof A, A, BUF, cmp, C)
#define STORE(e) do { long double r = (e); memcpy(&C[i], &r, 10); } while (0)
// Compare functions: the comparand is B, the operand BUF is all zeros.
#define SWAP(rel) if (b rel t) memset(&C[i], 0, 16)

int main(void)
{
	static long double zeros[N];
	memset(zeros, 0, sizeof zeros);
	products_float_complex();
	products_double_complex();
	products_long_double_complex();
	for (int i = 0; i < N; i++) {
		memset(&A[i], 0, 16), memset(&B[i], 0, 16);
		memcpy(&A[i], &enc[i % E].m, 8), memcpy((char *)&A[i] + 8, &enc[i % E].se, 2);
		memcpy(&B[i], &enc[i / E].m, 8), memcpy((char *)&B[i] + 8, &enc[i / E].se, 2);
	}
	const void *BUF = B;
	LD("base", "sum", NULL, STORE(t + b));
	LD("base", "diff", NULL, STORE(t - b));
	LD("base", "prod", NULL, STORE(t * b));
	LD("base", "min", NULL, if (b < t) memcpy(&C[i], &B[i], 16));
	LD("base", "max", NULL, if (b > t) memcpy(&C[i], &B[i], 16));
	LD("base", "lor", NULL, STORE(t || b));
	LD("base", "land", NULL, STORE(t && b));
	LD("base", "lxor", NULL, STORE((t && !b) || (!t && b)));
	BUF = zeros;
	LD("compare", "cswap", B, SWAP(==));
	LD("compare", "cswap_ne", B, SWAP(!=));
	LD("compare", "cswap_le", B, SWAP(<=));
	LD("compare", "cswap_lt", B, SWAP(<));
	LD("compare", "cswap_ge", B, SWAP(>=));
	LD("compare", "cswap_gt", B, SWAP(>));
	return 0;
}
