/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies to and from memory that others use at the same time, and that may have holes.
 */
#ifndef PROVIDER_MEMORY_H
#define PROVIDER_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* memory_write copies to memory, memory_read from memory, in ascending order. Words of 8,
 * 4 and 2 bytes that are aligned there and lie inside are accessed at once: nobody sees
 * half of one. When memory_write returns, the bytes are in place as after an atomic. */
void memory_write(void *to, const void *from, size_t n);
void memory_read(void *to, const void *from, size_t n);

/* The same for memory that may have holes, or pages that cannot be accessed so: they
 * return false if there is one. Then memory_write_sparse has written what is before it:
 * look with memory_writable first. They make a system call, which copies in the kernel's
 * way. */
bool memory_write_sparse(uintptr_t to, const void *from, size_t n);
bool memory_read_sparse(void *to, uintptr_t from, size_t n);

/* memory_readable and memory_writable report whether each page of n bytes can be accessed
 * so. Nothing is changed by that; a page that was not there yet is made. */
bool memory_readable(uintptr_t at, size_t n);
bool memory_writable(uintptr_t at, size_t n);

/* memory_mapped reports whether all of it is mapped with these rights, and touches no
 * page. It reads /proc/self/maps, and reports false if it cannot. */
bool memory_mapped(uintptr_t at, size_t n, bool reads, bool writes);

#endif
