// SPDX-License-Identifier: Apache-2.0

package matching

// InlineSize is how many bytes of a message are held without memory of the budget.
const InlineSize = 64

// ChunkSize is the size of a piece of memory for messages that are held, in bytes.
const ChunkSize = 2048

// chunk is one piece of the memory for unexpected messages.
type chunk struct {
	next  *chunk
	bytes [ChunkSize]byte
}

// memory is the memory for unexpected messages. It is allocated when it is needed first,
// and kept from then on. What is reserved is certain to be had, so a message whose
// beginning was accepted can be held as a whole.
type memory struct {
	free  int    // chunks of the budget that are not reserved
	made  int    // chunks that were allocated: those in use and the spare ones
	spare *chunk // allocated, and not in use
}

// chunksFor returns how many chunks hold n bytes.
func chunksFor(n int) int { return (n + ChunkSize - 1) / ChunkSize }

// reserve takes the chunks for a message of length bytes out of the budget, and returns
// how many they are; ok is false if there are too few.
func (b *memory) reserve(length uint64) (n int, ok bool) {
	if length <= InlineSize {
		return 0, true
	}
	if length > uint64(b.free)*ChunkSize {
		return 0, false
	}
	n = chunksFor(int(length))
	b.free -= n
	return n, true
}

// take returns a chunk that was reserved.
func (b *memory) take() *chunk {
	c := b.spare
	if c == nil {
		b.made++
		return &chunk{}
	}
	b.spare, c.next = c.next, nil
	return c
}

// store appends data to what a held message has.
func (b *memory) store(m *message, data []byte) {
	if m.length <= InlineSize {
		copy(m.inline[m.got:], data)
		return
	}
	for at := m.got; len(data) > 0; {
		if at%ChunkSize == 0 {
			c := b.take()
			if m.tail == nil {
				m.chunks = c
			} else {
				m.tail.next = c
			}
			m.tail = c
		}
		n := copy(m.tail.bytes[at%ChunkSize:], data)
		at, data = at+uint64(n), data[n:]
	}
}

// empty gives back all memory of a message. What the message has goes into its receive,
// if there is one now.
func (b *memory) empty(m *message) {
	if m.into != nil && m.length <= InlineSize {
		m.place(0, m.inline[:m.got])
	}
	at := uint64(0)
	for c := m.chunks; c != nil; {
		if m.into != nil {
			m.place(at, c.bytes[:min(ChunkSize, m.got-at)])
		}
		at += ChunkSize
		next := c.next
		c.next, b.spare = b.spare, c
		c = next
	}
	b.free += m.reserved
	m.chunks, m.tail, m.reserved = nil, nil, 0
}
