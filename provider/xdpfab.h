/* SPDX-License-Identifier: Apache-2.0
 *
 * The objects of libfabric as the provider has them. The domain's lock guards everything
 * that belongs to a domain.
 */
#ifndef XDPFAB_H
#define XDPFAB_H

#include <pthread.h>
#include <stddef.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "addr.h"
#include "guest.h"
#include "info.h"
#include "neighbours.h"
#include "prov.h"
#include "regions.h"
#include "wait.h"

/* Work that waits for counters, in an order. */
struct works {
	struct deferred *first, *last; /* last counts if there is a first */
};

struct fabric {
	struct fid_fabric fid;
	char name[80];
	uint32_t refs; /* domains and event queues; atomic */
};

struct domain {
	struct fid_domain fid;
	struct fabric *fabric;
	struct domain *next; /* of all of the process; guarded by the list's lock */
	struct guest g;
	pthread_mutex_t lock;
	bool locks;   /* several threads share the domain */
	bool alone;   /* there could be no thread besides the program's */
	bool forked;  /* this process is a child of the one that opened it */
	bool dead;    /* the daemon has ended */
	bool crowded; /* operations of known peers, or parts, wait for room in the ring */
	bool basic;   /* memory registration as before version 1.5, with virtual addresses */
	uint32_t refs; /* objects that belong to it */
	struct op *ops; /* one for each entry of the rings */
	uint32_t *free_ops;
	uint32_t free_count;
	struct stream *streams; /* operations that have parts to post */
	struct works due;   /* that are to start, and of no endpoint: see defer.c */
	uint32_t due_count; /* of all endpoints, too */
	bool due_more;	    /* some have become due while others were started */
	bool due_room;	    /* some may wait for what the daemon takes from the ring */
	uint32_t deferred;  /* works that wait */
	struct cntr *cntrs;
	struct ep **eps;    /* by number */
	struct ep *all;
	struct sessions *in; /* what peers send */
	struct regions regions;	 /* that peers operate on */
	struct answers *answers; /* to what they do */
	uint32_t registered;	 /* regions so far */
	unsigned idle;	    /* looks that have found nothing, in a row */
	struct neighbours others; /* that want the CPU */
	uint64_t polled;    /* looks by the program */
	struct automatic *automatic; /* the thread that makes progress while the program does not, or NULL */
	struct addr own;    /* address of the interface */
	uint32_t format;    /* of addresses */
};

/* A completion, or an error if err is not 0. */
struct cqe {
	struct fi_cq_tagged_entry e;
	fi_addr_t source;
	size_t olen;
	int err, prov_errno;
};

struct cq {
	struct fid_cq fid;
	struct domain *dom;
	enum fi_cq_format format;
	struct waiter waiter;
	bool signalled;
	uint32_t refs; /* endpoints */
	size_t size;   /* completions after which nothing more is posted */
	bool starved;  /* a receive found no place */
	struct cqe *ring;
	size_t room, first, count; /* of ring; room is a power of two */
};

struct cntr {
	struct fid_cntr fid;
	struct domain *dom;
	struct waiter waiter;
	uint32_t refs;
	uint64_t value, errors;
	struct cntr *next;    /* of the domain's */
	struct works waiting; /* by threshold */
	uint64_t lowest;      /* of these thresholds, or UINT64_MAX */
};

struct eq {
	struct fid_eq fid;
	struct fabric *fabric;
	enum fi_wait_obj obj;
	pthread_mutex_t lock;
	pthread_cond_t more;
	int pair[2]; /* of a pipe, which has as many bytes as there are events, or -1 */
	struct event *first;
};

struct av {
	struct fid_av fid;
	struct domain *dom;
	struct addr *addrs; /* by fi_addr_t */
	bool *used;
	uint32_t *next;	    /* chains of equal hash, by fi_addr_t */
	size_t count, room; /* of addrs; count is one more than the last that was in use */
	size_t removed;	    /* of these */
	uint32_t *chains;   /* first + 1 of each, 0 for none */
	size_t chain_count; /* a power of two */
	struct ep *eps;	    /* bound */
	struct eq *eq; /* of an asynchronous one, or NULL */
	uint64_t flags;
	unsigned rx_bits; /* upper ones of an fi_addr_t, which are a receive context */
};

struct mr {
	struct fid_mr fid;
	struct domain *dom;
	struct region region; /* without access: not in the table */
	struct cntr *cntr;    /* of writes by peers, or NULL */
};

struct poll {
	struct fid_poll fid;
	struct domain *dom;
	struct fid *fids[64];
	uint64_t seen[64]; /* of counters: when it was last looked at */
	size_t count;
};

