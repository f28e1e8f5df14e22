/* SPDX-License-Identifier: Apache-2.0
 *
 * FI_PROGRESS_AUTO: a thread makes progress while the program does not.
 */
#ifndef XDPFAB_AUTO_H
#define XDPFAB_AUTO_H

struct domain;

/* Starts the thread. Returns 0 or a negative error. */
int auto_start(struct domain *d);

/* Ends it, if there is one in this process. */
void auto_stop(struct domain *d);

#endif
