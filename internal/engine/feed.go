// SPDX-License-Identifier: Apache-2.0

package engine

// Feed is another process whose operations this engine takes to their targets. Its
// methods are called on the engine's thread, and must not block.
type Feed interface {
	// Take posts at most n operations of the other process, by Begin and Submit, and
	// returns how many it has looked at.
	Take(n int) int
	// Rest says that the engine is about to sleep: the other process has to wake it from
	// now on. It reports whether something waits to be taken already.
	Rest() bool
	// Rise says that the engine is awake.
	Rise()
}

// feeds are the processes that an engine serves, which take turns.
type feeds struct {
	all  []Feed
	turn int // the feed that has the first choice in the next round
}

// share is the most operations that are taken from one feed in a round: those of a whole
// frame of simple ones. Others have their turn before it goes on.
const share = 182

// AddFeed makes the engine take the operations of another process. Engine's thread only.
func (e *Engine) AddFeed(f Feed) { e.feeds.all = append(e.feeds.all, f) }

// RemoveFeed undoes AddFeed. Engine's thread only.
func (e *Engine) RemoveFeed(f Feed) {
	for i, x := range e.feeds.all {
		if x == f {
			e.feeds.all = append(e.feeds.all[:i:i], e.feeds.all[i+1:]...)
			return
		}
	}
}

// take takes operations from all feeds, a share from each.
func (s *feeds) take() (n int) {
	all := s.all
	if s.turn++; s.turn >= len(all) {
		s.turn = 0
	}
	for i := range all {
		at := s.turn + i
		if at >= len(all) {
			at -= len(all)
		}
		n += all[at].Take(share)
	}
	return n
}

// rest says that the engine is about to sleep, and reports whether it must not.
func (s *feeds) rest() (waiting bool) {
	for _, f := range s.all {
		waiting = f.Rest() || waiting
	}
	return waiting
}

// rise says that the engine is awake.
func (s *feeds) rise() {
	for _, f := range s.all {
		f.Rise()
	}
}
