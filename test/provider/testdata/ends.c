/* SPDX-License-Identifier: Apache-2.0
 *
 * ends death PEER-IP KEY: says "ready", and waits until its daemon is killed, which ends
 * operations and receives with FI_ENETDOWN. ends fork PEER-IP KEY: a child cannot use what
 * its parent has opened, and its end changes nothing for the parent. ends auto PEER-IP KEY:
 * says "ready", and sees a message come to number 300 without a call of libfabric. ends send
 * PEER-IP KEY sends that message. ends asleep PEER-IP KEY: a thread sleeps in fi_cq_sread while
 * operations begin that need progress, and nobody else makes any. ends full OWN-IP 0: with
 * automatic progress, to itself: a queue that is full holds up only what needs it. ends orphan
 * PEER-IP KEY says the number of a child, and waits to be killed. ends strangers PEER-IP KEY
 * posts to more peers at a time than the daemon is asked for in one list, of which one exists.
 * ends takes PEER-IP 0: says "ready", and as number 300 receives an empty message, one of 9 MB and one
 * of 8 bytes. ends pauses PEER-IP SECONDS sends them, and makes no call for so long in the middle of
 * the second one.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "fabric.h"

static fi_addr_t peer;
static uint64_t key;

static void death(void)
{
	const time_t end = time(NULL) + SECONDS;
	struct fid_cntr *counter, *done;
	struct fi_op_cntr never = {.value = 1};
	struct fi_op_msg message = {.ep = ep, .msg = {.addr = peer}};
	struct fi_deferred_work change = {.op_type = FI_OP_CNTR_ADD, .threshold = 1, .op.cntr = &never},
				send = {.op_type = FI_OP_SEND, .threshold = 1, .op.msg = &message};
	uint64_t value = 0;
	ssize_t n;
	struct fi_cq_tagged_entry e;

	OK(fi_cntr_open(domain, NULL, &counter, NULL));
	OK(fi_cntr_open(domain, NULL, &done, NULL));
	change.triggering_cntr = send.triggering_cntr = counter;
	never.cntr = send.completion_cntr = done;
	OK(fi_control(&domain->fid, FI_QUEUE_WORK, &change));
	OK(fi_control(&domain->fid, FI_QUEUE_WORK, &send));
	POST(fi_recv(ep, &value, 8, NULL, FI_ADDR_UNSPEC, &value));
	POST(fi_read(ep, &value, 8, NULL, peer, 0, key, &value));
	take(txcq);
	puts("ready");
	fflush(stdout);
	CHECK(take_error(rxcq).err == FI_ENETDOWN, "the receive");
	CHECK(take_error(txcq).err == FI_ENETDOWN && fi_cntr_readerr(done) == 1, "the work");
	while ((n = fi_cq_read(txcq, &e, 1)) == -FI_EAGAIN)
		CHECK(time(NULL) < end, "the queue says nothing");
	CHECK(n == -FI_ENETDOWN, "%zd", n);
	CHECK(fi_read(ep, &value, 8, NULL, peer, 0, key, &value) == -FI_ENETDOWN, "a read");
	CHECK(fi_recv(ep, &value, 8, NULL, FI_ADDR_UNSPEC, &value) == -FI_ENETDOWN, "a receive");
	CHECK(fi_control(&domain->fid, FI_QUEUE_WORK, &change) == -FI_ENETDOWN, "work");
	OK(fi_cntr_add(counter, 1));
	CHECK(fi_cntr_read(done) == 0, "what was ended has started");
	OK(fi_close(&counter->fid));
	OK(fi_close(&done->fid));
	close_all();
}

static int child(void)
{
	struct fi_cq_tagged_entry e;
	uint64_t value = 0;

	CHECK(fi_read(ep, &value, 8, NULL, peer, 0, key, &value) == -FI_ENODEV, "a read");
	CHECK(fi_send(ep, &value, 8, NULL, peer, &value) == -FI_ENODEV, "a send");
	CHECK(fi_recv(ep, &value, 8, NULL, FI_ADDR_UNSPEC, &value) == -FI_ENODEV, "a receive");
	CHECK(fi_cq_read(txcq, &e, 1) == -FI_ENODEV, "a queue");
	close_all();
	return 0;
}

static void forks(void)
{
	uint64_t value = 0;

	for (int i = 0; i < 3; i++) {
		int status;
		pid_t pid = fork();

		if (pid == 0)
			_exit(child());
		CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "status %#x", (unsigned)status);
		POST(fi_read(ep, &value, 8, NULL, peer, 0, key, &value));
		take(txcq);
	}
	close_all();
}

/* Memory that the provider's thread writes, which a sanitizer takes for a mistake. */
__attribute__((no_sanitize("thread"))) static uint64_t look(const volatile uint64_t *at)
{
	return *at;
}

