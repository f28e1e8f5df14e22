/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "xdpfab.h"

enum { FIRST_ROOM = 64 };

const struct addr *av_addr(const struct av *av, fi_addr_t at)
{
	at = av_base(av, at);
	return at < av->count && av->used[at] ? &av->addrs[at] : NULL;
}

static uint32_t *chain_of(const struct av *av, const struct addr *a)
{
	return &av->chains[addr_hash(a) & (av->chain_count - 1)];
}

fi_addr_t av_find(const struct av *av, const struct addr *a)
{
	if (av->chain_count == 0)
		return FI_ADDR_NOTAVAIL;
	for (uint32_t i = *chain_of(av, a); i != 0; i = av->next[i - 1])
		if (addr_equal(&av->addrs[i - 1], a))
			return i - 1;
	return FI_ADDR_NOTAVAIL;
}

/* Puts an address behind those of its chain, so that of equal ones the oldest is found. */
static void link_addr(struct av *av, uint32_t at)
{
	uint32_t *to = chain_of(av, &av->addrs[at]);

	while (*to != 0)
		to = &av->next[*to - 1];
	av->next[at] = 0;
	*to = at + 1;
}

static void unlink_addr(struct av *av, uint32_t at)
{
	for (uint32_t *to = chain_of(av, &av->addrs[at]); *to != 0; to = &av->next[*to - 1]) {
		if (*to == at + 1) {
			*to = av->next[at];
			return;
		}
	}
}

static bool resize(void *array, size_t n, size_t len)
{
	void **at = array, *more = realloc(*at, n * len);

	if (more != NULL)
		*at = more;
	return more != NULL;
}

static bool grow(struct av *av)
{
	const size_t n = av->room == 0 ? FIRST_ROOM : 2 * av->room;

	if (!resize(&av->addrs, n, sizeof *av->addrs) || !resize(&av->used, n, sizeof *av->used) ||
	    !resize(&av->next, n, sizeof *av->next) || !resize(&av->chains, n, sizeof *av->chains))
		return false;
	memset(av->used + av->room, 0, (n - av->room) * sizeof *av->used);
	memset(av->chains, 0, n * sizeof *av->chains);
	av->room = av->chain_count = n;
	for (uint32_t i = 0; i < av->count; i++)
		if (av->used[i])
			link_addr(av, i);
	return true;
}

/* The place of another address: the first that is free, or a new one. */
static size_t place(const struct av *av)
{
	size_t i = av->removed > 0 ? 0 : av->count;

	while (i < av->count && av->used[i])
		i++;
	return i;
}

static int insert(struct av *av, const struct addr *a, fi_addr_t *to)
{
	const size_t i = place(av);

	if (i == av->room && !grow(av))
		return -FI_ENOMEM;
	if (i < av->count)
		av->removed--;
	else
		av->count++;
	av->addrs[i] = *a;
	av->used[i] = true;
	link_addr(av, (uint32_t)i);
	*to = i;
	return 0;
}

/* Tells of an address that was not inserted, in the queue or where the caller wants it. */
static void failed(struct av *av, size_t i, int error, uint64_t flags, void *context)
{
	if ((flags & FI_SYNC_ERR) != 0)
		((int *)context)[i] = error;
	else if (av->eq != NULL)
		eq_error(av->eq, &(struct fi_eq_err_entry){.fid = &av->fid.fid, .context = context, .data = i,
							   .err = error});
}

static int av_insert(struct fid_av *fid, const void *addr, size_t count, fi_addr_t *to, uint64_t flags, void *context)
{
	struct av *av = container_of(fid, struct av, fid);
	const size_t len = addr_len(av->dom->format);
	int done = 0, error = enter(av->dom);

	if (error != 0)
		return error;
	for (size_t i = 0; i < count; i++) {
		const void *from = (const uint8_t *)addr + i * len;
		fi_addr_t at = FI_ADDR_NOTAVAIL;
		struct addr a;

		if (av->dom->format == FI_ADDR_STR)
			from = ((const char *const *)addr)[i];
		error = addr_read(&a, av->dom->format, from) ? insert(av, &a, &at) : -FI_EINVAL;
		if (error == 0)
			done++;
		if (error != 0 || (flags & FI_SYNC_ERR) != 0)
			failed(av, i, -error, flags, context);
		if (to != NULL)
			to[i] = at;
	}
	unlock(av->dom);
	if (av->eq == NULL)
		return done;
	eq_event(av->eq, FI_AV_COMPLETE,
		 &(struct fi_eq_entry){.fid = &av->fid.fid, .context = context, .data = (uint64_t)done},
		 sizeof(struct fi_eq_entry));
	return 0;
}

static int av_insertsvc(struct fid_av *fid, const char *node, const char *service, fi_addr_t *to, uint64_t flags,
			void *context)
{
	struct av *av = container_of(fid, struct av, fid);
	struct addr a;
	char written[ADDR_TEXT];
	const char *text = written;
	size_t len = sizeof written;
	int error = addr_resolve(&a, av->dom->format, node, service, false);

	if (error != 0)
		return error;
	addr_write(&a, av->dom->format, written, &len);
	return av_insert(fid, av->dom->format == FI_ADDR_STR ? (const void *)&text : written, 1, to, flags, context);
}

