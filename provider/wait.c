/* SPDX-License-Identifier: Apache-2.0 */
#include "wait.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>

#include "xdpfab.h"

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t deadline_of(int limit)
{
	return limit < 0 ? INT64_MAX : now_ms() + limit;
}

int left_of(int64_t deadline)
{
	int64_t left;

	if (deadline == INT64_MAX)
		return -1;
	left = deadline - now_ms();
	return left < 0 ? 0 : (int)left;
}

static bool add(int epoll, int fd)
{
	struct epoll_event e = {.events = EPOLLIN};

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) == 0;
}

int wait_open(struct waiter *w, struct domain *d, enum fi_wait_obj obj)
{
	*w = (struct waiter){.obj = obj, .signal = -1, .epoll = -1};
	switch (obj) {
	case FI_WAIT_NONE:
	case FI_WAIT_YIELD:
		return 0;
	case FI_WAIT_UNSPEC:
	case FI_WAIT_FD:
		break;
	default:
		return -FI_ENOSYS;
	}
	w->obj = FI_WAIT_FD;
	w->signal = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (w->signal < 0 || w->epoll < 0 || !add(w->epoll, w->signal) || !add(w->epoll, d->g.bell) ||
	    !add(w->epoll, d->g.talk.fd)) {
		const int error = errno;

		wait_close(w);
		return -error;
	}
	return 0;
}

void wait_close(struct waiter *w)
{
	if (w->signal >= 0)
		close(w->signal);
	if (w->epoll >= 0)
		close(w->epoll);
	w->signal = w->epoll = -1;
}

void wait_tell(struct waiter *w)
{
	const uint64_t one = 1;

	if (!w->armed)
		return;
	w->armed = false;
	if (w->signal >= 0 && write(w->signal, &one, sizeof one) < 0)
		return; /* it is full, and wakes all the same */
}

bool wait_arm(struct waiter *w, struct domain *d)
{
	uint64_t n;

	if (w->signal >= 0 && read(w->signal, &n, sizeof n) > 0)
		w->armed = false;
	w->armed = true;
	guest_hush(&d->g);
	return guest_sleep(&d->g) && !progress_due(d);
}

void wait_some(struct waiter *w, struct domain *d, int limit)
{
	struct pollfd p[] = {{.fd = d->g.bell, .events = POLLIN},
			     {.fd = d->g.talk.fd, .events = POLLIN},
			     {.fd = w->signal, .events = POLLIN}};

	if (w->signal < 0 || !wait_arm(w, d)) {
		unlock(d);
		sched_yield();
		lock(d);
		return;
	}
	unlock(d);
	poll(p, 3, limit);
	lock(d);
}

int wait_control(struct waiter *w, int command, void *arg)
{
	switch (command) {
	case FI_GETWAIT:
		if (w->epoll < 0)
			return -FI_ENODATA;
		*(int *)arg = w->epoll;
		return 0;
	case FI_GETWAITOBJ:
		*(enum fi_wait_obj *)arg = w->obj;
		return 0;
	}
	return -FI_ENOSYS;
}