static void automatic(void)
{
	uint64_t value = 0;
	const time_t end = time(NULL) + SECONDS;
	struct fi_cq_tagged_entry e;

	POST(fi_recv(ep, &value, 8, NULL, FI_ADDR_UNSPEC, &ep));
	puts("ready");
	fflush(stdout);
	while (look(&value) != 42) {
		CHECK(time(NULL) < end, "no message");
		usleep(1000);
	}
	e = take(rxcq);
	CHECK(e.len == 8 && e.op_context == &ep, "%zu bytes", e.len);
	close_all();
}

/* A child that the C library has not made, so that nothing is closed in it, outlives its
 * parent, which is killed. */
static void orphan(void)
{
	const pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

	CHECK(pid >= 0, "no child");
	if (pid == 0)
		for (;;)
			pause();
	printf("%d\n", (int)pid);
	fflush(stdout);
	pause();
}

static void sends(const char *ip)
{
	const fi_addr_t to = peer_at(ip, 300);
	uint64_t value = 42;

	POST(fi_send(ep, &value, 8, NULL, to, &value));
	take(txcq);
	close_all();
}

/* Sleeps until there is a completion. */
static void *sleeps(void *cq)
{
	struct fi_cq_tagged_entry e;
	const ssize_t n = fi_cq_sread(cq, &e, 1, NULL, SECONDS * 1000);

	CHECK(n == 1, "%zd, %s", n, fi_strerror((int)-n));
	return NULL;
}

static void asleep(void)
{
	enum { LONG = 4 << 20 };
	uint8_t *out = malloc(LONG), *in = malloc(LONG);
	pthread_t sleeper;

	fill(out, LONG, 7);
	POST(fi_write(ep, out, LONG, NULL, peer, 64, key, NULL)); /* the peer is not known yet */
	sleeps(txcq);
	CHECK(pthread_create(&sleeper, NULL, sleeps, txcq) == 0, "a thread");
	usleep(200000); /* for it to fall asleep */
	POST(fi_read(ep, in, LONG, NULL, peer, 64, key, NULL));
	pthread_join(sleeper, NULL);
	check(in, LONG, 7);
	close_all();
	free(out);
	free(in);
}

/* A message needs a place in the queue for each receive of many, and finds it when one has been
 * read, after which the program calls nothing. Events fill a queue, and the messages of another
 * one come all the same. */
static void full(const char *ip)
{
	enum { EVENTS = 20 };
	static uint64_t many[16], target;
	const fi_addr_t self = peer_at(ip, 300);
	const struct iovec iov = {many, sizeof many};
	const struct fi_msg receive = {.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC};
	const time_t end = time(NULL) + SECONDS;
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_UNSPEC};
	struct fi_info *own = fi_dupinfo(info);
	struct fid_cq *queue;
	struct fid_ep *other;
	struct fid_mr *mr;
	fi_addr_t there;

	OK(fi_recvmsg(ep, &receive, FI_MULTI_RECV));
	for (uint64_t i = 1; i <= 3; i++) {
		const struct iovec out = {&i, 8};
		const struct fi_msg send = {.msg_iov = &out, .iov_count = 1, .addr = self};

		POST(fi_sendmsg(ep, &send, FI_INJECT | FI_MATCH_COMPLETE)); /* it is not held */
	}
	while (look(&many[1]) != 2)
		CHECK(time(NULL) < end, "the first two");
	usleep(200000); /* for the third to come as far as it does, and the thread to fall asleep */
	CHECK(look(&many[2]) == 0, "there is no place for the third");
	take(rxcq);
	while (look(&many[2]) != 3)
		CHECK(time(NULL) < end, "the third");
	for (int i = 0; i < 3; i++)
		take(txcq);
	OK(fi_mr_reg(domain, &target, 8, FI_REMOTE_WRITE, 0, 7, 0, &mr, NULL));
	for (uint64_t i = 0; i < EVENTS; i++) {
		POST(fi_writedata(ep, &i, 8, NULL, i, self, 0, 7, NULL));
		take(txcq);
	}
	((struct sockaddr_in *)own->src_addr)->sin_port = htons(301);
	OK(fi_cq_open(domain, &attr, &queue, NULL));
	OK(fi_endpoint(domain, own, &other, NULL));
	OK(fi_ep_bind(other, &av->fid, 0));
	OK(fi_ep_bind(other, &queue->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(other));
	there = peer_at(ip, 301);
	POST(fi_recv(other, &many[8], 8, NULL, FI_ADDR_UNSPEC, &there));
	POST(fi_send(ep, &target, 8, NULL, there, NULL));
	CHECK(take(queue).op_context == &there && many[8] == EVENTS - 1, "%lu", many[8]);
	take(txcq);
	for (int i = 0; i < 2 + EVENTS; i++)
		take(rxcq);
	OK(fi_close(&other->fid));
	OK(fi_close(&queue->fid));
	OK(fi_close(&mr->fid));
	fi_freeinfo(own);
	close_all();
}

