/* SPDX-License-Identifier: Apache-2.0
 *
 * A daemon that writes anything into the rings: rings_test DIR ROUNDS SEED. Records and
 * completions are damaged more or less, and the program goes on to use its endpoints. It
 * may be told nonsense; it does not touch memory that is not its own.
 */
#include <string.h>

#include <rdma/fi_trigger.h>

#include "../match.h"
#include "../op.h"
#include "../session.h"
#include "check.h"
#include "fake.h"

enum { ENDPOINTS = 2, BUFFERS = 16, LONGEST = 5000, BATCH = 12 };

struct fi_provider *fi_prov_ini(void);

static struct {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_cntr *cntr;
	struct fid_av *av;
	struct fid_ep *ep[ENDPOINTS + 1]; /* the last one is not enabled */
	struct fid_mr *mr[2];
	fi_addr_t to;
	uint8_t *buffers[BUFFERS];
	size_t lens[BUFFERS];
	uint8_t *region; /* with key 1; key 2 is a part of it */
} p;

static uint32_t seed;
static pthread_t program; /* its thread */
static unsigned yields;	  /* of that, while it has a domain */

static uint32_t any(uint32_t n)
{
	return draw(&seed, n);
}

/* A number that is often at a limit. */
static uint64_t odd(void)
{
	static const uint64_t all[] = {0, 1, 7, 8, 63, 64, 65, 2047, 2048, 4096, 65535, 65536, UINT32_MAX,
				       1ull << 32, INT64_MAX, 1ull << 63, UINT64_MAX - 7, UINT64_MAX};

	return any(3) == 0 ? all[any(sizeof all / sizeof *all)] : any(200);
}

static struct domain *dom(void)
{
	return container_of(p.domain, struct domain, fid);
}

/* Whoever gives its CPU away does not keep the other threads of the program waiting. */
int sched_yield(void)
{
	if (!pthread_equal(pthread_self(), program) || p.domain == NULL)
		return 0;
	CHECK(pthread_mutex_trylock(&dom()->lock) == 0, "a thread yields, and has the lock");
	pthread_mutex_unlock(&dom()->lock);
	yields++;
	return 0;
}

static struct ep *ep(uint32_t i)
{
	return container_of(p.ep[i], struct ep, fid);
}

static void open_all(void)
{
	struct fi_provider *provider = fi_prov_ini();
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED, .size = 32};
	struct fi_cntr_attr cntr = {.events = FI_CNTR_EVENTS_COMP};
	struct fi_av_attr av = {.type = FI_AV_TABLE};
	struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons(1), .sin_addr.s_addr = htonl(0x0a000002)};

	CHECK(provider->getinfo(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &p.info) == 0, "no info");
	CHECK(provider->fabric(p.info->fabric_attr, &p.fabric, NULL) == 0 &&
		      fi_domain(p.fabric, p.info, &p.domain, NULL) == 0, "no domain");
	CHECK(fi_cq_open(p.domain, &cq, &p.cq, NULL) == 0 &&
		      fi_cntr_open(p.domain, &cntr, &p.cntr, NULL) == 0 && fi_av_open(p.domain, &av, &p.av, NULL) == 0,
	      "no queue");
	for (int i = 0; i <= ENDPOINTS; i++) {
		CHECK(fi_endpoint(p.domain, p.info, &p.ep[i], NULL) == 0 &&
			      fi_ep_bind(p.ep[i], &p.cq->fid, FI_TRANSMIT | FI_RECV) == 0,
		      "no endpoint");
		if (i == ENDPOINTS)
			break;
		CHECK(fi_ep_bind(p.ep[i], &p.av->fid, 0) == 0 &&
			      fi_ep_bind(p.ep[i], &p.cntr->fid, FI_REMOTE_WRITE | FI_RECV) == 0 &&
			      fi_enable(p.ep[i]) == 0,
		      "endpoint %d", i);
	}
	CHECK(fi_av_insert(p.av, &peer, 1, &p.to, 0, NULL) == 1, "no peer");
	p.region = calloc(1, LONGEST);
	CHECK(fi_mr_reg(p.domain, p.region, LONGEST, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, 0, &p.mr[0], NULL) == 0 &&
		      fi_mr_reg(p.domain, p.region + 100, 50, FI_REMOTE_READ, 0, 2, 0, &p.mr[1], NULL) == 0,
	      "no region");
	for (int i = 0; i < BUFFERS; i++) {
		p.lens[i] = i == 0 ? 0 : any(i % 2 == 0 ? LONGEST : 100);
		p.buffers[i] = malloc(p.lens[i] == 0 ? 1 : p.lens[i]); /* of its own, so that a byte more is noticed */
	}
}

