/* SPDX-License-Identifier: Apache-2.0
 *
 * What becomes of the bytes of a message in the buffers of its receive. A message that is
 * an atomic is combined with elements there, in place of being copied. It has one piece,
 * the operands, and is combined as a whole or, if it does not fit the receive, not at
 * all. It needs the bytes of the buffer up to its last element, so that is its length for
 * a multi-receive.
 */

#include "match_state.h"

#include <string.h>

#include "word.h"

/* write_buffers copies data to an offset in the buffers of a receive; there is room for
 * it. */
static void write_buffers(const struct receive *n, uint64_t offset, const uint8_t *data, size_t size)
{
	for (uint32_t i = 0; size > 0; i++) {
		const struct iovec *b = &n->buffers[i];
		size_t part;

		if (offset >= b->iov_len) {
			offset -= b->iov_len;
			continue;
		}
		part = mq_least(size, b->iov_len - offset);
		memcpy((uint8_t *)b->iov_base + offset, data, part);
		offset = 0;
		data += part;
		size -= part;
	}
}

/* mq_place copies data, which is at offset at of the message, into the receive's buffers.
 * What does not fit is dropped. The data of an atomic, whole elements, are combined with
 * the buffer, if all of it fits. */
void mq_place(struct message *m, uint64_t at, const uint8_t *data, size_t n)
{
	if (m->op.target)
		m->op.kernel(m->op.target + at, data, NULL, NULL, n / m->op.size);
	else if (!m->op.is && at < m->size)
		write_buffers(m->into, m->offset + at, data, mq_least(n, m->size - at));
}

struct operation mq_operation_of(const struct match_message *w)
{
	if (!w->form)
		return (struct operation){.is = false};
	return (struct operation){
		.is = true, .kernel = kernel_of(w->form - 1u, w->op, w->datatype),
		.read = kernel_of(KERNEL_FETCH, KERNEL_READ, w->datatype),
		.size = (uint32_t)kernel_size(w->datatype), .align = (uint32_t)kernel_align(w->datatype),
		.offset = w->offset,
	};
}

/* within returns the bytes at an offset in the buffers, or NULL if they lie in several of
 * them. There are as many. */
static uint8_t *within(const struct receive *n, uint64_t offset, uint64_t length)
{
	for (uint32_t i = 0; i < n->count; i++) {
		const struct iovec *b = &n->buffers[i];

		if (offset < b->iov_len)
			return length <= b->iov_len - offset ? (uint8_t *)b->iov_base + offset : NULL;
		offset -= b->iov_len;
	}
	return NULL;
}

/* mq_aim finds the elements of an atomic in the buffer that it goes into. */
void mq_aim(struct message *m)
{
	struct operation *o = &m->op;

	if (!o->is)
		return;
	o->target = NULL;
	o->misfit = MATCH_RECEIVED;
	if (m->size < mq_needs(m)) {
		o->misfit = MATCH_TRUNCATED;
	} else if (!o->kernel) {
		o->misfit = MATCH_UNSUPPORTED;
	} else {
		o->target = within(m->into, m->offset + o->offset, m->length);
		if (!o->target || word_misaligned(o->target, o->align)) {
			o->target = NULL;
			o->misfit = MATCH_MISPLACED;
		}
	}
}

enum match_reason match_combine(struct match_inflow *in, const void *operand, const void *compare, size_t n,
                                void *result)
{
	struct message *m = in->current;
	enum match_reason how = MATCH_RECEIVED;

	if (!m)
		return MATCH_LOST;
	if (m->into) {
		how = m->op.misfit;
		if (m->op.target)
			m->op.kernel(m->op.target, operand, compare, result, m->length / m->op.size);
	} else if (!m->discarded) {
		mq_store(in->q, m, operand, mq_least(n, m->length));
	}
	m->got = m->length;
	mq_arrived(in);
	return how;
}

bool match_probe(const struct match_inflow *in, enum match_reason *reason, void *values)
{
	const struct message *m = in->current;

	if (!m || !m->into)
		return false;
	*reason = m->op.misfit;
	if (m->op.target && values)
		m->op.read(m->op.target, NULL, NULL, values, m->length / m->op.size);
	return true;
}
