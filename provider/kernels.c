/* SPDX-License-Identifier: Apache-2.0 */

#include "kernels.h"

#include <float.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>

#include "smallfloat.h"
#include "word.h"

#ifdef __FAST_MATH__
#error "-ffast-math changes results: build without it"
#endif
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "operands are little-endian, as on the wire"
#endif

_Static_assert(FI_BXOR == 9 && FI_ATOMIC_WRITE == 11 && FI_MSWAP == 18 && FI_LONG_DOUBLE_COMPLEX == 13 &&
	FI_UINT128 == 15, "the numbers of fi_op and fi_datatype are those of the wire");

bool word_native16;
struct word_lock word_locks[WORD_LOCKS];

#if defined(__x86_64__)
#include <cpuid.h>

__attribute__((constructor)) static void find_native16(void)
{
	unsigned a, b, c, d;

	word_native16 = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_CMPXCHG16B) && (c & bit_AVX);
}
#endif

/* The floating-point environment belongs to the program, which may have unmasked
 * exceptions, flushed subnormals or chosen another rounding. A kernel of floating-point
 * numbers has the default one while it runs. */
#if defined(__x86_64__)

struct calm {
	uint32_t mxcsr;
	uint32_t x87[7]; /* what FNSTENV stores */
};

WORD_INLINE void calm_sse(struct calm *saved)
{
	const uint32_t usual = 0x1f80;

	__asm__ volatile("stmxcsr %0\n\tldmxcsr %1" : "=m"(saved->mxcsr) : "m"(usual) : "memory");
}

WORD_INLINE void restore_sse(const struct calm *saved)
{
	__asm__ volatile("ldmxcsr %0" : : "m"(saved->mxcsr) : "memory");
}

WORD_INLINE void calm_x87(struct calm *saved)
{
	const uint16_t usual = 0x37f;

	__asm__ volatile("fnstenv %0\n\tfldcw %1" : "=m"(saved->x87) : "m"(usual) : "memory");
}

WORD_INLINE void restore_x87(const struct calm *saved)
{
	__asm__ volatile("fldenv %0" : : "m"(saved->x87) : "memory");
}

#else /* the usual one is assumed */

struct calm {
	char unused;
};

#define calm_sse(saved) ((void)(saved))
#define restore_sse(saved) ((void)(saved))
#define calm_x87(saved) ((void)(saved))
#define restore_x87(saved) ((void)(saved))

#endif

#define calm_integer(saved) ((void)(saved))
#define restore_integer(saved) ((void)(saved))

/* AS_SIZE converts an expression to an element of that many bytes. */
#define AS_1(expression) ((uint8_t)(expression))
#define AS_2(expression) ((uint16_t)(expression))
#define AS_4(expression) ((uint32_t)(expression))
#define AS_8(expression) ((uint64_t)(expression))
#define AS_16(expression) ((u128)(expression))
#define AS_32(expression) (expression)

#define ARGUMENTS void *target, const void *operand, const void *compare, void *result, size_t count

/* KERNEL defines the kernel of an operation whose new element, of the type word, is an
 * expression of t, b and c: element, operand and comparand. */
#define KERNEL(name, size, word, environment, op, expression) \
	WORD_INLINE word name##_##op##_update(word t, word b, word c) \
	{ \
		(void)t, (void)b, (void)c; \
		return AS_##size(expression); \
	} \
	static void name##_##op(ARGUMENTS) \
	{ \
		struct calm saved; \
		calm_##environment(&saved); \
		word_loop_##size(target, operand, compare, result, count, name##_##op##_update); \
		restore_##environment(&saved); \
	}

/* NATIVE defines one that the CPU does by itself. The loop that wants no result is a loop
 * of its own, for which there are shorter instructions. */
#define NATIVE(name, word, op, call) \
	static void name##_##op(ARGUMENTS) \
	{ \
		word *p = target, b; \
		const char *from = operand; \
		char *to = result; \
		(void)compare; \
		if (!to) \
			for (; count > 0; count--, p++, from += sizeof b) { \
				memcpy(&b, from, sizeof b); \
				(void)call(p, b, __ATOMIC_SEQ_CST); \
			} \
		else \
			for (; count > 0; count--, p++, from += sizeof b, to += sizeof b) { \
				memcpy(&b, from, sizeof b); \
				b = call(p, b, __ATOMIC_SEQ_CST); \
				memcpy(to, &b, sizeof b); \
			} \
	}

