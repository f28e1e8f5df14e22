/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "auto.h"
#include "defer.h"
#include "inbox.h"
#include "op.h"

/* All domains of the process, for the child of a fork. */
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct domain *all;

static void before_fork(void)
{
	pthread_mutex_lock(&all_lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&all_lock);
}

/* A child has no guest: were it to keep the connection open, the daemon would not learn of
 * the end of the parent. A lock that a thread of the parent has is nobody's there. */
static void in_child(void)
{
	for (struct domain *d = all; d != NULL; d = d->next) {
		d->forked = true;
		pthread_mutex_init(&d->lock, NULL);
		guest_forked(&d->g);
	}
	pthread_mutex_unlock(&all_lock);
}

static void on_forks(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

static void list_domain(struct domain *d)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, on_forks);
	pthread_mutex_lock(&all_lock);
	d->next = all;
	all = d;
	pthread_mutex_unlock(&all_lock);
}

static void unlist_domain(struct domain *d)
{
	pthread_mutex_lock(&all_lock);
	for (struct domain **at = &all; *at != NULL; at = &(*at)->next) {
		if (*at == d) {
			*at = d->next;
			break;
		}
	}
	pthread_mutex_unlock(&all_lock);
}

void domain_died(struct domain *d)
{
	if (d->dead)
		return;
	d->dead = true;
	WARN(DOMAIN, "%s: operations and receives end with FI_ENETDOWN; open the domain again\n",
	     d->g.talk.why[0] != 0 ? d->g.talk.why : "the daemon has ended");
	for (struct ep *ep = d->all; ep != NULL; ep = ep->next_of_all)
		peers_fail(ep, FI_ENETDOWN);
	op_end_all(d);
	inbox_end_all(d);
	defer_end(d, &(struct meant){.ep = NULL}, FI_ENETDOWN);
}

static void domain_free(struct domain *d)
{
	guest_detach(&d->g);
	sessions_free(d->in);
	regions_release(&d->regions);
	free(d->answers);
	free(d->ops);
	free(d->free_ops);
	free(d->eps);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

static int domain_close(struct fid *fid)
{
	struct domain *d = container_of(fid, struct domain, fid.fid);

	if (d->refs > 0) {
		WARN(DOMAIN, "domain: %u objects of it are open: close its endpoints, queues, counters and others first\n",
		     d->refs);
		return -FI_EBUSY;
	}
	auto_stop(d);
	unlist_domain(d);
	__atomic_sub_fetch(&d->fabric->refs, 1, __ATOMIC_ACQ_REL);
	domain_free(d);
	return 0;
}

/* Asynchronous memory registration needs an event queue; there is none. */
static int domain_bind(struct fid *fid, struct fid *to, uint64_t flags)
{
	(void)fid;
	return to->fclass == FI_CLASS_EQ && (flags & FI_REG_MR) == 0 ? 0 : -FI_ENOSYS;
}

static struct fi_ops fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = domain_close,
	.bind = domain_bind,
	.control = queue_control,
	.ops_open = no_ops_open,
	.tostr = no_tostr,
	.ops_set = no_ops_set,
};

static int no_query_collective(struct fid_domain *d, enum fi_collective_op coll, struct fi_collective_attr *attr,
			       uint64_t flags)
{
	(void)d, (void)coll, (void)attr, (void)flags;
	return -FI_ENOSYS;
}

static int endpoint2(struct fid_domain *d, struct fi_info *info, struct fid_ep **ep, uint64_t flags, void *context)
{
	return flags != 0 ? -FI_EOPNOTSUPP : xdpfab_endpoint(d, info, ep, context);
}

static struct fi_ops_domain domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = xdpfab_av_open,
	.cq_open = xdpfab_cq_open,
	.endpoint = xdpfab_endpoint,
	.scalable_ep = xdpfab_scalable_ep,
	.cntr_open = xdpfab_cntr_open,
	.poll_open = xdpfab_poll_open,
	.stx_ctx = xdpfab_stx_ctx,
	.srx_ctx = xdpfab_srx_ctx,
	.query_atomic = xdpfab_query_atomic,
	.query_collective = no_query_collective,
	.endpoint2 = endpoint2,
};

/* Where the daemon of an info is: offers are asked for anew, since an info may be old. */
static int find_path(const struct fi_info *info, char *path)
{
	struct offer *offers;
	const size_t n = offer_all(info->domain_attr->name, &offers);
	int error = -FI_ENODEV;

	for (size_t i = 0; i < n && error != 0; i++) {
		if (strcmp(offers[i].name, info->domain_attr->name) == 0) {
			memcpy(path, offers[i].path, SOCKET_PATH);
			error = 0;
		}
	}
	free(offers);
	return error;
}

static bool automatic(const struct fi_info *info)
{
	return info->domain_attr->data_progress == FI_PROGRESS_AUTO ||
	       info->domain_attr->control_progress == FI_PROGRESS_AUTO;
}

static int make_tables(struct domain *d)
{
	d->ops = calloc(d->g.entries, sizeof *d->ops);
	d->free_ops = calloc(d->g.entries, sizeof *d->free_ops);
	d->eps = calloc(UINT16_MAX + 1, sizeof *d->eps);
	d->in = sessions_new();
	d->answers = answers_new();
	if (d->ops == NULL || d->free_ops == NULL || d->eps == NULL || d->in == NULL || d->answers == NULL)
		return -FI_ENOMEM;
	while (d->free_count < d->g.entries) {
		d->free_ops[d->free_count] = d->g.entries - 1 - d->free_count;
		d->free_count++;
	}
	return 0;
}

int xdpfab_domain(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **dom, void *context)
{
	struct domain *d;
	char path[SOCKET_PATH];
	const int yield = param_number("yield", 1024);
	int error = info->domain_attr == NULL || info->domain_attr->name == NULL ? -FI_EINVAL : find_path(info, path);

	if (error != 0)
		return error;
	d = calloc(1, sizeof *d);
	if (d == NULL)
		return -FI_ENOMEM;
	error = guest_attach(&d->g, path);
	if (error != 0) {
		free(d);
		return error;
	}
	pthread_mutex_init(&d->lock, NULL);
	error = make_tables(d);
	if (error != 0) {
		domain_free(d);
		return error;
	}
	d->fabric = container_of(fabric, struct fabric, fid);
	d->fid.fid = (struct fid){.fclass = FI_CLASS_DOMAIN, .context = context, .ops = &fid_ops};
	d->fid.ops = &domain_ops;
	d->fid.mr = &xdpfab_mr_ops;
	d->locks = info->domain_attr->threading != FI_THREAD_DOMAIN || automatic(info);
	d->basic = info->domain_attr->mr_mode == FI_MR_BASIC;
	d->others.rarely = (uint32_t)(yield < 0 ? 0 : yield);
	d->format = info->addr_format;
	if (info->src_addr != NULL)
		addr_read(&d->own, info->addr_format, info->src_addr);
	error = automatic(info) ? auto_start(d) : 0;
	if (error != 0) {
		domain_free(d);
		return error;
	}
	__atomic_add_fetch(&d->fabric->refs, 1, __ATOMIC_ACQ_REL);
	list_domain(d);
	*dom = &d->fid;
	return 0;
}
