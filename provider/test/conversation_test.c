/* SPDX-License-Identifier: Apache-2.0
 *
 * What a daemon of a kind says. conversation_test cuts DIR: its texts are cut at each byte;
 * then they come byte by byte. conversation_test damaged DIR ROUNDS SEED: texts, lengths,
 * numbers and file descriptors are others than they should be. Each ends in time, whatever
 * the daemon says. conversation_test stopped DIR: of eleven daemons one answers.
 */
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_trigger.h>

#include "../op.h"
#include "check.h"
#include "fake.h"

struct fi_provider *fi_prov_ini(void);

static struct fi_provider *provider;
static unsigned warnings;
static char warned[600]; /* the last one */

/* These take the place of libfabric's, which knows no provider here. */
int fi_log_enabled(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys part)
{
	(void)prov, (void)part;
	return level == FI_LOG_WARN;
}

void fi_log(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys part, const char *func, int line,
	    const char *text, ...)
{
	va_list more;

	(void)prov, (void)level, (void)part, (void)func, (void)line;
	va_start(more, text);
	vsnprintf(warned, sizeof warned, text, more);
	va_end(more);
	warnings++;
}

/* Objects that a program has; NULL for what it could not make. */
struct program {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_stx *stx;
	struct fid_ep *ep;
	struct fid_cntr *cntr;
};

static bool open_domain(struct program *p)
{
	return provider->getinfo(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &p->info) == 0 &&
	       provider->fabric(p->info->fabric_attr, &p->fabric, NULL) == 0 &&
	       fi_domain(p->fabric, p->info, &p->domain, NULL) == 0;
}

static bool open_endpoint(struct program *p)
{
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED};
	struct fi_av_attr av = {.type = FI_AV_TABLE};
	struct fi_cntr_attr cntr = {.wait_obj = FI_WAIT_NONE};

	return fi_cq_open(p->domain, &cq, &p->cq, NULL) == 0 && fi_av_open(p->domain, &av, &p->av, NULL) == 0 &&
	       fi_cntr_open(p->domain, &cntr, &p->cntr, NULL) == 0 &&
	       fi_stx_context(p->domain, NULL, &p->stx, NULL) == 0 &&
	       fi_endpoint(p->domain, p->info, &p->ep, NULL) == 0 && fi_ep_bind(p->ep, &p->av->fid, 0) == 0 &&
	       fi_ep_bind(p->ep, &p->stx->fid, 0) == 0 &&
	       fi_ep_bind(p->ep, &p->cq->fid, FI_TRANSMIT | FI_RECV) == 0 && fi_enable(p->ep) == 0;
}

static void close_all(struct program *p)
{
	struct fid *const all[] = {p->ep ? &p->ep->fid : NULL,	       p->av ? &p->av->fid : NULL,
				   p->stx ? &p->stx->fid : NULL,       p->cntr ? &p->cntr->fid : NULL,
				   p->cq ? &p->cq->fid : NULL,	       p->domain ? &p->domain->fid : NULL,
				   p->fabric ? &p->fabric->fid : NULL};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		CHECK(all[i] == NULL || fi_close(all[i]) == 0, "object %zu cannot be closed", i);
	if (p->info != NULL)
		fi_freeinfo(p->info);
}

/* Queues a receive without a buffer, which ends with its endpoint. It has no context by which
 * fi_cancel would know it. */
static void queue(struct program *p)
{
	struct fi_op_msg message = {.ep = p->ep, .msg = {.addr = FI_ADDR_UNSPEC}};
	struct fi_deferred_work w = {.threshold = 1, .triggering_cntr = p->cntr, .op_type = FI_OP_RECV,
				     .op.msg = &message};
	struct domain *d = container_of(p->domain, struct domain, fid);
	const int error = fi_control(&p->domain->fid, FI_QUEUE_WORK, &w);

	CHECK(error == (d->dead ? -FI_ENETDOWN : 0), "%d", error);
	CHECK(fi_cancel(&p->ep->fid, NULL) == -FI_ENOENT, "what was queued is cancelled");
}

/* Sends to two peers, so that there are calls that nobody waits for. Returns how many
 * completions there are, of errors: the peers exist no more than the daemon. */