/* COPIES defines the kernels that look at no value. */
#define COPIES(name, size, word) \
	KERNEL(name, size, word, integer, FI_ATOMIC_READ, t) \
	KERNEL(name, size, word, integer, FI_ATOMIC_WRITE, b)

/* WORD defines the kernels that are the same for integers with and without a sign, but
 * for native ones. Products are in the type wide, whose overflow is defined. */
#define WORD(name, size, word, wide) \
	KERNEL(name, size, word, integer, FI_PROD, (wide)t * (wide)b) \
	KERNEL(name, size, word, integer, FI_LOR, t || b) \
	KERNEL(name, size, word, integer, FI_LAND, t && b) \
	KERNEL(name, size, word, integer, FI_LXOR, !t != !b) \
	KERNEL(name, size, word, integer, FI_CSWAP, c == t ? b : t) \
	KERNEL(name, size, word, integer, FI_CSWAP_NE, c != t ? b : t) \
	KERNEL(name, size, word, integer, FI_MSWAP, (b & c) | (t & (word)~c))

#define MACHINE(name, size, word) \
	WORD(name, size, word, uint64_t) \
	KERNEL(name, size, word, integer, FI_ATOMIC_READ, t) \
	NATIVE(name, word, FI_ATOMIC_WRITE, __atomic_exchange_n) \
	NATIVE(name, word, FI_SUM, __atomic_fetch_add) \
	NATIVE(name, word, KERNEL_DIFF, __atomic_fetch_sub) \
	NATIVE(name, word, FI_BOR, __atomic_fetch_or) \
	NATIVE(name, word, FI_BAND, __atomic_fetch_and) \
	NATIVE(name, word, FI_BXOR, __atomic_fetch_xor)

/* ORDER defines the kernels that compare integers. */
#define ORDER(name, size, word, value) \
	KERNEL(name, size, word, integer, FI_MIN, (value)b < (value)t ? b : t) \
	KERNEL(name, size, word, integer, FI_MAX, (value)b > (value)t ? b : t) \
	KERNEL(name, size, word, integer, FI_CSWAP_LE, (value)c <= (value)t ? b : t) \
	KERNEL(name, size, word, integer, FI_CSWAP_LT, (value)c < (value)t ? b : t) \
	KERNEL(name, size, word, integer, FI_CSWAP_GE, (value)c >= (value)t ? b : t) \
	KERNEL(name, size, word, integer, FI_CSWAP_GT, (value)c > (value)t ? b : t)

/* NUMBERS defines the kernels that real and complex numbers have. in takes the bits of an
 * element for its value, and out is the reverse. */
#define NUMBERS(name, size, word, environment, in, out) \
	KERNEL(name, size, word, environment, FI_SUM, out(in(t) + in(b))) \
	KERNEL(name, size, word, environment, KERNEL_DIFF, out(in(t) - in(b))) \
	KERNEL(name, size, word, environment, FI_PROD, out(in(t) * in(b))) \
	KERNEL(name, size, word, environment, FI_LOR, in(t) != 0 || in(b) != 0 ? out(1) : out(0)) \
	KERNEL(name, size, word, environment, FI_LAND, in(t) != 0 && in(b) != 0 ? out(1) : out(0)) \
	KERNEL(name, size, word, environment, FI_LXOR, (in(t) != 0) != (in(b) != 0) ? out(1) : out(0)) \
	KERNEL(name, size, word, environment, FI_CSWAP, in(c) == in(t) ? b : t) \
	KERNEL(name, size, word, environment, FI_CSWAP_NE, in(c) != in(t) ? b : t)

#define FLOATING(name, size, word, environment, in, out) \
	NUMBERS(name, size, word, environment, in, out) \
	KERNEL(name, size, word, environment, FI_MIN, in(b) < in(t) ? b : t) \
	KERNEL(name, size, word, environment, FI_MAX, in(b) > in(t) ? b : t) \
	KERNEL(name, size, word, environment, FI_CSWAP_LE, in(c) <= in(t) ? b : t) \
	KERNEL(name, size, word, environment, FI_CSWAP_LT, in(c) < in(t) ? b : t) \
	KERNEL(name, size, word, environment, FI_CSWAP_GE, in(c) >= in(t) ? b : t) \
	KERNEL(name, size, word, environment, FI_CSWAP_GT, in(c) > in(t) ? b : t)

