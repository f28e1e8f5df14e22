// SPDX-License-Identifier: Apache-2.0

package sim

// Virtual time is int64 nanoseconds from the start of the run.
const (
	microsecond int64 = 1e3
	millisecond int64 = 1e6
	second      int64 = 1e9
)

// event is something that happens at a point of virtual time.
type event struct {
	at  int64
	seq uint64 // order among events of one time: the order of scheduling
	run func()
}

func (e *event) before(o *event) bool {
	return e.at < o.at || e.at == o.at && e.seq < o.seq
}

// scheduler is virtual time: a binary heap of events. There is one thread, and
// ties are broken by the order of scheduling, so runs repeat.
type scheduler struct {
	now  int64
	seq  uint64
	heap []event
}

// at schedules run for time t, or for now when t is past.
func (s *scheduler) at(t int64, run func()) {
	s.seq++
	h := append(s.heap, event{max(t, s.now), s.seq, run})
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !h[i].before(&h[up]) {
			break
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
	s.heap = h
}

// next lets the next event happen. It returns false when there is none.
func (s *scheduler) next() bool {
	h := s.heap
	if len(h) == 0 {
		return false
	}
	first := h[0]
	n := len(h) - 1
	h[0], h[n] = h[n], event{}
	h = h[:n]
	for i := 0; ; {
		c := 2*i + 1
		if c >= n {
			break
		}
		if c+1 < n && h[c+1].before(&h[c]) {
			c++
		}
		if !h[c].before(&h[i]) {
			break
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
	s.heap = h
	s.now = first.at
	first.run()
	return true
}

// until lets everything happen that is due up to time t, or until stop.
func (s *scheduler) until(t int64, stop func() bool) {
	for len(s.heap) > 0 && s.heap[0].at <= t {
		s.next()
		if stop != nil && stop() {
			return
		}
	}
	s.now = max(s.now, t)
}
