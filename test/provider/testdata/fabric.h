/* SPDX-License-Identifier: Apache-2.0
 *
 * What the programs in C have in common: an endpoint of the provider, and checks.
 */
#ifndef XDPFAB_TEST_FABRIC_H
#define XDPFAB_TEST_FABRIC_H

#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/fi_trigger.h>

#define CHECK(ok, ...)                                                                                                 \
	do {                                                                                                           \
		if (!(ok)) {                                                                                           \
			fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #ok);                                       \
			fprintf(stderr, __VA_ARGS__);                                                                  \
			fprintf(stderr, "\n");                                                                         \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

/* Calls that return 0 or a negative error. */
#define OK(call)                                                                                                       \
	do {                                                                                                           \
		long ret_ = (long)(call);                                                                              \
		CHECK(ret_ == 0, "%ld, %s", ret_, fi_strerror((int)-ret_));                                            \
	} while (0)

extern enum fi_progress progress; /* to ask for; set before open_all */
extern enum fi_threading threading; /* likewise */
extern size_t queue_size;	   /* of rxcq, likewise; 0 is the usual one */
extern struct fi_info *info;
extern struct fid_fabric *fabric;
extern struct fid_domain *domain;
extern struct fid_ep *ep;
extern struct fid_av *av;
extern struct fid_cq *txcq, *rxcq;

enum { SECONDS = 120 }; /* for anything that is waited for */

/* Opens an endpoint of a number, 0 for any, with queues that can be waited for. */
void open_all(int number);
void close_all(void);

/* Makes a peer of an IP address and a number known. */
fi_addr_t peer_at(const char *ip, int number);

/* Posts until the provider has room. */
#define POST(call)                                                                                                     \
	do {                                                                                                           \
		long ret_;                                                                                             \
		time_t end_ = time(NULL) + SECONDS;                                                                    \
		while ((ret_ = (long)(call)) == -FI_EAGAIN)                                                            \
			CHECK(time(NULL) < end_, "no room");                                                           \
		CHECK(ret_ == 0, "%ld, %s", ret_, fi_strerror((int)-ret_));                                            \
	} while (0)

/* Waits for a completion; both queues make progress. */
struct fi_cq_tagged_entry take(struct fid_cq *cq);

/* Waits for an error, and returns it. */
struct fi_cq_err_entry take_error(struct fid_cq *cq);

/* Bytes that tell from where in which message they are. */
void fill(uint8_t *to, size_t n, unsigned seed);
void check(const uint8_t *at, size_t n, unsigned seed);

#endif
