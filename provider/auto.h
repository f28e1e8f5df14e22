/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread makes progress while the program does not: always with FI_PROGRESS_AUTO, and with
 * manual progress while operations have parts to post. A peer drops a message that stops in its
 * middle, and programs may well compute for long between the beginning of a send and its end.
 */
#ifndef XDPFAB_AUTO_H
#define XDPFAB_AUTO_H

struct domain;

/* Starts the thread of FI_PROGRESS_AUTO. Returns 0 or a negative error. */
int auto_start(struct domain *d);

/* An operation has parts to post: the thread sees to them if the program does not. The lock is
 * held. */
void auto_feed(struct domain *d);

/* Ends it, if there is one in this process. */
void auto_stop(struct domain *d);

#endif