/* VALUE defines in and out for a type of C. */
#define VALUE(name, word, value) \
	WORD_INLINE value name##_in(word bits) \
	{ \
		value v; \
		memcpy(&v, &bits, sizeof v); \
		return v; \
	} \
	WORD_INLINE word name##_out(value v) \
	{ \
		word bits; \
		memcpy(&bits, &v, sizeof bits); \
		return bits; \
	}

#define SMALL(name, word, format) \
	WORD_INLINE double name##_in(word bits) \
	{ \
		return smallfloat_decode(&format, bits); \
	} \
	WORD_INLINE word name##_out(double v) \
	{ \
		return (word)smallfloat_encode(&format, v); \
	}

VALUE(float, uint32_t, float)
VALUE(double, uint64_t, double)
VALUE(float_complex, uint64_t, float _Complex)
VALUE(double_complex, u128, double _Complex)
SMALL(float16, uint16_t, smallfloat_binary16)
SMALL(bfloat16, uint16_t, smallfloat_bfloat16)
SMALL(float8_e4m3, uint8_t, smallfloat_e4m3)
SMALL(float8_e5m2, uint8_t, smallfloat_e5m2)

MACHINE(word1, 1, uint8_t)
MACHINE(word2, 2, uint16_t)
MACHINE(word4, 4, uint32_t)
MACHINE(word8, 8, uint64_t)
COPIES(pair8, 8, uint64_t) /* not native: it may be aligned as its parts alone */
COPIES(word16, 16, u128)
WORD(word16, 16, u128, u128)
KERNEL(word16, 16, u128, integer, FI_SUM, t + b)
KERNEL(word16, 16, u128, integer, KERNEL_DIFF, t - b)
KERNEL(word16, 16, u128, integer, FI_BOR, t | b)
KERNEL(word16, 16, u128, integer, FI_BAND, t & b)
KERNEL(word16, 16, u128, integer, FI_BXOR, t ^ b)
ORDER(int8, 1, uint8_t, int8_t)
ORDER(uint8, 1, uint8_t, uint8_t)
ORDER(int16, 2, uint16_t, int16_t)
ORDER(uint16, 2, uint16_t, uint16_t)
ORDER(int32, 4, uint32_t, int32_t)
ORDER(uint32, 4, uint32_t, uint32_t)
ORDER(int64, 8, uint64_t, int64_t)
ORDER(uint64, 8, uint64_t, uint64_t)
ORDER(int128, 16, u128, i128)
ORDER(uint128, 16, u128, u128)
FLOATING(float, 4, uint32_t, sse, float_in, float_out)
FLOATING(double, 8, uint64_t, sse, double_in, double_out)
FLOATING(float16, 2, uint16_t, sse, float16_in, float16_out)
FLOATING(bfloat16, 2, uint16_t, sse, bfloat16_in, bfloat16_out)
FLOATING(float8_e4m3, 1, uint8_t, sse, float8_e4m3_in, float8_e4m3_out)
FLOATING(float8_e5m2, 1, uint8_t, sse, float8_e5m2_in, float8_e5m2_out)
NUMBERS(float_complex, 8, uint64_t, sse, float_complex_in, float_complex_out)
NUMBERS(double_complex, 16, u128, sse, double_complex_in, double_complex_out)


#if LDBL_MANT_DIG == 64

WORD_INLINE long double long_double_in(u128 bits)
{
	long double v;

	memcpy(&v, &bits, sizeof v);
	return v;
}

/* The padding may be anything; that of a computed value is zero. */
WORD_INLINE u128 long_double_out(long double v)
{
	u128 bits;

	memcpy(&bits, &v, sizeof bits);
	return bits & (((u128)1 << 80) - 1);
}

WORD_INLINE long double _Complex long_double_complex_in(u256 bits)
{
	long double _Complex v;

	memcpy(&v, &bits, sizeof v);
	return v;
}

WORD_INLINE u256 long_double_complex_out(long double _Complex v)
{
	return (u256){long_double_out(__real__ v), long_double_out(__imag__ v)};
}

FLOATING(long_double, 16, u128, x87, long_double_in, long_double_out)
COPIES(word32, 32, u256)
NUMBERS(long_double_complex, 32, u256, x87, long_double_complex_in, long_double_complex_out)

#endif