static size_t exchange(struct program *p)
{
	struct domain *d = container_of(p->domain, struct domain, fid);
	struct sockaddr_in peer = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a000002)};
	struct fi_cq_err_entry bad;
	struct fi_cq_tagged_entry e;
	uint64_t buf = 0;
	fi_addr_t to[2];
	size_t n = 0;

	for (int i = 0; i < 2; i++) {
		peer.sin_port = htons((uint16_t)(i + 1));
		if (fi_av_insert(p->av, &peer, 1, &to[i], 0, NULL) != 1) /* one of another format, after a lie */
			return 0;
		fi_send(p->ep, &buf, sizeof buf, NULL, to[i], NULL);
		fi_recv(p->ep, &buf, sizeof buf, NULL, FI_ADDR_UNSPEC, NULL);
	}
	for (int i = 0; i < 1000 && !d->dead && d->g.talk.under_way != NULL; i++) {
		progress_now(d);
		usleep(100);
	}
	while (fi_cq_read(p->cq, &e, 1) == -FI_EAVAIL && fi_cq_readerr(p->cq, &bad, 0) == 1)
		n++;
	return n;
}

/* A program in the life of a daemon. Returns whether it had an endpoint. */
static bool live(void)
{
	struct program p = {NULL};
	const bool works = open_domain(&p) && open_endpoint(&p);

	if (works) {
		queue(&p);
		exchange(&p);
	}
	close_all(&p);
	return works;
}

static int open_files(void)
{
	DIR *all = opendir("/proc/self/fd");
	int n = 0;

	CHECK(all != NULL, "%s", strerror(errno));
	while (readdir(all) != NULL)
		n++;
	closedir(all);
	return n;
}

/* Each program leaves as many files open as it found. */
static bool one(struct fake f, const char *path, const char *what, long number)
{
	const int before = open_files();
	bool works;

	fake_start(&f, path);
	works = live();
	fake_stop();
	CHECK(open_files() == before, "%s %ld: %d files are open, %d were", what, number, open_files(), before);
	return works;
}

/* Whatever number an error has, it is one of libfabric's. */
static void refusals(const char *path)
{
	static const struct {
		const char *number;
		int error;
	} all[] = {{"13", EACCES},	     {"0", FI_EOTHER},		 {"2147483649", FI_EOTHER},
		   {"4294967296", FI_EOTHER}, {"null", FI_EOTHER}, {"266", FI_ENOKEY}};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		struct fake f = {.cut = -1, .refusal = all[i].number};
		struct program p = {NULL};
		int error;

		fake_start(&f, path);
		CHECK(provider->getinfo(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &p.info) == 0 &&
			      provider->fabric(p.info->fabric_attr, &p.fabric, NULL) == 0,
		      "no fabric");
		error = fi_domain(p.fabric, p.info, &p.domain, NULL);
		CHECK(error == -all[i].error, "errno %s: %d", all[i].number, error);
		close_all(&p);
		fake_stop();
	}
}

/* Queues of any size are refused if they are longer than the longest, and the log says so. */
static void sizes(const char *path)
{
	struct fake f = {.cut = -1};
	struct program p = {NULL};
	struct fi_rx_attr rx = {.size = MOST_QUEUE + 1};
	struct fi_tx_attr tx = {.size = SIZE_MAX};
	struct fi_cq_attr cq = {.size = MOST_QUEUE + 1};
	struct fid_ep *srx;
	unsigned before;

	fake_start(&f, path);
	CHECK(open_domain(&p), "no domain");
	before = warnings;
	CHECK(fi_srx_context(p.domain, &rx, &srx, NULL) == -FI_EINVAL, "a shared receive context");
	CHECK(strstr(warned, "65537") != NULL, "the log says: %s", warned);
	CHECK(fi_stx_context(p.domain, &tx, &p.stx, NULL) == -FI_EINVAL && fi_cq_open(p.domain, &cq, &p.cq, NULL) == -FI_EINVAL,
	      "a context or a queue");
	p.info->tx_attr->size = tx.size;
	CHECK(fi_endpoint(p.domain, p.info, &p.ep, NULL) == -FI_EINVAL, "an endpoint that sends");
	p.info->tx_attr->size = 0;
	p.info->rx_attr->total_buffered_recv = SIZE_MAX;
	CHECK(fi_endpoint(p.domain, p.info, &p.ep, NULL) == -FI_EINVAL, "an endpoint that receives");
	CHECK(warnings == before + 5, "%u warnings", warnings - before);
	rx.size = MOST_QUEUE;
	CHECK(fi_srx_context(p.domain, &rx, &srx, NULL) == 0 && fi_close(&srx->fid) == 0, "the largest");
	close_all(&p);
	fake_stop();
}