/* A peer of an endpoint. */
struct peer {
	uint32_t number; /* the daemon's, 0 before it is known */
	bool asked;
	struct post *first; /* that wait for the number, or for room behind those that did */
};

/* An entry that waits for its peer. */
struct post {
	struct post *next;
	struct xdpfab_entry e;
};

enum counted { CNTR_SEND, CNTR_READ, CNTR_WRITE, CNTR_RECV, CNTR_REMOTE_READ, CNTR_REMOTE_WRITE, CNTR_KINDS };

struct ep {
	struct fid_ep fid;
	struct ep *base; /* itself; of an alias, of which only the flags are its own, the endpoint */
	struct domain *dom;
	struct ep *next; /* bound to the same AV */
	struct ep *next_of_all; /* of the domain */
	uint16_t number;
	uint64_t identity; /* random: its origin in the conversation */
	uint64_t caps;
	uint64_t tx_flags, rx_flags; /* of operations that have none of their own */
	size_t tx_size, rx_size, buffered;
	bool enabled, closing;
	bool tx_selective, rx_selective;
	struct cq *txcq, *rxcq;
	struct cntr *cntr[CNTR_KINDS];
	struct av *av;
	struct eq *eq;
	struct peer *peers; /* by av_slot */
	size_t peer_count;
	struct asked *asked; /* calls for peers that are under way */
	uint32_t under_way;  /* operations */
	uint32_t aliases;    /* of a shared context: endpoints; of a scalable endpoint: contexts */
	struct works due; /* of its own: see defer.c */
	struct inbox *inbox; /* its receives, or those of srx */
	struct ep *srx;	     /* the shared receive context, or NULL */
	struct stx *stx;     /* likewise, of sends */
	struct ep *sep;	     /* the scalable endpoint that it is a context of, or NULL */
	size_t min_multi_recv;
};

struct stx {
	struct fid_stx fid;
	struct domain *dom;
	uint32_t refs; /* endpoints */
	bool closed;
};

/* lock and unlock do nothing while only one thread uses the domain. */
static inline void lock(struct domain *d)
{
	if (d->locks)
		pthread_mutex_lock(&d->lock);
}

/* A yield that is due is that of the thread that has looked, whose object is still open. */
static inline void unlock(struct domain *d)
{
	const bool yields = d->others.due;

	d->others.due = false;
	if (d->locks)
		pthread_mutex_unlock(&d->lock);
	if (yields)
		neighbours_yield(&d->others);
}

/* Begins a call: returns 0 with the lock held, or the error to return. */
static inline int enter(struct domain *d)
{
	if (d->forked)
		return -FI_ENODEV;
	lock(d);
	return 0;
}

/* Looks once at what has come, and returns how much: for the program, and for the thread
 * of auto.h. The lock is held. */
size_t progress(struct domain *d);
size_t progress_now(struct domain *d);

/* Whether something waits for room of which the daemon does not tell, so that nobody may
 * sleep. The lock is held. */
bool progress_due(const struct domain *d);

/* cq.c: the lock is held. */
void cq_add(struct cq *cq, const struct cqe *c);
bool cq_full(const struct cq *cq);

/* cntr.c: the lock is held. What a counter starts begins with the next defer_start. */
void cntr_add(struct cntr *c, uint64_t n, uint64_t errors);
void cntr_moved(struct cntr *c);

/* defer.c: takes what is due from a counter that has moved; starts what is due. */
void defer_moved(struct cntr *c);
void defer_run(struct domain *d);

static inline void defer_start(struct domain *d)
{
	if (d->due_count > 0)
		defer_run(d);
}

/* eq.c: they return 0 or a negative error. */
int eq_event(struct eq *eq, uint32_t kind, const void *data, size_t len);
int eq_error(struct eq *eq, const struct fi_eq_err_entry *e);

/* serve.c: takes memory of the arena, and gives back before what answers had that the daemon has
 * taken; whether it has not taken all. */
bool serve_take(struct domain *d, size_t n, uint32_t *at);
bool serve_lends(const struct domain *d);

/* av.c: the lock is held. Returns FI_ADDR_NOTAVAIL for one that is not in the AV. */
fi_addr_t av_find(const struct av *av, const struct addr *a);
const struct addr *av_addr(const struct av *av, fi_addr_t at);

/* bind.c: an endpoint has the AV from now on. */
void av_join(struct ep *ep, struct av *av);

