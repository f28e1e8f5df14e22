/* SPDX-License-Identifier: Apache-2.0
 *
 * Binary floating-point formats of at most 16 bits, which are computed as doubles. There,
 * products of all four and sums of all but bfloat16 are exact; a bfloat16 sum is rounded
 * twice, harmlessly, since 53 >= 2 * 8 + 2 (Figueroa, "When is double rounding
 * innocuous?", 1995). Float8 is OFP8 of the Open Compute Project, without saturation.
 */
#ifndef PROVIDER_SMALLFLOAT_H
#define PROVIDER_SMALLFLOAT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The sign is above the exponent, which is above the mantissa. */
struct smallfloat {
	int exponent, mantissa; /* bits */
	bool finite;            /* no infinities, and of the top exponent one mantissa is NaN */
};

static const struct smallfloat
	smallfloat_binary16 = {5, 10, false},
	smallfloat_bfloat16 = {8, 7, false},
	smallfloat_e4m3 = {4, 3, true},
	smallfloat_e5m2 = {5, 2, false};

static inline double smallfloat_double(uint64_t bits)
{
	double x;

	memcpy(&x, &bits, sizeof x);
	return x;
}

/* smallfloat_decode returns the value of v, exactly. */
static inline double smallfloat_decode(const struct smallfloat *f, uint32_t v)
{
	const uint32_t sign = 1u << (f->exponent + f->mantissa), magnitude = v & (sign - 1);
	const uint32_t top = (1u << f->exponent) - 1, exponent = magnitude >> f->mantissa;
	const uint64_t mantissa = magnitude & ((1u << f->mantissa) - 1), negative = v & sign ? 1ull << 63 : 0;
	const uint64_t bias = (1u << (f->exponent - 1)) - 1;

	if (f->finite ? magnitude == sign - 1 : exponent == top && mantissa != 0)
		return smallfloat_double(0x7ff8ull << 48);
	if (!f->finite && exponent == top)
		return smallfloat_double(negative | 0x7ffull << 52);
	if (exponent == 0) { /* a multiple of the smallest step */
		double x = (double)mantissa * smallfloat_double((1023 + 1 - bias - (uint64_t)f->mantissa) << 52);

		return negative ? -x : x;
	}
	return smallfloat_double(negative | (exponent + 1023 - bias) << 52 | mantissa << (52 - f->mantissa));
}

/* smallfloat_encode rounds to nearest, ties to even. It rounds "exponent and mantissa" as
 * an integer, so that a carry moves into the exponent, out of the subnormals, or into
 * infinity by itself. */
static inline uint32_t smallfloat_encode(const struct smallfloat *f, double x)
{
	const uint32_t nan = (1u << (f->exponent + f->mantissa)) - 1;
	const uint32_t overflow = f->finite ? nan : ((1u << f->exponent) - 1) << f->mantissa;
	uint64_t bits, mantissa, rest, half, rounded;
	int exponent, drop = 52 - f->mantissa; /* bits to round away */
	uint32_t sign;

	memcpy(&bits, &x, sizeof bits);
	sign = (uint32_t)(bits >> 63) << (f->exponent + f->mantissa);
	if (x != x)
		return sign | nan;
	exponent = (int)(bits >> 52 & 0x7ff) - 1023 + (1 << (f->exponent - 1)) - 1;
	mantissa = bits & ((1ull << 52) - 1);
	if (exponent >= 1) {
		mantissa |= (uint64_t)exponent << 52; /* 12 bits hold any exponent */
	} else {
		mantissa |= 1ull << 52; /* a subnormal double is far below every half step */
		drop += 1 - exponent;
	}
	if (drop > 54)
		return sign;
	rounded = mantissa >> drop;
	rest = mantissa & ((1ull << drop) - 1);
	half = 1ull << (drop - 1);
	if (rest > half || (rest == half && (rounded & 1)))
		rounded++;
	return sign | (rounded >= overflow ? overflow : (uint32_t)rounded);
}

#endif
