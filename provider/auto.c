/* SPDX-License-Identifier: Apache-2.0 */
#include "auto.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "xdpfab.h"

enum {
	STACK = 128 << 10,
	FOREVER = -1,
	/* ms that the program has to leave the queues alone before the thread looks: */
	PATIENCE = 1,		/* with automatic progress, or if more came while the thread worked; */
	PATIENCE_MANUAL = 100, /* with manual progress, where a peer waits for some seconds */
};

struct automatic {
	pthread_t thread;
	int call;    /* eventfd, by which the thread is called */
	bool manual; /* it works only while operations have parts to post */
	bool rests;  /* there are none, and it waits for a call; guarded by the domain's lock */
	bool ends;   /* it is called because it has to end; atomic */
};

/* Waits for a call, at most so many ms. A thread that has armed the bell waits for the domain's
 * descriptors, too. */
static void nap(struct domain *d, bool armed, int ms)
{
	uint64_t calls;
	struct pollfd p[] = {{.fd = d->automatic->call, .events = POLLIN},
			     {.fd = d->g.bell, .events = POLLIN},
			     {.fd = d->g.talk.fd, .events = POLLIN}};

	poll(p, armed ? 3 : 1, ms);
	if (p[0].revents != 0 && read(d->automatic->call, &calls, sizeof calls) < 0)
		return; /* there was no call after all */
}

static void call(struct automatic *a)
{
	const uint64_t one = 1;

	if (write(a->call, &one, sizeof one) < 0)
		return; /* there are calls already */
}

/* Records whether there is nothing to do for the thread before it is called. */
static bool rests(struct domain *d)
{
	struct automatic *a = d->automatic;
	bool idle;

	if (!a->manual)
		return false;
	lock(d);
	idle = a->rests = d->streams == NULL;
	unlock(d);
	return idle;
}

/* Makes progress until there is none. Returns whether the bell will be rung for more. */
static bool work(struct domain *d)
{
	bool armed;

	lock(d);
	guest_hush(&d->g);
	while (progress_now(d) > 0)
		;
	armed = guest_sleep(&d->g) && !progress_due(d);
	unlock(d);
	return armed;
}

static void *run(void *arg)
{
	struct domain *d = arg;
	const struct automatic *a = d->automatic;
	const int patience = a->manual ? PATIENCE_MANUAL : PATIENCE;
	uint64_t seen = UINT64_MAX;

	while (!__atomic_load_n(&a->ends, __ATOMIC_RELAXED) && !__atomic_load_n(&d->dead, __ATOMIC_RELAXED)) {
		const uint64_t polled = __atomic_load_n(&d->polled, __ATOMIC_RELAXED);

		if (rests(d)) {
			nap(d, false, FOREVER);
			seen = UINT64_MAX; /* the program may well go on by itself */
			continue;
		}
		if (polled != seen) /* the bell would wake this thread for what the program takes by itself */
			nap(d, false, patience);
		else if (work(d))
			nap(d, true, FOREVER);
		else /* something came meanwhile */
			nap(d, false, PATIENCE);
		seen = polled;
	}
	return NULL;
}

static int start(struct domain *d, bool manual)
{
	struct automatic *a = calloc(1, sizeof *a);
	sigset_t every, former;
	pthread_attr_t attr;
	int error;

	if (a == NULL)
		return -FI_ENOMEM;
	a->manual = manual;
	a->call = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (a->call < 0) {
		free(a);
		return -errno;
	}
	d->automatic = a;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	sigfillset(&every); /* signals are for the program's threads */
	pthread_sigmask(SIG_SETMASK, &every, &former);
	error = pthread_create(&a->thread, &attr, run, d);
	pthread_sigmask(SIG_SETMASK, &former, NULL);
	pthread_attr_destroy(&attr);
	if (error != 0) {
		close(a->call);
		free(a);
		d->automatic = NULL;
		return -error;
	}
	pthread_setname_np(a->thread, "xdpfab");
	return 0;
}

int auto_start(struct domain *d)
{
	return start(d, false);
}

/* From here on the program's threads share the domain with one more. */
static void begin_feeding(struct domain *d)
{
	int error;

	if (!d->locks) {
		pthread_mutex_lock(&d->lock);
		d->locks = true;
	}
	error = start(d, true);
	d->alone = error != 0;
	if (d->alone)
		WARN(DOMAIN,
		     "no thread for long operations: %s; make a call that has progress at least every second "
		     "until they have ended, or peers drop messages that stop in their middle\n",
		     strerror(-error));
}

void auto_feed(struct domain *d)
{
	struct automatic *a = d->automatic;

	if (a == NULL && !d->alone) {
		begin_feeding(d);
	} else if (a != NULL && a->rests) {
		a->rests = false;
		call(a);
	}
}

void auto_stop(struct domain *d)
{
	struct automatic *a = d->automatic;

	if (a == NULL)
		return;
	if (!d->forked) {
		__atomic_store_n(&a->ends, true, __ATOMIC_RELAXED);
		call(a);
		pthread_join(a->thread, NULL);
	}
	close(a->call);
	free(a);
	d->automatic = NULL;
}
