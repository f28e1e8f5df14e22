/* SPDX-License-Identifier: Apache-2.0
 *
 * mpi ROUNDS WHAT [GIB]: a program of MPI that verifies whatever it does. WHAT has a letter
 * for each part: m messages; a, c and d windows that are allocated, created and dynamic.
 * With GIB one message is that long. Rank 0 prints the least and the median time of each
 * kind of operation between ranks 0 and 1, and ok in the end.
 */
#include "mpi_common.h"

#include <stdio.h>
#include <stdlib.h>

int rank, ranks, rounds;
double *times;

void fail(const char *what, uint64_t got, uint64_t want)
{
	fprintf(stderr, "rank %d: %s: %" PRIu64 ", want %" PRIu64 "\n", rank, what, got, want);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

void check(const char *what, uint64_t got, uint64_t want)
{
	if (got != want)
		fail(what, got, want);
}

void *room(size_t len)
{
	void *p = calloc(1, len);

	if (p == NULL)
		fail("bytes of memory", 0, len);
	return p;
}

static uint8_t pattern(int from, size_t at)
{
	return (uint8_t)(at * 7 + at / 251 + (size_t)from * 31 + 1);
}

void fill(uint8_t *to, int from, size_t len)
{
	for (size_t i = 0; i < len; i++)
		to[i] = pattern(from, i);
}

void compare(const char *what, const uint8_t *got, int from, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (got[i] != pattern(from, i))
			fail(what, i, len);
}

static int ascending(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void report(const char *where, const char *what, int n)
{
	qsort(times, (size_t)n, sizeof times[0], ascending);
	printf("%-10s %-17s least %8.1f us, median %8.1f us\n", where, what, times[0] * 1e6, times[n / 2] * 1e6);
	fflush(stdout);
}

/* Rank 1 has measured, and rank 0 prints. */
void report_of_1(const char *where, const char *what)
{
	if (rank == 1)
		MPI_Send(times, rounds, MPI_DOUBLE, 0, 9, MPI_COMM_WORLD);
	if (rank == 0) {
		MPI_Recv(times, rounds, MPI_DOUBLE, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		report(where, what, rounds);
	}
}

/* Messages of a length go to every rank and come from every rank at a time, with tags. */
static void exchange(size_t len)
{
	uint8_t *out = room(len + 1), *in = room((len + 1) * (size_t)ranks);
	MPI_Request *all = room(sizeof *all * 2 * (size_t)ranks);

	fill(out, rank, len);
	for (int r = 0; r < ranks; r++)
		MPI_Irecv(in + len * (size_t)r, (int)len, MPI_BYTE, r, 3, MPI_COMM_WORLD, &all[r]);
	for (int r = 0; r < ranks; r++)
		MPI_Isend(out, (int)len, MPI_BYTE, r, 3, MPI_COMM_WORLD, &all[ranks + r]);
	MPI_Waitall(2 * ranks, all, MPI_STATUSES_IGNORE);
	for (int r = 0; r < ranks; r++)
		compare("a byte of a message", in + len * (size_t)r, r, len);
	free(out);
	free(in);
	free(all);
}

/* Rank 0 takes messages of any rank, whose lengths it learns by probing: half of them are
 * received as messages, and half by source and tag. */
static void probes(void)
{
	uint8_t *bytes = room(5000);
	MPI_Message message;
	MPI_Status s;
	int len;

	for (int i = 0; rank != 0 && i < 20; i++) {
		fill(bytes, rank, (size_t)(rank * 100 + i));
		MPI_Ssend(bytes, rank * 100 + i, MPI_BYTE, 0, 100 + i, MPI_COMM_WORLD);
	}
	for (int i = 0; rank == 0 && i < 20 * (ranks - 1); i++) {
		if (i % 2 == 0)
			MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &s);
		else
			MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &s);
		MPI_Get_count(&s, MPI_BYTE, &len);
		check("length of a probed message", (uint64_t)len, (uint64_t)(s.MPI_SOURCE * 100 + s.MPI_TAG - 100));
		if (i % 2 == 0)
			MPI_Mrecv(bytes, len, MPI_BYTE, &message, &s);
		else
			MPI_Recv(bytes, len, MPI_BYTE, s.MPI_SOURCE, s.MPI_TAG, MPI_COMM_WORLD, &s);
		compare("a byte of a probed message", bytes, s.MPI_SOURCE, (size_t)len);
	}
	free(bytes);
}

static void measure_messages(int len, const char *what)
{
	uint8_t *bytes = room((size_t)len);

	for (int i = 0; rank < 2 && i < rounds; i++) {
		const double begin = MPI_Wtime();

		if (rank == 0)
			MPI_Send(bytes, len, MPI_BYTE, 1, 5, MPI_COMM_WORLD);
		MPI_Recv(bytes, len, MPI_BYTE, 1 - rank, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (rank == 1)
			MPI_Send(bytes, len, MPI_BYTE, 0, 5, MPI_COMM_WORLD);
		times[i] = (MPI_Wtime() - begin) / 2;
	}
	if (rank == 0)
		report("messages", what, rounds);
	MPI_Barrier(MPI_COMM_WORLD);
	free(bytes);
}

static void messages(void)
{
	static const size_t lens[] = {0, 1, 8, 100, 4096, 4097, 65536, 1 << 20, (2 << 20) + 1};
	uint64_t sum, mine = (uint64_t)rank + 1;

	for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++)
		exchange(lens[i]);
	probes();
	for (int i = 0; i < 100; i++) {
		MPI_Allreduce(&mine, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
		check("sum of allreduce", sum, (uint64_t)ranks * (uint64_t)(ranks + 1) / 2);
	}
	measure_messages(8, "8 bytes");
	measure_messages(16384, "16384 bytes");
}

/* One message from rank 0 to rank 1 is as many GiB long, in elements of 1 KiB. */
static void big(int gib)
{
	const size_t len = (size_t)gib << 30;
	MPI_Datatype kib;
	MPI_Status s;
	uint8_t *bytes;
	double begin;
	int n = 0;

	if (rank > 1)
		return;
	bytes = room(len);
	MPI_Type_contiguous(1024, MPI_BYTE, &kib);
	MPI_Type_commit(&kib);
	for (size_t at = 0; rank == 0 && at < len; at += 4096)
		bytes[at] = pattern(0, at >> 12);
	begin = MPI_Wtime();
	if (rank == 0) {
		MPI_Send(bytes, (int)(len >> 10), kib, 1, 6, MPI_COMM_WORLD);
		MPI_Recv(&n, 1, MPI_INT, 1, 6, MPI_COMM_WORLD, &s);
		printf("messages   %d GiB in %.1f s\n", gib, MPI_Wtime() - begin);
	} else {
		MPI_Recv(bytes, (int)(len >> 10), kib, 0, 6, MPI_COMM_WORLD, &s);
		MPI_Get_count(&s, kib, &n);
		check("KiB of the long message", (uint64_t)n, len >> 10);
		for (size_t at = 0; at < len; at += 4096)
			check("a byte of the long message", bytes[at], pattern(0, at >> 12));
		MPI_Send(&n, 1, MPI_INT, 0, 6, MPI_COMM_WORLD);
	}
	MPI_Type_free(&kib);
	free(bytes);
}

int main(int argc, char **argv)
{
	int provided;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc < 3 || (rounds = atoi(argv[1])) < 1 || ranks < 2)
		fail("mpi ROUNDS WHAT [GIB], with two ranks or more; arguments", (uint64_t)argc, 3);
	times = room(sizeof *times * (size_t)rounds);
	for (const char *what = argv[2]; *what != 0; what++) {
		if (*what == 'm')
			messages();
		else
			window(*what);
	}
	if (argc > 3)
		big(atoi(argv[3]));
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		printf("ok\n");
	free(times);
	MPI_Finalize();
	return 0;
}