enum { PAUSED = 9000000 };

static void takes(void)
{
	uint8_t *in = malloc(PAUSED);
	uint64_t last = 0;

	POST(fi_recv(ep, in, 0, NULL, FI_ADDR_UNSPEC, NULL));
	POST(fi_recv(ep, in, PAUSED, NULL, FI_ADDR_UNSPEC, in));
	POST(fi_recv(ep, &last, 8, NULL, FI_ADDR_UNSPEC, &last));
	puts("ready");
	fflush(stdout);
	CHECK(take(rxcq).len == 0, "the first");
	CHECK(take(rxcq).op_context == in, "the long one comes first");
	check(in, PAUSED, 7);
	CHECK(take(rxcq).op_context == &last && last == 42, "%lu", last);
	close_all();
	free(in);
}

static void pauses(const char *ip, unsigned seconds)
{
	const fi_addr_t to = peer_at(ip, 300);
	uint8_t *out = malloc(PAUSED);
	uint64_t last = 42;

	POST(fi_send(ep, &last, 0, NULL, to, NULL)); /* the peer is known from now on */
	take(txcq);
	fill(out, PAUSED, 7);
	POST(fi_send(ep, out, PAUSED, NULL, to, out));
	sleep(seconds); /* the arena holds less than that */
	CHECK(take(txcq).op_context == out, "the long one ends first");
	POST(fi_send(ep, &last, 8, NULL, to, &last));
	take(txcq);
	close_all();
	free(out);
}

static void strangers(const char *ip)
{
	enum { MANY = 600 };
	uint64_t values[MANY];
	int ended = 0;

	for (int i = 0; i < MANY; i++) {
		const fi_addr_t nobody = peer_at(ip, 1000 + i);

		for (; fi_read(ep, &values[i], 8, NULL, nobody, 0, key, NULL) == -FI_EAGAIN; ended++)
			CHECK(take_error(txcq).err == FI_ECONNREFUSED, "there is none");
	}
	for (; ended < MANY; ended++)
		CHECK(take_error(txcq).err == FI_ECONNREFUSED, "there is none");
	POST(fi_read(ep, values, 8, NULL, peer, 0, key, NULL));
	take(txcq);
	close_all();
}

int main(int argc, char **argv)
{
	const char *what = argv[1];

	CHECK(argc == 4, "ends death|fork|auto|send|asleep|full|orphan|strangers|takes|pauses PEER-IP KEY");
	progress = strcmp(what, "auto") == 0 || strcmp(what, "full") == 0 ? FI_PROGRESS_AUTO : FI_PROGRESS_UNSPEC;
	if (strcmp(what, "pauses") == 0)
		threading = FI_THREAD_DOMAIN; /* so there are no locks until they are needed */
	queue_size = strcmp(what, "full") == 0 ? 2 : 0;
	open_all(progress == FI_PROGRESS_AUTO || strcmp(what, "takes") == 0 ? 300 : 0);
	peer = peer_at(argv[2], 0);
	key = strtoull(argv[3], NULL, 0);
	if (strcmp(what, "death") == 0)
		death();
	else if (strcmp(what, "auto") == 0)
		automatic();
	else if (strcmp(what, "send") == 0)
		sends(argv[2]);
	else if (strcmp(what, "asleep") == 0)
		asleep();
	else if (strcmp(what, "full") == 0)
		full(argv[2]);
	else if (strcmp(what, "orphan") == 0)
		orphan();
	else if (strcmp(what, "strangers") == 0)
		strangers(argv[2]);
	else if (strcmp(what, "takes") == 0)
		takes();
	else if (strcmp(what, "pauses") == 0)
		pauses(argv[2], (unsigned)key);
	else
		forks();
	puts("ok");
	return 0;
}