/* The address without the receive context, and that. */
static inline fi_addr_t av_base(const struct av *av, fi_addr_t at)
{
	return at & (UINT64_MAX >> av->rx_bits);
}

static inline uint16_t av_context(const struct av *av, fi_addr_t at)
{
	return (uint16_t)(av->rx_bits == 0 ? 0 : at >> (64 - av->rx_bits));
}

/* Counts addresses with each of their receive contexts. */
static inline size_t av_slot(const struct av *av, fi_addr_t at)
{
	return av_base(av, at) << av->rx_bits | av_context(av, at);
}

/* peer.c: the lock is held. peers_fail ends operations that have not been posted yet. */
void peers_free(struct ep *ep);
void peers_fail(struct ep *ep, int error);
void peer_forget(struct ep *ep, fi_addr_t at);
void peers_retry(struct ep *ep);

/* ep.c: makes the structure of an endpoint or of a shared context, and returns 0 or a negative
 * error; puts it into the domain's list, and takes it out. */
int ep_new(struct domain *d, const struct fi_info *info, size_t fclass, void *context, struct ep **to);
void ep_list(struct ep *ep);
void ep_unlist(struct ep *ep);

/* ep.c: makes an endpoint known under a number, 0 for any, or frees it; the number that an info
 * wants; what is bound is let go. */
int ep_open(struct ep *ep, uint16_t number);
uint16_t ep_wanted(const struct fi_info *info);
void ep_unbind(struct ep *ep);
int ep_getopt(fid_t fid, int level, int name, void *value, size_t *len);
int ep_setopt(fid_t fid, int level, int name, const void *value, size_t len);

/* ep.c: the numbers of a scalable endpoint, from one on, 0 for any. The lock is held. */
int block_make(struct ep *sep, uint16_t first);
void block_free(struct ep *sep);

/* domain.c */
void domain_died(struct domain *d);
int xdpfab_domain(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **dom, void *context);

/* The functions that make objects, and the tables whose slots say -FI_ENOSYS. */
int xdpfab_av_open(struct fid_domain *d, struct fi_av_attr *attr, struct fid_av **av, void *context);
int xdpfab_cq_open(struct fid_domain *d, struct fi_cq_attr *attr, struct fid_cq **cq, void *context);
int xdpfab_cntr_open(struct fid_domain *d, struct fi_cntr_attr *attr, struct fid_cntr **cntr, void *context);
int xdpfab_eq_open(struct fid_fabric *f, struct fi_eq_attr *attr, struct fid_eq **eq, void *context);
int xdpfab_ep_bind(struct fid *fid, struct fid *to, uint64_t flags);
int xdpfab_endpoint(struct fid_domain *d, struct fi_info *info, struct fid_ep **ep, void *context);
int xdpfab_scalable_ep(struct fid_domain *d, struct fi_info *info, struct fid_ep **sep, void *context);
int xdpfab_srx_ctx(struct fid_domain *d, struct fi_rx_attr *attr, struct fid_ep **srx, void *context);
int xdpfab_stx_ctx(struct fid_domain *d, struct fi_tx_attr *attr, struct fid_stx **stx, void *context);
int xdpfab_poll_open(struct fid_domain *d, struct fi_poll_attr *attr, struct fid_poll **poll);
int xdpfab_trywait(struct fid_fabric *f, struct fid **fids, int count);
int xdpfab_query_atomic(struct fid_domain *d, enum fi_datatype type, enum fi_op op, struct fi_atomic_attr *attr,
			uint64_t flags);
extern struct fi_ops_mr xdpfab_mr_ops;
extern struct fi_ops_msg xdpfab_msg_ops;
extern struct fi_ops_tagged xdpfab_tagged_ops;
extern struct fi_ops_rma xdpfab_rma_ops;
extern struct fi_ops_atomic xdpfab_atomic_ops;
extern struct fi_ops_cm xdpfab_cm_ops;
extern struct fi_ops_collective xdpfab_collective_ops;

/* Slots in which there is nothing. */
int no_tx_ctx(struct fid_ep *ep, int index, struct fi_tx_attr *attr, struct fid_ep **tx, void *context);
int no_rx_ctx(struct fid_ep *ep, int index, struct fi_rx_attr *attr, struct fid_ep **rx, void *context);
ssize_t no_size_left(struct fid_ep *ep);
int no_bind(struct fid *fid, struct fid *to, uint64_t flags);
int no_control(struct fid *fid, int command, void *arg);
int no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context);
int no_tostr(const struct fid *fid, char *buf, size_t len);
int no_ops_set(struct fid *fid, const char *name, uint64_t flags, void *ops, void *context);

#endif