static void close_all(void)
{
	for (int i = 0; i <= ENDPOINTS; i++)
		CHECK(fi_close(&p.ep[i]->fid) == 0, "endpoint %d", i);
	for (int i = 0; i < 2; i++)
		CHECK(fi_close(&p.mr[i]->fid) == 0, "region %d", i);
	CHECK(fi_close(&p.av->fid) == 0 && fi_close(&p.cntr->fid) == 0 && fi_close(&p.cq->fid) == 0 &&
		      fi_close(&p.domain->fid) == 0 && fi_close(&p.fabric->fid) == 0,
	      "an object");
	p.domain = NULL;
	fi_freeinfo(p.info);
	for (int i = 0; i < BUFFERS; i++)
		free(p.buffers[i]);
	free(p.region);
}

/* Operations as peers have them, with a number that is odd. */
static uint32_t operations(uint8_t *to, uint32_t count)
{
	static const uint8_t verbs[] = {XDPFAB_ATOMIC, XDPFAB_FETCH, XDPFAB_COMPARE, XDPFAB_READ, XDPFAB_WRITE};
	uint32_t n = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct xdpfab_operation x = {.key = any(4), .offset = any(60) * 8, .count = any(9),
					     .verb = any(20) == 0 ? (uint8_t)any(256) : verbs[any(5)],
					     .op = (uint8_t)any(21), .datatype = (uint8_t)any(21)};

		x.operand = x.count * 8;
		x.compare = x.verb == XDPFAB_COMPARE ? x.count * 8 : 0;
		if (any(4) == 0)
			x.offset = odd();
		if (any(4) == 0)
			x.count = (uint32_t)odd();
		if (any(6) == 0)
			x.total = (uint32_t)odd();
		if (any(6) == 0)
			x.operand = (uint32_t)odd();
		if (any(6) == 0)
			x.compare = (uint32_t)odd();
		memcpy(to + n, &x, sizeof x);
		n += (uint32_t)sizeof x;
		for (uint32_t end = n + any(160); n < end; n++)
			to[n] = (uint8_t)any(256);
		n = (n + 7) & ~7u;
	}
	return n;
}

static void write_ring(struct guest *g, uint64_t at, const void *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		g->arrivals[(at + i) & (g->arrivals_len - 1)] = ((const uint8_t *)from)[i];
}

/* Adds a record, whose bytes may end beyond what has arrived. */
static void record(struct guest *g)
{
	static uint8_t bytes[8192];
	const uint64_t at = g->h->arrived;
	struct xdpfab_arrival r = {.kind = (uint8_t)(1 + any(7)), .flags = (uint8_t)any(64), .session = 1 + any(4),
				   .endpoint = ep(any(ENDPOINTS))->number, .bytes = any(3) == 0 ? any(4000) : any(120),
				   .tag = any(4), .data = odd(), .source = (uint16_t)any(3), .mac = {2},
				   .has_ip = (uint8_t)any(2), .count = any(10), .offset = any(64)};

	r.length = any(3) == 0 ? odd() : r.bytes + any(2) * any(3000);
	r.unused = (struct xdpfab_room){any(5), any(3) * 2048};
	if (any(4) == 0) {
		r.form = (uint8_t)any(5);
		r.op = (uint8_t)any(21);
		r.datatype = (uint8_t)any(21);
		r.offset = any(2) == 0 ? odd() : any(20) * 8;
	}
	for (uint32_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)any(256);
	if (r.kind == XDPFAB_OPERATE) {
		r.count = any(4);
		r.bytes = operations(bytes, r.count);
		r.count = any(8) == 0 ? (uint32_t)odd() : r.count;
	}
	if (any(40) == 0)
		r.endpoint = (uint16_t)odd();
	if (any(40) == 0)
		r.endpoint = ep(ENDPOINTS)->number;
	if (any(100) == 0)
		r.bytes = (uint32_t)odd();
	if (any(100) == 0)
		((uint8_t *)&r)[any(sizeof r)] = (uint8_t)any(256);
	write_ring(g, at, &r, sizeof r);
	write_ring(g, at + sizeof r, bytes, r.bytes < sizeof bytes ? r.bytes : sizeof bytes);
	g->h->arrived = at + ((sizeof r + (uint64_t)r.bytes + 63) & ~63ull);
}

