/* SPDX-License-Identifier: Apache-2.0 */
#include "auto.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "xdpfab.h"

enum {
	STACK = 128 << 10,
	PATIENCE = 1, /* ms that the program has to leave the queues alone before the thread looks */
};

struct automatic {
	pthread_t thread;
	int stop; /* eventfd */
};

/* Waits, and returns false if the thread has to end. Of the domain's descriptors only a
 * thread that has armed the bell wants to hear. */
static bool nap(struct domain *d, bool armed)
{
	struct pollfd p[] = {{.fd = d->automatic->stop, .events = POLLIN},
			     {.fd = d->g.bell, .events = POLLIN},
			     {.fd = d->g.talk.fd, .events = POLLIN}};

	poll(p, armed ? 3 : 1, armed ? -1 : PATIENCE);
	return p[0].revents == 0;
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
	uint64_t seen = 0;
	bool go_on = true;

	while (go_on && !__atomic_load_n(&d->dead, __ATOMIC_RELAXED)) {
		const uint64_t polled = __atomic_load_n(&d->polled, __ATOMIC_RELAXED);

		if (polled == seen)
			go_on = nap(d, work(d));
		else /* the bell would wake this thread for what the program takes by itself */
			go_on = nap(d, false);
		seen = polled;
	}
	return NULL;
}

int auto_start(struct domain *d)
{
	struct automatic *a = malloc(sizeof *a);
	sigset_t every, former;
	pthread_attr_t attr;
	int error;

	if (a == NULL)
		return -FI_ENOMEM;
	a->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (a->stop < 0) {
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
		close(a->stop);
		free(a);
		d->automatic = NULL;
		return -error;
	}
	pthread_setname_np(a->thread, "xdpfab");
	return 0;
}

void auto_stop(struct domain *d)
{
	const uint64_t one = 1;

	if (d->automatic == NULL)
		return;
	if (!d->forked && write(d->automatic->stop, &one, sizeof one) == sizeof one)
		pthread_join(d->automatic->thread, NULL);
	close(d->automatic->stop);
	free(d->automatic);
	d->automatic = NULL;
}
