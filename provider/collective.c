/* SPDX-License-Identifier: Apache-2.0
 *
 * There are no collective operations: every slot says so.
 */
#include "xdpfab.h"

#define NONE                                                                                                           \
	{                                                                                                              \
		(void)ep;                                                                                              \
		return -FI_ENOSYS;                                                                                     \
	}

#pragma GCC diagnostic ignored "-Wunused-parameter"

static ssize_t barrier(struct fid_ep *ep, fi_addr_t to, void *context) NONE

static ssize_t broadcast(struct fid_ep *ep, void *buf, size_t count, void *desc, fi_addr_t to, fi_addr_t root,
			 enum fi_datatype type, uint64_t flags, void *context) NONE

static ssize_t exchange(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result, void *result_desc,
			fi_addr_t to, enum fi_datatype type, uint64_t flags, void *context) NONE

static ssize_t combine(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result, void *result_desc,
		       fi_addr_t to, enum fi_datatype type, enum fi_op op, uint64_t flags, void *context) NONE

static ssize_t reduce(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result, void *result_desc,
		      fi_addr_t to, fi_addr_t root, enum fi_datatype type, enum fi_op op, uint64_t flags,
		      void *context) NONE

static ssize_t rooted(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result, void *result_desc,
		      fi_addr_t to, fi_addr_t root, enum fi_datatype type, uint64_t flags, void *context) NONE

static ssize_t message(struct fid_ep *ep, const struct fi_msg_collective *msg, struct fi_ioc *result,
		       void **result_desc, size_t count, uint64_t flags) NONE

static ssize_t barrier2(struct fid_ep *ep, fi_addr_t to, uint64_t flags, void *context) NONE

struct fi_ops_collective xdpfab_collective_ops = {
	.size = sizeof(struct fi_ops_collective),
	.barrier = barrier,
	.broadcast = broadcast,
	.alltoall = exchange,
	.allreduce = combine,
	.allgather = exchange,
	.reduce_scatter = combine,
	.reduce = reduce,
	.scatter = rooted,
	.gather = rooted,
	.msg = message,
	.barrier2 = barrier2,
};
