/* SPDX-License-Identifier: Apache-2.0 */
#include "op.h"

size_t iov_len(const struct iovec *iov, size_t count)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		n += iov[i].iov_len;
	return n;
}

/* Calls for each piece of n bytes from an offset of the buffers on: their bytes are at p. */
#define EACH_PIECE(body)                                                                                               \
	for (; count > 0 && n > 0; iov++, count--) {                                                                   \
		size_t len;                                                                                            \
		uint8_t *p;                                                                                            \
                                                                                                                       \
		if (offset >= iov->iov_len) {                                                                          \
			offset -= iov->iov_len;                                                                        \
			continue;                                                                                      \
		}                                                                                                      \
		p = (uint8_t *)iov->iov_base + offset;                                                                 \
		len = iov->iov_len - offset < n ? iov->iov_len - offset : n;                                           \
		body;                                                                                                  \
		n -= len;                                                                                              \
		offset = 0;                                                                                            \
	}

void iov_read(const struct iovec *iov, size_t count, size_t offset, void *to, size_t n)
{
	uint8_t *at = to;

	EACH_PIECE({
		memcpy(at, p, len);
		at += len;
	})
}

void iov_write(const struct iovec *iov, size_t count, size_t offset, const void *from, size_t n)
{
	const uint8_t *at = from;

	EACH_PIECE({
		memcpy(p, at, len);
		at += len;
	})
}
