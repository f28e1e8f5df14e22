// SPDX-License-Identifier: Apache-2.0

package load

import "time"

type direction uint8

const (
	receiving direction = iota
	sending
	accessing
)

// operation is posted again and again; completions carry a pointer to it.
type operation struct {
	kind   direction
	buf    []byte
	offset uint64        // of an access
	posted time.Duration // of an access; of the clock
}

// operations makes n of a kind, with buffers that follow each other.
func operations(kind direction, n, size int) []*operation {
	all, memory := make([]*operation, n), make([]byte, n*size)
	for i := range all {
		all[i] = &operation{kind: kind, buf: memory[i*size : (i+1)*size], offset: uint64(i * size)}
	}
	return all
}

// turn has operations that are used one after the other, so that all of their memory is.
type turn struct {
	ring []*operation
	head int
	n    int // operations in it
}

func inTurn(all []*operation) turn { return turn{ring: all, n: len(all)} }

// first returns the next operation; drop takes it out. There has to be one.
func (t *turn) first() *operation { return t.ring[t.head] }

func (t *turn) drop() {
	t.head = (t.head + 1) % len(t.ring)
	t.n--
}

func (t *turn) add(o *operation) {
	t.ring[(t.head+t.n)%len(t.ring)] = o
	t.n++
}
