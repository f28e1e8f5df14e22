/* SPDX-License-Identifier: Apache-2.0 */

#include "operate.h"

#include <xdpfab/ring.h>

#include "kernels.h"
#include "memory.h"

/* A part of the memory of an operation that lies in one piece of its region. */
struct span {
	uintptr_t at;
	size_t n;
};

static bool is_atomic(const struct operate_request *o)
{
	return o->verb >= XDPFAB_ATOMIC && o->verb <= XDPFAB_COMPARE;
}

/* returns reports whether an operation returns what it finds. */
static bool returns(const struct operate_request *o)
{
	return o->verb != XDPFAB_ATOMIC && o->verb != XDPFAB_WRITE;
}

static bool only_reads(const struct operate_request *o)
{
	return o->verb == XDPFAB_READ || (o->verb == XDPFAB_FETCH && o->op == KERNEL_READ);
}

/* width returns the bytes of an element, 1 of a transfer. */
static uint64_t width(const struct operate_request *o)
{
	return is_atomic(o) ? kernel_size(o->datatype) : 1;
}

size_t operate_result(const struct operate_request *o)
{
	return returns(o) ? o->count * width(o) : 0;
}

/* needs returns the rights that an operation requires, after fi_mr(3). */
static uint32_t needs(const struct operate_request *o)
{
	return (returns(o) ? REGION_READ : 0) | (only_reads(o) ? 0 : REGION_WRITE);
}

/* complete reports whether the operands are as many as the operation wants. */
static bool complete(const struct operate_request *o)
{
	const size_t n = o->count * width(o);

	return o->operand_bytes == (only_reads(o) ? 0 : n) && o->compare_bytes == (o->verb == XDPFAB_COMPARE ? n : 0);
}

/* cut returns the spans of n bytes at an offset in the pieces of a region, which has
 * them. */
static size_t cut(const struct region *r, uint64_t at, size_t n, struct span *spans)
{
	size_t count = 0;

	for (uint32_t i = 0; n > 0; i++) {
		const size_t length = r->pieces[i].length;

		if (at >= length) {
			at -= length;
			continue;
		}
		spans[count].at = r->pieces[i].at + at;
		spans[count].n = n < length - at ? n : length - at;
		n -= spans[count++].n;
		at = 0;
	}
	return count;
}

/* locate finds the memory of an operation. */
static enum operate_status locate(const struct region *r, const struct operate_request *o, struct span *spans,
                                  size_t *count)
{
	const uint64_t size = width(o), n = o->count * size, all = o->total > o->count ? o->total * size : n;
	const uint64_t at = o->offset - r->base; /* an offset below base wraps around, beyond any length */

	if ((r->access & needs(o)) != needs(o))
		return OPERATE_NO_ACCESS;
	if (all > r->length || at > r->length - all)
		return OPERATE_OUT_OF_BOUNDS;
	*count = cut(r, at, n, spans);
	for (size_t i = 0; is_atomic(o) && i < *count; i++)
		if (spans[i].at % kernel_align(o->datatype) != 0 || spans[i].n % size != 0)
			return OPERATE_MISALIGNED;
	return OPERATE_OK;
}

/* reachable reports whether all of the memory can be accessed, so that no operation has
 * changed a part of it when it comes to a hole. A read changes nothing, and finds out by
 * itself. */
static bool reachable(const struct operate_request *o, const struct span *spans, size_t count)
{
	for (size_t i = 0; o->verb != XDPFAB_READ && i < count; i++)
		if (!(only_reads(o) ? memory_readable : memory_writable)(spans[i].at, spans[i].n))
			return false;
	return true;
}

/* apply executes an operation on a span of its memory; operand, compare and result are
 * for that one. It returns false if pages went away meanwhile. */
static bool apply(const struct region *r, const struct operate_request *o, const struct span *span,
                  const uint8_t *operand, const uint8_t *compare, uint8_t *result)
{
	void *memory = (void *)span->at;

	if (is_atomic(o))
		kernel_of(o->verb - (uint32_t)XDPFAB_ATOMIC, o->op, o->datatype)(memory, operand, compare, result,
		                                                              span->n / width(o));
	else if (r->sparse && o->verb == XDPFAB_READ)
		return memory_read_sparse(result, span->at, span->n);
	else if (r->sparse)
		return memory_write_sparse(span->at, operand, span->n);
	else if (o->verb == XDPFAB_READ)
		memory_read(result, memory, span->n);
	else
		memory_write(memory, operand, span->n);
	return true;
}

enum operate_status operate(const struct regions *t, const struct operate_request *o, void *result,
                            struct region **touched)
{
	struct span spans[REGION_PIECES];
	struct region *r;
	enum operate_status status;
	size_t count, at = 0;

	if (is_atomic(o) ? !kernel_of(o->verb - (uint32_t)XDPFAB_ATOMIC, o->op, o->datatype)
	                 : o->verb != XDPFAB_READ && o->verb != XDPFAB_WRITE)
		return OPERATE_UNSUPPORTED;
	if (!complete(o))
		return OPERATE_BAD_COUNT;
	r = regions_find(t, o->key);
	if (!r)
		return OPERATE_NO_KEY;
	if (o->incarnation && o->incarnation != r->incarnation)
		return OPERATE_STALE;
	status = locate(r, o, spans, &count);
	if (status)
		return status;
	if (r->sparse && !reachable(o, spans, count))
		return OPERATE_OUT_OF_BOUNDS;
	for (size_t i = 0; i < count; at += spans[i++].n)
		if (!apply(r, o, &spans[i], o->operand_bytes ? (const uint8_t *)o->operand + at : NULL,
		           o->compare_bytes ? (const uint8_t *)o->compare + at : NULL,
		           returns(o) ? (uint8_t *)result + at : NULL))
			return OPERATE_OUT_OF_BOUNDS;
	*touched = r;
	return OPERATE_OK;
}
