/* SPDX-License-Identifier: Apache-2.0
 *
 * The executor of operations of peers on the program's memory.
 */
#ifndef PROVIDER_OPERATE_H
#define PROVIDER_OPERATE_H

#include <stddef.h>
#include <stdint.h>

#include "regions.h"

/* The verdict on an operation, with the numbers of package wire. All but OPERATE_OK mean
 * that it changed nothing. */
enum operate_status {
	OPERATE_OK = 0,
	OPERATE_NO_KEY = 1,
	OPERATE_NO_ACCESS = 2,
	OPERATE_OUT_OF_BOUNDS = 3, /* of the region, or in a hole of it */
	OPERATE_MISALIGNED = 4,    /* likewise an element that lies in two pieces of a region */
	OPERATE_UNSUPPORTED = 5,
	OPERATE_BAD_COUNT = 6, /* not as many operands */
	OPERATE_STALE = 9,     /* the key belongs to another registration than the one meant */
};

/* An operation; the verbs are those of ring.h: atomics, XDPFAB_READ and XDPFAB_WRITE. */
struct operate_request {
	uint64_t key, offset;
	uint32_t count;       /* elements; bytes of a transfer */
	uint32_t total;       /* that must lie within the region; these are the first of them */
	uint32_t incarnation; /* of the region meant, 0 for any */
	uint8_t verb, op, datatype;
	const void *operand, *compare;
	size_t operand_bytes, compare_bytes;
};

/* operate_result returns how many bytes an operation returns if it succeeds. */
size_t operate_result(const struct operate_request *o);

/* operate executes an operation; result has room for what it returns. touched is set to
 * the region if it succeeds. The check comes first: an operation that fails has changed
 * nothing. */
enum operate_status operate(const struct regions *t, const struct operate_request *o, void *result,
                            struct region **touched);

#endif
