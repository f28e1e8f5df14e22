/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the program mpi share.
 */
#include <inttypes.h>
#include <mpi.h>
#include <stddef.h>

extern int rank, ranks, rounds;
extern double *times; /* seconds, of as many operations as there are rounds */

/* They end the program unless a value is as it should be. */
void fail(const char *what, uint64_t got, uint64_t want);
void check(const char *what, uint64_t got, uint64_t want);

/* Memory that is zero. */
void *room(size_t len);

/* Bytes that tell whose they are. */
void fill(uint8_t *to, int from, size_t len);
void compare(const char *what, const uint8_t *got, int from, size_t len);

/* Rank 1 has measured times, and rank 0 prints them. */
void report_of_1(const char *where, const char *what);

/* Verifies and measures operations on a window that is a allocated, c created or d dynamic. */
void window(char kind);