static int av_insertsym(struct fid_av *fid, const char *node, size_t nodes, const char *service, size_t services,
			fi_addr_t *to, uint64_t flags, void *context)
{
	(void)fid, (void)node, (void)nodes, (void)service, (void)services, (void)to, (void)flags, (void)context;
	return -FI_ENOSYS;
}

static int av_remove(struct fid_av *fid, fi_addr_t *addrs, size_t count, uint64_t flags)
{
	struct av *av = container_of(fid, struct av, fid);
	int error = enter(av->dom);

	if (error != 0)
		return error;
	if (flags != 0) {
		unlock(av->dom);
		return -FI_EINVAL;
	}
	for (size_t i = 0; i < count; i++) {
		if (av_addr(av, addrs[i]) == NULL) {
			error = -FI_EINVAL;
			continue;
		}
		for (struct ep *ep = av->eps; ep != NULL; ep = ep->next)
			peer_forget(ep, addrs[i]);
		unlink_addr(av, (uint32_t)addrs[i]);
		av->used[addrs[i]] = false;
		av->removed++;
	}
	defer_start(av->dom);
	unlock(av->dom);
	return error;
}

static int av_lookup(struct fid_av *fid, fi_addr_t at, void *addr, size_t *len)
{
	struct av *av = container_of(fid, struct av, fid);
	const struct addr *a;
	int error = enter(av->dom);

	if (error != 0)
		return error;
	a = av_addr(av, at);
	if (a != NULL)
		addr_write(a, av->dom->format, addr, len);
	unlock(av->dom);
	return a == NULL ? -FI_EINVAL : 0;
}

static const char *av_straddr(struct fid_av *fid, const void *addr, char *buf, size_t *len)
{
	const struct av *av = container_of(fid, struct av, fid);
	char text[ADDR_TEXT] = "";
	struct addr a;
	size_t n;

	if (addr_read(&a, av->dom->format, addr))
		addr_text(&a, text, sizeof text);
	n = strlen(text) + 1;
	if (*len > 0) {
		memcpy(buf, text, n < *len ? n : *len);
		buf[*len - 1] = 0;
	}
	*len = n;
	return buf;
}

static int no_av_set(struct fid_av *fid, struct fi_av_set_attr *attr, struct fid_av_set **set, void *context)
{
	(void)fid, (void)attr, (void)set, (void)context;
	return -FI_ENOSYS;
}

static struct fi_ops_av av_ops = {
	.size = sizeof(struct fi_ops_av),
	.insert = av_insert,
	.insertsvc = av_insertsvc,
	.insertsym = av_insertsym,
	.remove = av_remove,
	.lookup = av_lookup,
	.straddr = av_straddr,
	.av_set = no_av_set,
};

static int av_close(struct fid *fid)
{
	struct av *av = container_of(fid, struct av, fid.fid);
	struct domain *d = av->dom;

	lock(d);
	if (av->eps != NULL) {
		unlock(d);
		WARN(AV, "address vector: endpoints use it: close them first\n");
		return -FI_EBUSY;
	}
	d->refs--;
	unlock(d);
	free(av->addrs);
	free(av->used);
	free(av->next);
	free(av->chains);
	free(av);
	return 0;
}

static int av_bind(struct fid *fid, struct fid *to, uint64_t flags)
{
	struct av *av = container_of(fid, struct av, fid.fid);

	(void)flags;
	if (to->fclass != FI_CLASS_EQ || (av->flags & FI_EVENT) == 0)
		return -FI_EINVAL;
	av->eq = container_of(to, struct eq, fid.fid);
	return 0;
}

static struct fi_ops fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = av_close,
	.bind = av_bind,
	.control = no_control,
	.ops_open = no_ops_open,
	.tostr = no_tostr,
	.ops_set = no_ops_set,
};

int xdpfab_av_open(struct fid_domain *fid, struct fi_av_attr *attr, struct fid_av **to, void *context)
{
	struct domain *d = container_of(fid, struct domain, fid);
	struct av *av;

	if (d->forked)
		return -FI_ENODEV;
	if (attr->name != NULL || attr->rx_ctx_bits > CONTEXT_BITS || attr->rx_ctx_bits < 0 ||
	    (attr->flags & ~(FI_EVENT | FI_SYMMETRIC)) != 0)
		return -FI_ENOSYS; /* vectors that processes share */
	av = calloc(1, sizeof *av);
	if (av == NULL)
		return -FI_ENOMEM;
	av->dom = d;
	av->flags = attr->flags;
	av->rx_bits = (unsigned)attr->rx_ctx_bits;
	av->fid.fid = (struct fid){.fclass = FI_CLASS_AV, .context = context, .ops = &fid_ops};
	av->fid.ops = &av_ops;
	if (attr->type == FI_AV_UNSPEC)
		attr->type = FI_AV_TABLE;
	lock(d);
	d->refs++;
	unlock(d);
	*to = &av->fid;
	return 0;
}
