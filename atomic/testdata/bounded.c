// SPDX-License-Identifier: Apache-2.0
//
// Makes bounded.jsonl.gz, in the format of vectors.jsonl.gz: the operations that libfabric
// does not have, by the compiler's checked arithmetic and, for msum, an adder of single
// bits. Elements are triples of special and of random values. A 64-bit little-endian
// machine:
//
//	cc -O1 -o /tmp/bounded bounded.c && /tmp/bounded | gzip -9n > bounded.jsonl.gz
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef __int128 int128;
typedef unsigned __int128 uint128;

enum { SPECIAL = 7, CUBE = SPECIAL * SPECIAL * SPECIAL, N = CUBE + 57 };

static uint64_t seed = 42;
static uint64_t next(void) // xorshift64*
{
	seed ^= seed >> 12, seed ^= seed << 25, seed ^= seed >> 27;
	return seed * 0x2545f4914f6cdd1d;
}

static void hex(const char *key, const void *p, size_t bytes, bool last)
{
	const unsigned char *b = p;
	printf("\"%s\":\"", key);
	for (size_t i = 0; i < bytes; i++)
		printf("%02x", b[i]);
	printf(last ? "\"}\n" : "\",");
}

static void line(const char *func, const char *op, const char *dt, size_t bytes, const void *dst, const void *buf,
		 const void *cmp, const void *out)
{
	printf("{\"func\":\"%s\",\"op\":\"%s\",\"dt\":\"%s\",\"n\":%d,", func, op, dt, N);
	hex("dst", dst, bytes, false);
	hex("buf", buf, bytes, false);
	if (cmp)
		hex("cmp", cmp, bytes, false);
	if (strcmp(func, "base"))
		hex("res", dst, bytes, false);
	hex("out", out, bytes, true);
}

// The sum of two numbers of so many bits, bit by bit; no carry leaves a bit of c.
static uint128 adder(uint128 t, uint128 b, uint128 c, int bits)
{
	uint128 sum = 0;
	int carry = 0;
	for (int i = 0; i < bits; i++) {
		int x = t >> i & 1, y = b >> i & 1, n = x + y + carry;
		sum |= (uint128)(n & 1) << i;
		carry = c >> i & 1 ? 0 : n >> 1;
	}
	return sum;
}

#define EACH(expr)                                  \
	for (int i = 0; i < N; i++) {               \
		const value t = T[i], b = B[i], c = C[i]; \
		value r = t, x = 0;                 \
		(void)b, (void)c, (void)x;          \
		expr;                               \
		O[i] = r;                           \
	}

#define TYPE(T_, name, MIN_, MAX_)                                                                          \
	static void of_##name(void)                                                                         \
	{                                                                                                   \
		typedef T_ value;                                                                           \
		static value T[N], B[N], C[N], O[N];                                                        \
		const value min = MIN_, max = MAX_;                                                         \
		const value special[SPECIAL] = {0, 1, (value)-1, min, max, (value)(max / 2 + 1), 3};        \
		for (int i = 0; i < N; i++) {                                                               \
			T[i] = special[i % SPECIAL];                                                        \
			B[i] = special[i / SPECIAL % SPECIAL];                                              \
			C[i] = special[i / SPECIAL / SPECIAL % SPECIAL];                                    \
			if (i >= CUBE) {                                                                    \
				T[i] = (value)((uint128)next() << 64 | next());                             \
				B[i] = (value)((uint128)next() << 64 | next());                             \
				C[i] = (value)((uint128)next() << 64 | next());                             \
			}                                                                                   \
		}                                                                                           \
		EACH(if (!__builtin_add_overflow(t, b, &x) && x <= c) r = x)                                \
		line("compare", "sum_at_most", #name, sizeof T, T, B, C, O);                                \
		EACH(if (!__builtin_sub_overflow(t, b, &x) && x >= c) r = x)                                \
		line("compare", "diff_at_least", #name, sizeof T, T, B, C, O);                              \
		EACH(r = (value)adder((uint128)t, (uint128)b, (uint128)c, 8 * sizeof t))                    \
		line("compare", "msum", #name, sizeof T, T, B, C, O);                                       \
		for (int base = 0; base < 2; base++) {                                                      \
			const char *func = base ? "base" : "fetch";                                         \
			EACH(if (__builtin_add_overflow(t, b, &r)) r = t > 0 ? max : min)                   \
			line(func, "sum_sat", #name, sizeof T, T, B, NULL, O);                              \
			EACH(if (__builtin_sub_overflow(t, b, &r)) r = t < b ? min : max)                   \
			line(func, "diff_sat", #name, sizeof T, T, B, NULL, O);                             \
		}                                                                                           \
	}

#define MAX128 ((int128)(~(uint128)0 >> 1))

TYPE(int8_t, int8, INT8_MIN, INT8_MAX)
TYPE(uint8_t, uint8, 0, UINT8_MAX)
TYPE(int16_t, int16, INT16_MIN, INT16_MAX)
TYPE(uint16_t, uint16, 0, UINT16_MAX)
TYPE(int32_t, int32, INT32_MIN, INT32_MAX)
TYPE(uint32_t, uint32, 0, UINT32_MAX)
TYPE(int64_t, int64, INT64_MIN, INT64_MAX)
TYPE(uint64_t, uint64, 0, UINT64_MAX)
TYPE(int128, int128, -MAX128 - 1, MAX128)
TYPE(uint128, uint128, 0, ~(uint128)0)

int main(void)
{
	of_int8(), of_uint8(), of_int16(), of_uint16(), of_int32(), of_uint32(), of_int64(), of_uint64();
	of_int128(), of_uint128();
	return 0;
}
