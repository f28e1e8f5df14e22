/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Frames as they come: what the header says, and whether the padding is as it has to be.
 */
#pragma once

#include "session.h"

/* Reads the header, of which nothing is to be believed before open_frame. 0: the frame is
 * not for this program. Only the seal and the padding are left to be looked at. */
static __always_inline int read_header(struct scratch *s)
{
	struct header *h = &s->h;

	h->type = s->in[0];
	if (s->length < FRAME_MIN || h->type >> 4 != 1)
		return 0;
	h->type &= 0xf;
	h->flags = s->in[1];
	h->session = in32(s, 2);
	h->epoch = in32(s, 6);
	h->psn = in32(s, 10);
	h->ack = in32(s, 14);
	h->ops = s->in[28];
	h->lane = s->in[29];
	if (h->lane >= FAB_LANES)
		return 0;
	if (h->type == T_REQUEST)
		return h->ops > 0 && !(h->flags & ~(DELAY | RETX | PADDED));
	if (h->flags & ~(h->type == T_PROBE ? RETX | ECHO : RETX))
		return 0;
	return (h->type == T_ACK || h->type == T_PROBE) && !h->ops && s->length == FRAME_MIN;
}

/* Leaves out what follows the records of a padded request. */
static __always_inline int unpad(struct scratch *s)
{
	__u32 end = s->length - 2, n;

	if (!(s->h.flags & PADDED))
		return 1;
	n = *(__u16 *)(s->in + CUT(end, FRAME_MASK));
	if (n < PAYLOAD_MIN || n > end - HEADER)
		return 0;
	s->length = HEADER + n;
	return 1;
}

/* What is left to be looked at once the frame is open. */
static __always_inline int unpadded(struct scratch *s)
{
	return s->h.type == T_REQUEST ? unpad(s) : padded_well(s, HEADER);
}