/* The rows of the table below; bits has the kernels that take an element for its bits. */
#define NUMBERS_ROW(name, bits) \
	[FI_SUM] = name##_FI_SUM, [KERNEL_DIFF] = name##_KERNEL_DIFF, [FI_PROD] = name##_FI_PROD, \
	[FI_LOR] = name##_FI_LOR, [FI_LAND] = name##_FI_LAND, [FI_LXOR] = name##_FI_LXOR, \
	[FI_CSWAP] = name##_FI_CSWAP, [FI_CSWAP_NE] = name##_FI_CSWAP_NE, \
	[FI_ATOMIC_READ] = bits##_FI_ATOMIC_READ, [FI_ATOMIC_WRITE] = bits##_FI_ATOMIC_WRITE

#define ORDER_ROW(name) \
	[FI_MIN] = name##_FI_MIN, [FI_MAX] = name##_FI_MAX, \
	[FI_CSWAP_LE] = name##_FI_CSWAP_LE, [FI_CSWAP_LT] = name##_FI_CSWAP_LT, \
	[FI_CSWAP_GE] = name##_FI_CSWAP_GE, [FI_CSWAP_GT] = name##_FI_CSWAP_GT

#define FLOATING_ROW(name, bits) NUMBERS_ROW(name, bits), ORDER_ROW(name)

#define INTEGER_ROW(name, bits) \
	NUMBERS_ROW(bits, bits), ORDER_ROW(name), [FI_BOR] = bits##_FI_BOR, \
	[FI_BAND] = bits##_FI_BAND, [FI_BXOR] = bits##_FI_BXOR, [FI_MSWAP] = bits##_FI_MSWAP

static const struct datatype {
	uint8_t size, align;
	kernel_fn *kernels[KERNEL_OPS];
} datatypes[KERNEL_DATATYPES] = {
	[FI_INT8] = {1, 1, {INTEGER_ROW(int8, word1)}},
	[FI_UINT8] = {1, 1, {INTEGER_ROW(uint8, word1)}},
	[FI_INT16] = {2, 2, {INTEGER_ROW(int16, word2)}},
	[FI_UINT16] = {2, 2, {INTEGER_ROW(uint16, word2)}},
	[FI_INT32] = {4, 4, {INTEGER_ROW(int32, word4)}},
	[FI_UINT32] = {4, 4, {INTEGER_ROW(uint32, word4)}},
	[FI_INT64] = {8, 8, {INTEGER_ROW(int64, word8)}},
	[FI_UINT64] = {8, 8, {INTEGER_ROW(uint64, word8)}},
	[FI_FLOAT] = {4, 4, {FLOATING_ROW(float, word4)}},
	[FI_DOUBLE] = {8, 8, {FLOATING_ROW(double, word8)}},
	[FI_FLOAT_COMPLEX] = {8, 4, {NUMBERS_ROW(float_complex, pair8)}},
	[FI_DOUBLE_COMPLEX] = {16, 8, {NUMBERS_ROW(double_complex, word16)}},
#if LDBL_MANT_DIG == 64
	[FI_LONG_DOUBLE] = {16, 16, {FLOATING_ROW(long_double, word16)}},
	[FI_LONG_DOUBLE_COMPLEX] = {32, 16, {NUMBERS_ROW(long_double_complex, word32)}},
#endif
	[FI_INT128] = {16, 16, {INTEGER_ROW(int128, word16)}},
	[FI_UINT128] = {16, 16, {INTEGER_ROW(uint128, word16)}},
	[KERNEL_FLOAT16] = {2, 2, {FLOATING_ROW(float16, word2)}},
	[KERNEL_BFLOAT16] = {2, 2, {FLOATING_ROW(bfloat16, word2)}},
	[KERNEL_FLOAT8_E4M3] = {1, 1, {FLOATING_ROW(float8_e4m3, word1)}},
	[KERNEL_FLOAT8_E5M2] = {1, 1, {FLOATING_ROW(float8_e5m2, word1)}},
};

kernel_fn *kernel_of(uint32_t form, uint32_t op, uint32_t datatype)
{
	const bool compares = op >= FI_CSWAP && op <= FI_MSWAP;

	if (form >= KERNEL_FORMS || op >= KERNEL_OPS || datatype >= KERNEL_DATATYPES ||
	    compares != (form == KERNEL_COMPARE) || (op == FI_ATOMIC_READ && form == KERNEL_BASE))
		return NULL;
	return datatypes[datatype].kernels[op];
}

size_t kernel_size(uint32_t datatype)
{
	return datatype < KERNEL_DATATYPES ? datatypes[datatype].size : 0;
}

size_t kernel_align(uint32_t datatype)
{
	return datatype < KERNEL_DATATYPES ? datatypes[datatype].align : 0;
}