/* The daemon takes what is posted, and completes it in any way, or something else. */
static void complete(struct guest *g)
{
	g->h->taken = g->h->posted;
	for (uint32_t n = any(6); n > 0 && g->h->completed - g->h->seen < g->entries; n--) {
		struct xdpfab_completion c = {.cookie = any(g->entries), .length = odd(), .outcome = (uint8_t)any(4),
					      .status = (uint8_t)(any(3) == 0 ? any(12) : 0),
					      .reason = (uint8_t)(any(3) == 0 ? any(30) : 0),
					      .flags = (uint8_t)any(64)};

		if (any(2) == 0)
			c.outcome = XDPFAB_SUCCESS;
		if (any(50) == 0)
			c.cookie = odd();
		g->cq[g->h->completed++ & (g->entries - 1)] = c;
	}
}

/* The program does something. */
static void act(void)
{
	const uint32_t i = any(BUFFERS);
	struct fid_ep *e = p.ep[any(ENDPOINTS)];
	struct iovec iov = {p.buffers[i], p.lens[i]};
	struct fi_msg multi = {.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = &iov};
	struct fi_msg_tagged tagged = {.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .tag = any(4),
				       .context = &p.lens[any(3)]};
	static const uint64_t peeks[] = {FI_PEEK, FI_PEEK | FI_CLAIM, FI_PEEK | FI_DISCARD, FI_CLAIM,
					 FI_CLAIM | FI_DISCARD};
	const fi_addr_t from = any(2) == 0 ? p.to : FI_ADDR_UNSPEC;

	switch (any(10)) {
	case 0:
	case 1:
		fi_recv(e, iov.iov_base, iov.iov_len, NULL, FI_ADDR_UNSPEC, iov.iov_base);
		break;
	case 2:
	case 3:
		fi_trecv(e, iov.iov_base, iov.iov_len, NULL, from, any(4), any(4), iov.iov_base);
		break;
	case 4:
		fi_recvmsg(e, &multi, FI_MULTI_RECV);
		break;
	case 5:
		fi_trecvmsg(e, &tagged, peeks[any(5)]);
		break;
	case 6:
		fi_send(e, iov.iov_base, iov.iov_len, NULL, p.to, NULL);
		break;
	case 7:
		fi_read(e, iov.iov_base, iov.iov_len, NULL, p.to, 0, 1, NULL);
		break;
	case 8:
		fi_fetch_atomic(e, p.region, iov.iov_len / 8, NULL, iov.iov_base, NULL, p.to, 0, 1, FI_UINT64,
				FI_SUM, NULL);
		break;
	default:
		fi_cancel(&e->fid, iov.iov_base);
	}
}

static void read_queue(void)
{
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry bad = {.err_data_size = 0};

	for (int i = 0; i < 40; i++) {
		const ssize_t n = fi_cq_read(p.cq, &e, 1);

		if (n == -FI_EAVAIL)
			CHECK(fi_cq_readerr(p.cq, &bad, 0) == 1 && bad.err > 0, "an error without a number");
		else if (n != 1)
			break;
	}
}

/* A domain from its beginning to its end, perhaps that of its daemon first. */
static void live(void)
{
	struct guest *g;

	open_all();
	g = &dom()->g;
	for (int i = 0; i < BATCH * 8; i++) {
		act();
		if (i % 8 == 7) {
			for (uint32_t n = 1 + any(6); n > 0; n--)
				record(g);
			complete(g);
			read_queue();
		}
	}
	if (any(3) == 0)
		fake_stop();
	read_queue();
	close_all();
}

/* The daemon ends while an operation, whose peer is known, waits for room in the ring. */
static void crowded_end(void)
{
	struct guest *g;
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry bad = {.err_data_size = 0};

	open_all();
	g = &dom()->g;
	for (uint32_t i = 0; i < g->entries; i++)
		guest_note(g, &(struct xdpfab_entry){.verb = XDPFAB_LEAVE, .key = i});
	CHECK(fi_send(p.ep[0], p.region, 8, NULL, p.to, NULL) == 0, "a message");
	while (ep(0)->peers[p.to].number == 0)
		progress_now(dom());
	CHECK(ep(0)->peers[p.to].first != NULL, "there is room in the ring");
	fake_stop();
	while (!dom()->dead)
		progress_now(dom());
	CHECK(fi_cq_read(p.cq, &e, 1) == -FI_EAVAIL && fi_cq_readerr(p.cq, &bad, 0) == 1, "no error");
	CHECK(bad.err == FI_ENETDOWN && bad.prov_errno >> 16 == XDPFAB_NOT_EXECUTED, "%d, %#x", bad.err,
	      (unsigned)bad.prov_errno);
	close_all();
}

