/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>

#include "xdpfab.h"

struct event {
	struct event *next;
	uint32_t kind;
	bool error;
	size_t len;
	_Alignas(8) uint8_t data[];
};

static int add(struct eq *eq, uint32_t kind, bool error, const void *data, size_t len)
{
	struct event *e = malloc(sizeof *e + len), **last;

	if (e == NULL)
		return -FI_ENOMEM;
	*e = (struct event){.kind = kind, .error = error, .len = len};
	memcpy(e->data, data, len);
	pthread_mutex_lock(&eq->lock);
	last = &eq->first;
	while (*last != NULL)
		last = &(*last)->next;
	*last = e;
	pthread_cond_broadcast(&eq->more);
	if (eq->pair[1] >= 0 && write(eq->pair[1], "", 1) < 0)
		INFO(EQ, "the queue's pipe is full\n"); /* it can be read, which is enough */
	pthread_mutex_unlock(&eq->lock);
	return 0;
}

int eq_event(struct eq *eq, uint32_t kind, const void *data, size_t len)
{
	return add(eq, kind, false, data, len);
}

int eq_error(struct eq *eq, const struct fi_eq_err_entry *e)
{
	return add(eq, 0, true, e, sizeof *e);
}

static void pop(struct eq *eq)
{
	struct event *e = eq->first;
	char c;

	eq->first = e->next;
	free(e);
	if (eq->pair[0] >= 0 && read(eq->pair[0], &c, 1) < 0)
		INFO(EQ, "the queue's pipe is empty\n");
}

/* The lock is held. */
static ssize_t take(struct eq *eq, uint32_t *event, void *buf, size_t len, uint64_t flags)
{
	struct event *e = eq->first;
	ssize_t n;

	if (e == NULL)
		return -FI_EAGAIN;
	if (e->error)
		return -FI_EAVAIL;
	if (len < e->len)
		return -FI_ETOOSMALL;
	*event = e->kind;
	memcpy(buf, e->data, e->len);
	n = (ssize_t)e->len;
	if ((flags & FI_PEEK) == 0)
		pop(eq);
	return n;
}

static ssize_t eq_read(struct fid_eq *fid, uint32_t *event, void *buf, size_t len, uint64_t flags)
{
	struct eq *eq = container_of(fid, struct eq, fid);
	ssize_t n;

	pthread_mutex_lock(&eq->lock);
	n = take(eq, event, buf, len, flags);
	pthread_mutex_unlock(&eq->lock);
	return n;
}

static ssize_t eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *buf, uint64_t flags)
{
	struct eq *eq = container_of(fid, struct eq, fid);
	ssize_t n = -FI_EAGAIN;

	pthread_mutex_lock(&eq->lock);
	if (eq->first != NULL && eq->first->error) {
		memcpy(buf, eq->first->data, sizeof *buf);
		n = sizeof *buf;
		if ((flags & FI_PEEK) == 0)
			pop(eq);
	}
	pthread_mutex_unlock(&eq->lock);
	return n;
}

static ssize_t eq_write(struct fid_eq *fid, uint32_t event, const void *buf, size_t len, uint64_t flags)
{
	const int error = eq_event(container_of(fid, struct eq, fid), event, buf, len);

	(void)flags;
	return error != 0 ? error : (ssize_t)len;
}

static ssize_t eq_sread(struct fid_eq *fid, uint32_t *event, void *buf, size_t len, int timeout, uint64_t flags)
{
	struct eq *eq = container_of(fid, struct eq, fid);
	struct timespec end;
	int late = 0;
	ssize_t n;

	if (eq->obj == FI_WAIT_NONE)
		return -FI_ENOSYS;
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += timeout / 1000;
	end.tv_nsec += (timeout % 1000) * 1000000L;
	if (end.tv_nsec >= 1000000000) {
		end.tv_sec++;
		end.tv_nsec -= 1000000000;
	}
	pthread_mutex_lock(&eq->lock);
	while ((n = take(eq, event, buf, len, flags)) == -FI_EAGAIN && late == 0 && timeout != 0)
		late = timeout < 0 ? pthread_cond_wait(&eq->more, &eq->lock)
				   : pthread_cond_timedwait(&eq->more, &eq->lock, &end);
	pthread_mutex_unlock(&eq->lock);
	return n;
}

static const char *eq_strerror(struct fid_eq *fid, int prov_errno, const void *data, char *buf, size_t len)
{
	const char *text = fi_strerror(prov_errno);

	(void)fid, (void)data;
	if (buf != NULL && len > 0) {
		strncpy(buf, text, len - 1);
		buf[len - 1] = 0;
	}
	return text;
}

static struct fi_ops_eq eq_ops = {
	.size = sizeof(struct fi_ops_eq),
	.read = eq_read,
	.readerr = eq_readerr,
	.write = eq_write,
	.sread = eq_sread,
	.strerror = eq_strerror,
};

static int eq_close(struct fid *fid)
{
	struct eq *eq = container_of(fid, struct eq, fid.fid);

	while (eq->first != NULL)
		pop(eq);
	for (int i = 0; i < 2; i++)
		if (eq->pair[i] >= 0)
			close(eq->pair[i]);
	pthread_mutex_destroy(&eq->lock);
	pthread_cond_destroy(&eq->more);
	__atomic_sub_fetch(&eq->fabric->refs, 1, __ATOMIC_ACQ_REL);
	free(eq);
	return 0;
}

static int eq_control(struct fid *fid, int command, void *arg)
{
	struct eq *eq = container_of(fid, struct eq, fid.fid);

	switch (command) {
	case FI_GETWAIT:
		if (eq->pair[0] < 0)
			return -FI_ENODATA;
		*(int *)arg = eq->pair[0];
		return 0;
	case FI_GETWAITOBJ:
		*(enum fi_wait_obj *)arg = eq->obj;
		return 0;
	}
	return -FI_ENOSYS;
}

static struct fi_ops fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = eq_close,
	.bind = no_bind,
	.control = eq_control,
	.ops_open = no_ops_open,
	.tostr = no_tostr,
	.ops_set = no_ops_set,
};

int xdpfab_eq_open(struct fid_fabric *fid, struct fi_eq_attr *attr, struct fid_eq **to, void *context)
{
	const enum fi_wait_obj obj = attr == NULL ? FI_WAIT_UNSPEC : attr->wait_obj;
	struct eq *eq;

	if (obj != FI_WAIT_NONE && obj != FI_WAIT_UNSPEC && obj != FI_WAIT_FD && obj != FI_WAIT_YIELD)
		return -FI_ENOSYS;
	eq = calloc(1, sizeof *eq);
	if (eq == NULL)
		return -FI_ENOMEM;
	eq->obj = obj == FI_WAIT_UNSPEC ? FI_WAIT_FD : obj;
	eq->pair[0] = eq->pair[1] = -1;
	if (eq->obj == FI_WAIT_FD && pipe2(eq->pair, O_CLOEXEC | O_NONBLOCK) != 0) {
		free(eq);
		return -FI_ENOMEM;
	}
	pthread_mutex_init(&eq->lock, NULL);
	pthread_cond_init(&eq->more, NULL);
	eq->fabric = container_of(fid, struct fabric, fid);
	__atomic_add_fetch(&eq->fabric->refs, 1, __ATOMIC_ACQ_REL);
	eq->fid.fid = (struct fid){.fclass = FI_CLASS_EQ, .context = context, .ops = &fid_ops};
	eq->fid.ops = &eq_ops;
	*to = &eq->fid;
	return 0;
}
