/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs that are killed, and a file of what they have done. kills keep FILE NUMBER IP has the
 * words of the file as memory for peers, and makes progress by its thread alone, while it
 * adds to its own word. kills add FILE INDEX PEER-IP NUMBER adds 1 to a word of these, with
 * several additions in flight, and counts in the file how they end. Both say "ready", and
 * end with their input.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "fabric.h"

enum { WORDS = 8, WINDOW = 8, KEY = 7, ACCESS = FI_REMOTE_READ | FI_REMOTE_WRITE };

/* What a program has done to its word: it is at least ran, at most ran + unknown, where
 * unknown counts those, too, that are posted and have not ended. */
struct file {
	struct {
		uint64_t posted, ran, never, unknown;
	} done[WORDS];
	uint64_t words[WORDS];
};

static struct file *file;

/* Additions in flight. */
static struct slot {
	uint64_t found;
	bool used;
} slots[WINDOW];

static bool input_ends(void)
{
	struct pollfd p = {.fd = 0, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static void map(const char *path)
{
	const int fd = open(path, O_RDWR);

	CHECK(fd >= 0, "%s", path);
	file = mmap(NULL, sizeof *file, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(file != MAP_FAILED, "%s", path);
	close(fd);
}

static void keep(const char *ip, int number)
{
	const uint64_t one = 1;
	const fi_addr_t self = peer_at(ip, number);
	uint64_t before, n = 0;
	struct fid_mr *mr;

	OK(fi_mr_reg(domain, file->words, sizeof file->words, ACCESS, 0, KEY, 0, &mr, NULL));
	memcpy(&before, &file->words[WORDS - 1], sizeof before);
	puts("ready");
	fflush(stdout);
	for (; !input_ends(); n++) {
		uint64_t found;

		POST(fi_fetch_atomic(ep, &one, 1, NULL, &found, NULL, self, 8 * (WORDS - 1), KEY, FI_UINT64, FI_SUM,
				     NULL));
		take(txcq);
		CHECK(found == before + n, "%lu: want %lu", found, before + n);
		usleep(1000);
	}
	OK(fi_close(&mr->fid));
}

static struct slot *free_slot(void)
{
	for (int i = 0; i < WINDOW; i++)
		if (!slots[i].used)
			return &slots[i];
	return NULL;
}

/* Takes the end of an addition to a word. */
static void ended(int word)
{
	const uint64_t ran = file->done[word].ran, unknown = file->done[word].unknown;
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry bad = {.err_data_size = 0};
	struct slot *s;
	ssize_t n = fi_cq_read(txcq, &e, 1);

	if (n == -FI_EAGAIN)
		return;
	if (n == 1) {
		s = e.op_context;
		CHECK(s->found >= ran && s->found <= ran + unknown, "found %lu after %lu and %lu", s->found, ran,
		      unknown);
		file->done[word].ran++;
	} else {
		CHECK(n == -FI_EAVAIL && fi_cq_readerr(txcq, &bad, 0) == 1, "%zd", n);
		s = bad.op_context;
		if (bad.prov_errno >> 16 == 1) /* it never ran */
			file->done[word].never++;
		else
			file->done[word].unknown++;
		usleep(2000);
	}
	s->used = false;
}

static void add(int word, fi_addr_t peer)
{
	const uint64_t one = 1;
	struct slot *s;
	bool idle;

	puts("ready");
	fflush(stdout);
	do {
		const bool stop = input_ends();
		ssize_t n;

		idle = true;
		while (!stop && (s = free_slot()) != NULL) {
			s->used = true;
			file->done[word].posted++;
			n = fi_fetch_atomic(ep, &one, 1, NULL, &s->found, NULL, peer, 8 * (uint64_t)word, KEY,
					    FI_UINT64, FI_SUM, s);
			if (n == 0)
				continue;
			CHECK(n == -FI_EAGAIN, "%zd", n);
			file->done[word].posted--;
			s->used = false;
			break;
		}
		ended(word);
		for (int i = 0; i < WINDOW; i++)
			idle &= !slots[i].used;
	} while (!idle);
}

int main(int argc, char **argv)
{
	CHECK(argc >= 5, "kills keep FILE NUMBER IP, or kills add FILE INDEX PEER-IP NUMBER");
	map(argv[2]);
	if (strcmp(argv[1], "keep") == 0) {
		progress = FI_PROGRESS_AUTO;
		open_all(atoi(argv[3]));
		keep(argv[4], atoi(argv[3]));
	} else {
		CHECK(argc == 6, "kills add FILE INDEX PEER-IP NUMBER");
		open_all(0);
		add(atoi(argv[3]), peer_at(argv[4], atoi(argv[5])));
	}
	close_all();
	puts("ok");
	return 0;
}