/* The daemon completes everything that has been posted. */
static void complete_all(struct guest *g)
{
	for (; g->h->taken < g->h->posted; g->h->taken++)
		g->cq[g->h->completed++ & (g->entries - 1)] = (struct xdpfab_completion){
			.cookie = g->sq[g->h->taken & (g->entries - 1)].cookie, .outcome = XDPFAB_SUCCESS};
}

/* Work that finds the queue of its completions full starts when one has been read, by the call
 * that reads it. Until then the program may sleep. */
static void due_and_full(void)
{
	enum { WORKS = 3 };
	struct fi_op_msg message = {.ep = NULL};
	struct fi_deferred_work w = {.threshold = 0, .op_type = FI_OP_SEND, .op.msg = &message};
	struct fi_cq_tagged_entry e;
	struct guest *g;
	uint64_t posted;

	open_all();
	g = &dom()->g;
	message.ep = p.ep[0];
	message.msg.addr = p.to;
	w.triggering_cntr = p.cntr;
	while (!cq_full(ep(0)->txcq)) {
		CHECK(fi_send(p.ep[0], p.region, 8, NULL, p.to, NULL) == 0, "a message");
		while (ep(0)->under_way > 0) {
			progress_now(dom());
			complete_all(g);
		}
	}
	posted = g->h->posted;
	for (int i = 0; i < WORKS; i++)
		CHECK(fi_control(&p.domain->fid, FI_QUEUE_WORK, &w) == 0, "work");
	progress_now(dom());
	CHECK(g->h->posted == posted, "work has started without a place for its completion");
	CHECK(!progress_due(dom()), "nobody may sleep");
	CHECK(fi_cq_read(p.cq, &e, 1) == 1 && g->h->posted == posted + WORKS, "%lu have started",
	      (unsigned long)(g->h->posted - posted));
	close_all();
}

/* A peer reads so much that answers fill the arena. When the daemon has taken them, operations
 * of the program have room again, though nothing more comes. */
static void answers_taken(void)
{
	enum { BYTES = 4000 };
	struct xdpfab_operation x = {.key = 1, .count = BYTES, .verb = XDPFAB_READ};
	struct xdpfab_arrival r = {.kind = XDPFAB_OPERATE, .session = 1, .bytes = sizeof x, .count = 1};
	struct guest *g;
	uint32_t at;

	open_all();
	g = &dom()->g;
	r.endpoint = ep(0)->number;
	while (arena_take(&g->space, BYTES, &at)) {
		arena_put(&g->space, at, BYTES);
		write_ring(g, g->h->arrived, &r, sizeof r);
		write_ring(g, g->h->arrived + sizeof r, &x, sizeof x);
		g->h->arrived += (sizeof r + sizeof x + 63) & ~63ull;
		CHECK(progress_now(dom()) > 0, "an operation waits");
	}
	CHECK(fi_read(p.ep[0], p.region, BYTES, NULL, p.to, 0, 1, NULL) == -FI_EAGAIN, "there is room");
	complete_all(g);
	CHECK(fi_read(p.ep[0], p.region, BYTES, NULL, p.to, 0, 1, NULL) == 0, "there is no room");
	close_all();
}

int main(int argc, char **argv)
{
	static struct fake f = {.cut = -1};
	char path[100];

	CHECK(argc == 4, "rings_test DIR ROUNDS SEED");
	snprintf(path, sizeof path, "%s/d.sock", argv[1]);
	setenv("XDPFAB_CONTROL", path, 1);
	program = pthread_self();
	setenv("FI_XDPFAB_YIELD", "1", 1);
	fake_start(&f, path);
	crowded_end();
	fake_start(&f, path);
	due_and_full();
	answers_taken();
	fake_stop();
	for (long i = 0; i < atol(argv[2]); i++) {
		seed = (uint32_t)(atol(argv[3]) + i);
		fprintf(stderr, "seed %u\n", seed);
		fake_start(&f, path);
		live();
		fake_stop();
	}
	CHECK(yields > 0, "nobody has yielded");
	puts("ok");
	return 0;
}
