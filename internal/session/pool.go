// SPDX-License-Identifier: Apache-2.0

package session

// Pool lends payload buffers of one size to the sessions of one engine. It
// grows on demand up to its limit and then reuses its buffers, so the data path
// does not allocate. It belongs to the engine's thread.
type Pool struct {
	size  int      // bytes of each buffer
	limit int      // buffers that may exist
	made  int      // buffers that exist
	free  [][]byte // the ones not lent
}

// NewPool returns a pool of at most limit buffers of size bytes.
func NewPool(size, limit int) *Pool {
	return &Pool{size: size, limit: limit, free: make([][]byte, 0, limit)}
}

// Size returns the size of each buffer in bytes.
func (p *Pool) Size() int { return p.size }

// Lent returns how many buffers are lent.
func (p *Pool) Lent() int { return p.made - len(p.free) }

// PoolUsage is how many buffers of a pool there are.
type PoolUsage struct{ Lent, Made, Limit int }

// Usage returns how many buffers are lent, exist, and may exist.
func (p *Pool) Usage() PoolUsage { return PoolUsage{p.Lent(), p.made, p.limit} }

// Left returns how many buffers can still be lent.
func (p *Pool) Left() int { return p.limit - p.Lent() }

// Empty reports whether all buffers are lent.
func (p *Pool) Empty() bool { return p.Lent() == p.limit }

// Get lends a buffer, or returns nil when all are lent.
func (p *Pool) Get() []byte {
	if n := len(p.free); n > 0 {
		b := p.free[n-1]
		p.free = p.free[:n-1]
		return b
	}
	if p.made == p.limit {
		return nil
	}
	p.made++
	return make([]byte, p.size)
}

// Put takes a buffer back. Nil is allowed.
func (p *Pool) Put(b []byte) {
	if b != nil {
		p.free = append(p.free, b[:p.size])
	}
}

// Lender lends payload buffers: a Pool, or a Share of one.
type Lender interface {
	Size() int
	Get() []byte
	Put([]byte)
}

// Share is what one party may take of a Pool: as many buffers as are left for all
// others. So a lone party gets half of the pool, n greedy ones get 1/(n+1) each, and
// there is always something left for one that comes later (the dynamic threshold of
// Choudhury and Hahne, 1998).
type Share struct {
	pool *Pool
	lent int
}

// NewShare returns a share of pool.
func NewShare(pool *Pool) *Share { return &Share{pool: pool} }

// Size returns the size of each buffer in bytes.
func (s *Share) Size() int { return s.pool.Size() }

// Lent returns how many buffers the party has.
func (s *Share) Lent() int { return s.lent }

// Get lends a buffer, or returns nil when the party has its share.
func (s *Share) Get() []byte {
	if s.lent >= s.pool.Left() {
		return nil
	}
	b := s.pool.Get()
	if b != nil {
		s.lent++
	}
	return b
}

// take lends a buffer to which the party is entitled whatever its share is now.
func (s *Share) take() []byte {
	b := s.pool.Get()
	if b != nil {
		s.lent++
	}
	return b
}

// Put takes a buffer back. Nil is allowed.
func (s *Share) Put(b []byte) {
	if b != nil {
		s.lent--
		s.pool.Put(b)
	}
}
