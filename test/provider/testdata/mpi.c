/* SPDX-License-Identifier: Apache-2.0
 *
 * mpi ROUNDS WHAT [GIB]: a program of MPI that verifies whatever it does. WHAT has a letter
 * for each part: m messages; a, c and d windows that are allocated, created and dynamic.
 * With GIB one message is that long. Rank 0 prints the least and the median time of each
 * kind of operation between ranks 0 and 1, and ok in the end.
 */
#include <inttypes.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	SLOT = 70001,	/* bytes that each rank puts; an odd number, so that most are unaligned */
	ELEMENTS = 100, /* of an accumulate */
};

static int rank, ranks, rounds;
static double *times;

static void fail(const char *what, uint64_t got, uint64_t want)
{
	fprintf(stderr, "rank %d: %s: %" PRIu64 ", want %" PRIu64 "\n", rank, what, got, want);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void check(const char *what, uint64_t got, uint64_t want)
{
	if (got != want)
		fail(what, got, want);
}

static void *room(size_t len)
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

static void fill(uint8_t *to, int from, size_t len)
{
	for (size_t i = 0; i < len; i++)
		to[i] = pattern(from, i);
}

static void compare(const char *what, const uint8_t *got, int from, size_t len)
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
static void report_of_1(const char *where, const char *what)
{
	if (rank == 1)
		MPI_Send(times, rounds, MPI_DOUBLE, 0, 9, MPI_COMM_WORLD);
	if (rank == 0) {
		MPI_Recv(times, rounds, MPI_DOUBLE, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		report(where, what, rounds);
	}
}

struct window {
	MPI_Win win;
	uint8_t *memory; /* of this rank: counters, elements, and a slot for each rank */
	MPI_Aint *base;	 /* of each rank */
	const char *kind;
};

static MPI_Aint counter(const struct window *w, int of, int at)
{
	return w->base[of] + 8 * at;
}

static MPI_Aint elements(const struct window *w, int of)
{
	return w->base[of] + 64;
}

static MPI_Aint slot(const struct window *w, int of, int from)
{
	return elements(w, of) + 8 * ELEMENTS + (MPI_Aint)SLOT * from;
}

static void window_open(struct window *w, char kind)
{
	const MPI_Aint len = 64 + 8 * ELEMENTS + (MPI_Aint)SLOT * ranks;
	MPI_Aint base = 0;

	w->base = room(sizeof *w->base * (size_t)ranks);
	if (kind == 'a') {
		w->kind = "allocated";
		MPI_Win_allocate(len, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w->memory, &w->win);
	} else {
		w->memory = room((size_t)len);
	}
	if (kind == 'c') {
		w->kind = "created";
		MPI_Win_create(w->memory, len, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w->win);
	}
	if (kind == 'd') {
		w->kind = "dynamic";
		MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &w->win);
		MPI_Win_attach(w->win, w->memory, len);
		MPI_Get_address(w->memory, &base);
	}
	MPI_Allgather(&base, 1, MPI_AINT, w->base, 1, MPI_AINT, MPI_COMM_WORLD);
	MPI_Win_lock_all(0, w->win);
	memset(w->memory, 0, (size_t)len);
	MPI_Win_sync(w->win);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void window_close(struct window *w, char kind)
{
	MPI_Win_unlock_all(w->win);
	MPI_Barrier(MPI_COMM_WORLD);
	if (kind == 'd')
		MPI_Win_detach(w->win, w->memory);
	MPI_Win_free(&w->win);
	if (kind != 'a')
		free(w->memory);
	free(w->base);
}

static uint64_t fetch_add(const struct window *w, int of, int at, uint64_t n)
{
	uint64_t was = 0;

	MPI_Fetch_and_op(&n, &was, MPI_UINT64_T, of, counter(w, of, at), MPI_SUM, w->win);
	MPI_Win_flush(of, w->win);
	return was;
}

static uint64_t compare_and_swap(const struct window *w, int of, int at, uint64_t want, uint64_t next)
{
	uint64_t was = 0;

	MPI_Compare_and_swap(&next, &want, &was, MPI_UINT64_T, of, counter(w, of, at), w->win);
	MPI_Win_flush(of, w->win);
	return was;
}

/* Everyone adds to a word of every rank: each value is found once. */
static void fetch_adds(const struct window *w)
{
	const uint64_t all = (uint64_t)rounds * (uint64_t)ranks;
	uint64_t found = 0, sum = 0;

	for (int of = 0; of < ranks; of++)
		for (int i = 0; i < rounds; i++)
			found += fetch_add(w, of, 0, 1);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Allreduce(&found, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	check("sum of the values that fetch_and_op has found", sum, (uint64_t)ranks * (all * (all - 1) / 2));
	for (int of = 0; of < ranks; of++)
		check("sum of fetch_and_op", fetch_add(w, of, 0, 0), all);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Everyone counts a word up by compare_and_swap: whoever finds another value tries again. */
static void swaps(const struct window *w)
{
	uint64_t was = 0, now;

	for (int i = 0; i < rounds; i++) {
		while ((now = compare_and_swap(w, 0, 1, was, was + 1)) != was)
			was = now;
		was++;
	}
	MPI_Barrier(MPI_COMM_WORLD);
	check("sum of compare_and_swap", fetch_add(w, 0, 1, 0), (uint64_t)rounds * (uint64_t)ranks);
}

/* Everyone adds to many elements of a rank at a time. */
static void accumulates(const struct window *w)
{
	const int of = ranks - 1;
	uint64_t add[ELEMENTS], got[ELEMENTS];
	const uint64_t shares = (uint64_t)rounds * (uint64_t)ranks * (uint64_t)(ranks + 1) / 2;

	for (int i = 0; i < ELEMENTS; i++)
		add[i] = (uint64_t)(rank + 1) * (uint64_t)(i + 1);
	for (int i = 0; i < rounds; i++) {
		MPI_Accumulate(add, ELEMENTS, MPI_UINT64_T, of, elements(w, of), ELEMENTS, MPI_UINT64_T, MPI_SUM, w->win);
		if (i % 8 == 7)
			MPI_Win_flush(of, w->win);
	}
	MPI_Win_flush(of, w->win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Get_accumulate(add, ELEMENTS, MPI_UINT64_T, got, ELEMENTS, MPI_UINT64_T, of, elements(w, of), ELEMENTS,
			   MPI_UINT64_T, MPI_NO_OP, w->win);
	MPI_Win_flush(of, w->win);
	for (int i = 0; i < ELEMENTS; i++)
		check("sum of accumulate", got[i], shares * (uint64_t)(i + 1));
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Everyone puts bytes into a slot of every rank, from an odd address on, and gets them back. */
static void transfers(const struct window *w)
{
	uint8_t *from = room(SLOT), *back = room(SLOT);

	fill(from, rank, SLOT);
	for (int of = 0; of < ranks; of++) {
		MPI_Put(from, 1, MPI_BYTE, of, slot(w, of, rank), 1, MPI_BYTE, w->win);
		MPI_Put(from + 1, SLOT - 1, MPI_BYTE, of, slot(w, of, rank) + 1, SLOT - 1, MPI_BYTE, w->win);
	}
	MPI_Win_flush_all(w->win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_sync(w->win);
	for (int of = 0; of < ranks; of++)
		compare("a byte that was put", w->memory + (slot(w, rank, of) - w->base[rank]), of, SLOT);
	for (int of = 0; of < ranks; of++) {
		memset(back, 0, SLOT);
		MPI_Get(back, SLOT, MPI_BYTE, of, slot(w, of, (rank + 1) % ranks), SLOT, MPI_BYTE, w->win);
		MPI_Win_flush(of, w->win);
		compare("a byte that was got", back, (rank + 1) % ranks, SLOT);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	free(from);
	free(back);
}

/* Rank 1 operates on rank 0, which waits for it. */
static void measure_window(const struct window *w)
{
	const char *names[] = {"fetch_and_op", "compare_and_swap", "accumulate", "put", "get"};

	for (int what = 0; what < 5; what++) {
		for (int i = 0; rank == 1 && i < rounds; i++) {
			const double begin = MPI_Wtime();
			uint64_t word = 1;

			if (what == 0)
				fetch_add(w, 0, 2, 1);
			if (what == 1)
				compare_and_swap(w, 0, 3, (uint64_t)i, (uint64_t)i + 1);
			if (what == 2)
				MPI_Accumulate(&word, 1, MPI_UINT64_T, 0, counter(w, 0, 4), 1, MPI_UINT64_T, MPI_SUM, w->win);
			if (what == 3)
				MPI_Put(&word, 8, MPI_BYTE, 0, counter(w, 0, 5), 8, MPI_BYTE, w->win);
			if (what == 4)
				MPI_Get(&word, 8, MPI_BYTE, 0, counter(w, 0, 5), 8, MPI_BYTE, w->win);
			if (what > 1)
				MPI_Win_flush(0, w->win);
			times[i] = MPI_Wtime() - begin;
		}
		report_of_1(w->kind, names[what]);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	for (int at = 2; rank == 1 && at < 5; at++)
		check("sum of what was measured", fetch_add(w, 0, at, 0), (uint64_t)rounds);
}

static void window(char kind)
{
	struct window w = {0};

	window_open(&w, kind);
	fetch_adds(&w);
	swaps(&w);
	accumulates(&w);
	transfers(&w);
	measure_window(&w);
	window_close(&w, kind);
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
