// SPDX-License-Identifier: Apache-2.0

package mr

import (
	"fmt"
	"sync/atomic"

	"github.com/xdpfab/xdpfab/internal/errno"
)

// Uint64 returns the i-th word of eight bytes of the region, from 0, for the owner's use:
// its methods are atomic against operations of peers on the same word. The error wraps
// ErrOutOfBounds; ErrMisaligned, when the region begins at an odd offset of its memory;
// or ErrClosed. The caller may keep the word, but must not use it once the Memory is
// closed: that would crash the process.
func (r *Region) Uint64(i int) (*atomic.Uint64, error) { return word[atomic.Uint64](r, i, 8) }

// Int64 is Uint64 for a signed word.
func (r *Region) Int64(i int) (*atomic.Int64, error) { return word[atomic.Int64](r, i, 8) }

// Uint32 is Uint64 for a word of four bytes.
func (r *Region) Uint32(i int) (*atomic.Uint32, error) { return word[atomic.Uint32](r, i, 4) }

// Int32 is Uint64 for a signed word of four bytes.
func (r *Region) Int32(i int) (*atomic.Int32, error) { return word[atomic.Int32](r, i, 4) }

// word returns the i-th word of size bytes, which is that of a T.
func word[T any](r *Region, i, size int) (*T, error) {
	switch {
	case r.none():
		return nil, r.errNone()
	case r.closed.Load():
		return nil, errno.Refuse(ErrClosed,
			"xdpfab: word %d of region %v: the region is closed: register the memory again", i, r)
	case i < 0 || i >= len(r.data)/size:
		return nil, fmt.Errorf("xdpfab: %w: word %d of region %v, which has %d words of %d bytes: want an index of 0 "+
			"or more, and less than that", ErrOutOfBounds, i, r, len(r.data)/size, size)
	case r.addr%uint64(size) != 0:
		return nil,
			fmt.Errorf("xdpfab: %w: words of %d bytes in region %v, which begins %d above such a multiple; register "+
				"it at another offset", ErrMisaligned, size, r, r.addr%uint64(size))
	}
	return wordAt[T](r.data[i*size:]), nil
}
