// SPDX-License-Identifier: Apache-2.0

package session

import "github.com/xdpfab/xdpfab/internal/wire"

// Pool lends payload buffers to the sessions of one engine. It grows on demand up to its
// limit and then reuses its buffers, so the data path does not allocate. It belongs to
// the engine's thread.
//
// Buffers are lent in the full size of a payload. Where that is far more than most
// payloads are, as with jumbo frames, there is a second, small size: a buffer that is
// kept for long is given up for a small one if its contents fit. So the memory in use
// grows with what the frames carry, and not with the MTU.
type Pool struct {
	size  int      // bytes of each full buffer
	small int      // bytes of each small one; 0 if there are none
	limit int      // buffers that may be lent
	lent  int      // buffers that are
	made  int      // most that were lent at a time
	full  [][]byte // the ones not lent
	less  [][]byte // likewise, of the small ones
}

// SmallPayload is the length of the payloads that small buffers take, bytes: those of
// Ethernet's MTU. Pools have small buffers if others are at least worthSmall times as
// long.
const (
	SmallPayload = 1500 - wire.HeaderLen
	worthSmall   = 3
)

// NewPool returns a pool of at most limit buffers of size bytes.
func NewPool(size, limit int) *Pool {
	p := &Pool{size: size, limit: limit, full: make([][]byte, 0, limit)}
	if hasSmall(size) {
		p.small = SmallPayload
	}
	return p
}

// hasSmall reports whether a pool of buffers of size bytes has small ones, too.
func hasSmall(size int) bool { return size >= worthSmall*SmallPayload }

// Size returns the size of a full buffer in bytes.
func (p *Pool) Size() int { return p.size }

// Lent returns how many buffers are lent.
func (p *Pool) Lent() int { return p.lent }

// PoolUsage is how many buffers of a pool are lent now, were at most, and may be.
type PoolUsage struct{ Lent, Made, Limit int }

// Usage returns how many buffers are lent, were lent at most, and may be lent.
func (p *Pool) Usage() PoolUsage { return PoolUsage{p.lent, p.made, p.limit} }

// Left returns how many buffers can still be lent.
func (p *Pool) Left() int { return p.limit - p.lent }

// Empty reports whether all buffers are lent.
func (p *Pool) Empty() bool { return p.lent == p.limit }

// Get lends a full buffer, or returns nil when all are lent.
func (p *Pool) Get() []byte {
	if p.lent == p.limit {
		return nil
	}
	p.count()
	return p.takeFull()
}

// GetFor lends a buffer for n bytes, at most Size, or returns nil when all are lent.
func (p *Pool) GetFor(n int) []byte {
	if n > p.small || p.small == 0 {
		return p.Get()
	}
	if p.lent == p.limit {
		return nil
	}
	p.count()
	return p.takeLess()
}

// count counts a buffer that is lent.
func (p *Pool) count() {
	p.lent++
	p.made = max(p.made, p.lent)
}

func (p *Pool) takeFull() []byte {
	if n := len(p.full); n > 0 {
		b := p.full[n-1]
		p.full = p.full[:n-1]
		return b
	}
	return make([]byte, p.size)
}

func (p *Pool) takeLess() []byte {
	if n := len(p.less); n > 0 {
		b := p.less[n-1]
		p.less = p.less[:n-1]
		return b
	}
	return make([]byte, p.small)
}

// Put takes a buffer back. Nil is allowed.
func (p *Pool) Put(b []byte) {
	if b != nil {
		p.lent--
		p.keep(b)
	}
}

// keep keeps a buffer for later, if there are not as many as may be lent: sessions bring
// buffers of their own, and take others with them.
func (p *Pool) keep(b []byte) {
	switch {
	case cap(b) >= p.size:
		if len(p.full) < p.limit {
			p.full = append(p.full, b[:p.size])
		}
	case len(p.less) < p.limit:
		p.less = append(p.less, b[:p.small])
	}
}

// Fit returns a buffer with the first n bytes of b in place of b: a small one, if there
// are any and the bytes fit, or else b itself.
func (p *Pool) Fit(b []byte, n int) []byte {
	if n > p.small || cap(b) < p.size || p.small == 0 {
		return b
	}
	small := p.takeLess()
	copy(small, b[:n])
	p.keep(b)
	return small
}

// Full returns a full buffer in place of b, whose contents are lost if it is a small one.
func (p *Pool) Full(b []byte) []byte {
	if b == nil || cap(b) >= p.size {
		return b
	}
	p.keep(b)
	return p.takeFull()
}

// Smallest returns a new buffer of the smallest size, which is not the pool's.
func (p *Pool) Smallest() []byte {
	if p.small != 0 {
		return make([]byte, p.small)
	}
	return make([]byte, p.size)
}

// Lender lends payload buffers: a Pool, or a Share of one.
type Lender interface {
	Size() int
	Get() []byte
	Put([]byte)
	Fit(b []byte, n int) []byte
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

// Size returns the size of a full buffer in bytes.
func (s *Share) Size() int { return s.pool.Size() }

// Lent returns how many buffers the party has.
func (s *Share) Lent() int { return s.lent }

// Get lends a full buffer, or returns nil when the party has its share.
func (s *Share) Get() []byte { return s.GetFor(s.pool.size) }

// GetFor lends a buffer for n bytes, or returns nil when the party has its share.
func (s *Share) GetFor(n int) []byte {
	if s.lent >= s.pool.Left() {
		return nil
	}
	b := s.pool.GetFor(n)
	if b != nil {
		s.lent++
	}
	return b
}

// Fit is that of the pool.
func (s *Share) Fit(b []byte, n int) []byte { return s.pool.Fit(b, n) }

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
