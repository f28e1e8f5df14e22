// SPDX-License-Identifier: Apache-2.0

package matching

import "testing"

// quiet is a sink that has places without end, and only counts.
type quiet struct{ delivered int }

func (s *quiet) Take() bool    { return true }
func (s *quiet) Return()       {}
func (s *quiet) Deliver(*Done) { s.delivered++ }

// steady is what a queue does all day.
type steady struct {
	q       *Queue
	in      *Inflow
	message sent
	rx      Receive
}

func newSteady(length int) *steady {
	s := &steady{q: New(Config{Receives: 16, Unexpected: 16, Memory: 64 * ChunkSize, Sink: &quiet{}}), message: sent{data: text(length)}}
	s.in = s.q.NewInflow(peer(1))
	s.rx = Receive{Match: Match{AnySource: true}, Context: s, Buffers: [][]byte{make([]byte, length)}}
	return s
}

func (s *steady) post() {
	if s.q.Post(&s.rx) != nil {
		panic("full")
	}
}

// tag makes what comes tagged atomics.
func (s *steady) tag() {
	s.rx.Tagged, s.message.Tagged = true, true
	s.message = s.message.atomically(0)
}

func (s *steady) frame(messages int) {
	s.in.Begin()
	for range messages {
		if !s.message.begin(s.in) {
			panic("no room")
		}
	}
	s.in.End()
}

func TestNothingIsAllocated(t *testing.T) {
	for _, c := range []struct {
		name string
		n    int
		run  func(s *steady)
	}{
		{"matched", 8, func(s *steady) { s.post(); s.frame(1) }},
		{"unexpected, inline", 8, func(s *steady) { s.frame(1); s.post() }},
		{"unexpected, in chunks", 9000, func(s *steady) { s.frame(1); s.post() }},
		{"many in a frame", 100, func(s *steady) {
			for range 8 {
				s.post()
			}
			s.frame(16)
			for range 8 {
				s.post()
			}
		}},
		{"refused", 100, func(s *steady) {
			s.post()
			s.in.Begin()
			for s.message.begin(s.in) {
			}
			s.in.End()
		}},
		{"cancelled", 8, func(s *steady) { s.post(); s.q.Cancel(s) }},
		{"peeked, claimed", 8, func(s *steady) {
			s.frame(1)
			s.q.Peek(&s.rx.Match, Claim, s)
			s.rx.Claim = true
			s.post()
			s.rx.Claim = false
		}},
		{"tagged atomic, matched", 8, func(s *steady) { s.tag(); s.post(); s.frame(1) }},
		{"tagged atomic, unexpected", 9000, func(s *steady) { s.tag(); s.frame(1); s.post() }},
		{"reserved", 8, func(s *steady) {
			if s.rx.Reserved = true; s.q.Reserve(&s.rx) != nil {
				panic("full")
			}
			s.post()
			s.frame(1)
		}},
		{"multi-receive", 8, func(s *steady) {
			s.rx.Multi = true
			s.post()
			s.frame(1)
		}},
	} {
		s := newSteady(c.n)
		if n := testing.AllocsPerRun(100, func() { c.run(s) }); n != 0 {
			t.Errorf("%s: %v allocations", c.name, n)
		}
		if err := s.q.Check(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// One message of 8 bytes, from its receive to its completion.
func BenchmarkMatched8(b *testing.B) {
	s := newSteady(8)
	b.ReportAllocs()
	for b.Loop() {
		s.post()
		s.frame(1)
	}
}

// The same, 16 messages a frame: what each costs beside Begin and End.
func BenchmarkMatched8InFramesOf16(b *testing.B) {
	s := newSteady(8)
	b.ReportAllocs()
	for b.Loop() {
		for range 16 {
			s.post()
		}
		s.frame(16)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/16, "ns/message")
}

// One message of 8 bytes that comes before its receive.
func BenchmarkUnexpected8(b *testing.B) {
	s := newSteady(8)
	b.ReportAllocs()
	for b.Loop() {
		s.frame(1)
		s.post()
	}
}
