/* SPDX-License-Identifier: Apache-2.0
 *
 * What all parts of the provider have in common.
 */
#ifndef XDPFAB_PROV_H
#define XDPFAB_PROV_H

#include <errno.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

extern struct fi_provider xdpfab_provider;

#define WARN(part, ...) FI_WARN(&xdpfab_provider, FI_LOG_##part, __VA_ARGS__)
#define INFO(part, ...) FI_INFO(&xdpfab_provider, FI_LOG_##part, __VA_ARGS__)

/* The values of parameters: the text, or NULL; the number, or otherwise a default. */
const char *param_text(const char *name);
int param_number(const char *name, int otherwise);

int xdpfab_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		   const struct fi_info *hints, struct fi_info **info);
int xdpfab_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);

#endif
