/* SPDX-License-Identifier: Apache-2.0
 *
 * The operations of fi_atomic(3) on local memory: one kernel for each datatype and
 * operation. Their results are those of Go's package atomic, bit for bit but for the
 * payloads of NaNs.
 *
 * Integers wrap. Comparisons of floating-point numbers are numeric: -0 equals 0, and a
 * NaN is unequal to everything and never a minimum or maximum. All rounding is to
 * nearest, ties to even, whatever the program has set in its floating-point environment,
 * and no operand raises a signal or a flag there. Long double is x87's 80 bits in 16
 * bytes, and the padding of a computed value is zero; where the compiler's is another
 * format there are no kernels of it. Read, write and the swaps copy bits as they are.
 */
#ifndef PROVIDER_KERNELS_H
#define PROVIDER_KERNELS_H

#include <stddef.h>
#include <stdint.h>

/* Numbers of fi_op and fi_datatype that headers before libfabric 2.0 lack. */
enum {
	KERNEL_READ = 10, /* FI_ATOMIC_READ */
	KERNEL_DIFF = 19,
	KERNEL_OPS = 20,
	KERNEL_FLOAT16 = 16,
	KERNEL_BFLOAT16 = 17,
	KERNEL_FLOAT8_E4M3 = 18,
	KERNEL_FLOAT8_E5M2 = 19,
	KERNEL_DATATYPES = 20,
};

/* The three families of calls. */
enum kernel_form {
	KERNEL_BASE,    /* fi_atomic */
	KERNEL_FETCH,   /* fi_fetch_atomic */
	KERNEL_COMPARE, /* fi_compare_atomic */
	KERNEL_FORMS,
};

/* A kernel applies its operation to count elements, each atomically, in ascending order.
 * It checks nothing. target is aligned to kernel_align. operand holds count elements, or
 * may be NULL for FI_ATOMIC_READ; compare holds count elements for KERNEL_COMPARE and is
 * NULL otherwise; the values from before go to result unless it is NULL. These three have
 * any alignment, and result may be the same memory as operand or compare. */
typedef void kernel_fn(void *target, const void *operand, const void *compare, void *result, size_t count);

/* kernel_of returns the kernel of a triple, or NULL if there is no such operation. Any
 * numbers may be asked for. */
kernel_fn *kernel_of(uint32_t form, uint32_t op, uint32_t datatype);

/* kernel_size returns the bytes of an element, kernel_align what its address has to be a
 * multiple of, which is C's alignment; 0 for a datatype that there is not. */
size_t kernel_size(uint32_t datatype);
size_t kernel_align(uint32_t datatype);

#endif