/* What hints ask for of a domain is compared with what there is. */
static void hints(const char *path)
{
	struct fake f = {.cut = -1};
	struct fi_info *h = fi_allocinfo(), *found;
	size_t *const all[] = {&h->domain_attr->cntr_cnt, &h->domain_attr->mr_cnt, &h->domain_attr->max_err_data,
			       &h->domain_attr->mr_iov_limit};

	fake_start(&f, path);
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		*all[i] = 1 << 20;
		CHECK(provider->getinfo(FI_VERSION(1, 17), NULL, NULL, 0, h, &found) == -FI_ENODATA, "hint %zu", i);
		*all[i] = 0;
	}
	h->domain_attr->cntr_cnt = 1 << 20; /* before 1.5 the field was not */
	h->domain_attr->max_ep_srx_ctx = 1 << 20;
	CHECK(provider->getinfo(FI_VERSION(1, 4), NULL, NULL, 0, h, &found) == 0, "version 1.4");
	fi_freeinfo(found);
	h->domain_attr->cntr_cnt = 1;
	CHECK(provider->getinfo(FI_VERSION(1, 17), NULL, NULL, 0, h, &found) == 0 &&
		      found->domain_attr->max_ep_srx_ctx == 256,
	      "shared contexts");
	fi_freeinfo(found);
	fi_freeinfo(h);
	fake_stop();
}

static void cuts(const char *path)
{
	struct fake whole = {.cut = -1};
	long early = 0;

	fake_start(&whole, path);
	CHECK(live(), "nothing is cut");
	fake_stop();
	CHECK(whole.attached == 1 && whole.said > 1000, "%ld bytes", whole.said);
	CHECK(one((struct fake){.cut = -1, .in_bytes = true}, path, "byte by byte", 0), "no endpoint");
	for (long cut = 0; cut < whole.said; cut++)
		early += !one((struct fake){.cut = cut}, path, "cut", cut);
	CHECK(early > whole.said / 2, "%ld of %ld have an endpoint", whole.said - early, whole.said);
}

/* A socket as a daemon has it that is stopped: the kernel connects, and nobody answers. */
static int silent(char *path)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(at.sun_path, path, strlen(path) + 1);
	unlink(path);
	CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 4) == 0, "%s: %s", path,
	      strerror(errno));
	return fd;
}

/* Daemons that are stopped cost the time of one of them, and the other one is found. A name
 * ends the wait when its daemon has answered. */
static void stopped(const char *path)
{
	enum { SILENT = 10, LIMIT = 30 }; /* s: less than one of them after the other would take */
	struct fake f = {.cut = -1, .late = 1100};
	char paths[SILENT][100], *all[SILENT + 1], *alone = paths[0];
	struct offer *offers;
	int fds[SILENT];

	for (int i = 0; i < SILENT; i++) {
		snprintf(paths[i], sizeof paths[i], "%s.%d", path, i);
		fds[i] = silent(paths[i]);
		all[i] = paths[i];
	}
	all[SILENT] = (char *)(uintptr_t)path;
	fake_start(&f, path);
	for (int i = 0; i < 2; i++) {
		const time_t from = time(NULL);
		const unsigned before = warnings;
		const size_t n = offers_of(all, SILENT + 1, i == 0 ? NULL : "eth0", &offers);

		CHECK(n == 1 && strcmp(offers->path, path) == 0, "%zu offers", n);
		CHECK(time(NULL) - from < LIMIT, "%ld s", (long)(time(NULL) - from));
		CHECK(warnings - before == (i == 0 ? SILENT : 0), "%u warnings: %s", warnings - before, warned);
		free(offers);
	}
	CHECK(strstr(warned, paths[SILENT - 1]) != NULL, "the log says: %s", warned);
	CHECK(offers_of(&alone, 1, NULL, &offers) == 0, "an offer of nobody");
	free(offers);
	fake_stop();
	for (int i = 0; i < SILENT; i++) {
		close(fds[i]);
		unlink(paths[i]);
	}
}

int main(int argc, char **argv)
{
	char path[100];
	long works = 0, rounds;

	CHECK(argc >= 3, "conversation_test cuts|damaged|stopped DIR ...");
	snprintf(path, sizeof path, "%s/d.sock", argv[2]);
	setenv("XDPFAB_CONTROL", path, 1);
	provider = fi_prov_ini();
	if (strcmp(argv[1], "cuts") == 0) {
		refusals(path);
		sizes(path);
		hints(path);
		CHECK(one((struct fake){.cut = -1, .late = 1100}, path, "late", 0), "a daemon that is busy is given up");
		cuts(path);
		puts("ok");
		return 0;
	}
	if (strcmp(argv[1], "stopped") == 0) {
		stopped(path);
		puts("ok");
		return 0;
	}
	rounds = atol(argv[3]);
	for (long i = 0; i < rounds; i++) {
		const uint32_t seed = (uint32_t)(atol(argv[4]) + 1000 * i);

		works += one((struct fake){.cut = -1, .damage = seed}, path, "damage", i);
	}
	printf("%ld of %ld had an endpoint\n", works, rounds);
	return 0;
}
