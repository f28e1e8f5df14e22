// SPDX-License-Identifier: Apache-2.0

package progress

// The model is the protocol of this package with one access to shared memory per move:
// threads are numbers, and what a thread does next is its place in the code. explore goes
// through every order of moves (explore_test.go). Timers of deep naps never fire, and the
// contexts of goroutines may end at any time or never, as a world says.

const most = 5 // threads

// place is where a thread is. The comments name the functions of the code.
type place uint8

const (
	finished place = iota

	// Wait
	count   // waiting.Add(1)
	look    // sig.Ready
	seizing // seize
	stepping
	raising   // Raise, second half: a goroutine is parked
	again     // stepUntil: the loop's look at its signal
	freeing   // release: turn.Store(free)
	counting  // release: waiting.Load
	passing   // pass
	parking   // parked.Store
	lookOnce  // sig.Ready once more
	parked    // the select
	leaving   // the deferred function: the baton
	uncount   // leave: waiting.Add(-1)
	lookNap   // rouse: napping.Load
	rousing   // rouse: the message
	countLate // only with a sown bug: waiting.Add(1) after the attempt

	// Attend
	attendCount // attending.Add(1)
	attendLook  // attend: the loop's condition
	attendWaiting
	attendSeize
	attendStep
	attendRaise
	attendAgain // unwanted
	attendFree
	attendPass
	attendUncount

	// TryHold, Release, Notify
	peekTurn
	peekPhase
	holding
	posterFree
	posterCount
	posterPass
	notifying

	// poll
	pollPhase
	pollWaiting
	pollTake
	pollStep
	pollRaise
	pollAgain
	pollFree
	pollCount
	pollPass
	napDeep
	napLook
	napWait
	napEnd
	napShort

	// Close
	closePhase
	closeEnding
	closePoller
	closeTurn
)

type thread struct {
	at     place
	baton  bool
	leaves bool  // with an error
	target uint8 // of Raise
	deep   bool  // the poller's next nap
	// the signal
	ready, parked, message bool
}

// begins reports that nothing waits for a signal of the thread: not yet, or no longer.
func (t thread) begins() bool { return t.at == finished || t.at == count || t.at == attendCount }

// world is a state of everything.
type world struct {
	threads       [most]thread
	turn          uint8
	closed        bool
	ending        bool
	waiting       int8
	attending     int8
	baton, roused bool
	napping       bool
}

// model describes which threads there are, and which bug is sown.
type model struct {
	waiters, posters int
	attend           int // goroutines that attend
	poller, closer   bool
	contexts         bool // end at any time
	bug              string
}

func (m model) begin() (w world) {
	i := 0
	add := func(n int, at place) {
		for range n {
			w.threads[i].at = at
			i++
		}
	}
	add(m.waiters, count)
	add(m.attend, attendCount)
	add(m.posters, peekTurn)
	if m.poller {
		add(1, pollPhase)
	}
	if m.closer {
		add(1, closePhase)
	}
	return w
}

// moves calls f with every world that one move of thread i may lead to.
func (m model) moves(w world, i int, f func(world)) {
	switch at := w.threads[i].at; {
	case at == finished:
	case at < attendCount:
		m.waiter(w, i, f)
	case at < peekTurn:
		m.attends(w, i, f)
	case at < pollPhase:
		m.poster(w, i, f)
	case at < closePhase:
		m.pollerMoves(w, i, f)
	default:
		m.close(w, i, f)
	}
}

// to moves thread i on.
func to(w world, i int, at place, f func(world)) {
	w.threads[i].at = at
	f(w)
}

// work is a step of the engine: it completes the operation of one goroutine, or none.
func (m model) work(w world, i int, raise, next place, f func(world)) {
	to(w, i, next, f)
	for j := range m.waiters + m.attend {
		if o := w; !o.threads[j].ready && !o.threads[j].begins() {
			o.threads[i].target = uint8(j)
			o.threads[j].ready = true
			to(o, i, raise, f)
		}
	}
}

// raised is the second half of Raise.
func (m model) raised(w world, i int, next place, f func(world)) {
	me := &w.threads[i]
	if t := &w.threads[me.target]; t.parked && m.bug != "raise wakes nobody" {
		t.message = true
	}
	me.target = 0
	to(w, i, next, f)
}

func (m model) waiter(w world, i int, f func(world)) {
	t := &w.threads[i]
	switch t.at {
	case count:
		if m.bug != "counts after the attempt" {
			w.waiting++
		}
		to(w, i, look, f)
	case look:
		if t.ready {
			to(w, i, leaving, f)
		} else {
			to(w, i, seizing, f)
		}
	case seizing:
		if w.turn == free {
			w.turn, t.baton = held, false
			if m.bug == "counts after the attempt" {
				w.waiting++
			}
			to(w, i, stepping, f)
		} else if m.bug == "counts after the attempt" {
			to(w, i, countLate, f)
		} else {
			to(w, i, parking, f)
		}
	case countLate:
		w.waiting++
		to(w, i, parking, f)
	case stepping:
		m.work(w, i, raising, again, f)
	case raising:
		m.raised(w, i, again, f)
	case again:
		if t.ready {
			t.leaves = false
			to(w, i, freeing, f)
			return
		}
		to(w, i, stepping, f)
		if m.contexts || w.closed {
			t.leaves = true
			to(w, i, freeing, f)
		}
	case freeing:
		if m.bug == "release looks first" {
			if w.waiting > 1 {
				w.baton = true
			}
			to(w, i, counting, f)
			return
		}
		w.turn = free
		to(w, i, counting, f)
	case counting:
		if m.bug == "release looks first" {
			w.turn = free
			to(w, i, passing, f)
			return
		}
		if w.waiting > 1 && m.bug != "no baton" {
			w.baton = true
		}
		to(w, i, passing, f)
	case passing:
		if t.leaves {
			to(w, i, leaving, f)
		} else {
			to(w, i, look, f)
		}
	case parking:
		t.parked = true
		if m.bug == "parks without a look" {
			to(w, i, parked, f)
		} else {
			to(w, i, lookOnce, f)
		}
	case lookOnce:
		if t.ready {
			to(w, i, leaving, f)
		} else {
			to(w, i, parked, f)
		}
	case parked:
		m.selects(w, i, f)
	case leaving:
		if t.baton && m.bug != "keeps the baton" {
			w.baton = true
		}
		t.baton = false
		to(w, i, uncount, f)
	case uncount:
		if w.waiting--; w.waiting == 0 && m.bug != "no rouse" {
			to(w, i, lookNap, f)
		} else {
			w.end(i, f)
		}
	case lookNap:
		if w.napping {
			to(w, i, rousing, f)
		} else {
			w.end(i, f)
		}
	case rousing:
		w.roused = true
		w.end(i, f)
	}
}

// attends has no place where it sleeps: its naps end by themselves.
func (m model) attends(w world, i int, f func(world)) {
	t := &w.threads[i]
	switch t.at {
	case attendCount:
		w.attending++
		to(w, i, attendLook, f)
	case attendLook:
		if t.ready || w.closed {
			to(w, i, attendUncount, f)
		} else {
			to(w, i, attendWaiting, f)
		}
	case attendWaiting:
		if w.waiting > 0 {
			to(w, i, attendLook, f)
		} else {
			to(w, i, attendSeize, f)
		}
	case attendSeize:
		if w.turn == free {
			w.turn = held
			to(w, i, attendStep, f)
		} else {
			to(w, i, attendLook, f)
		}
	case attendStep:
		m.work(w, i, attendRaise, attendAgain, f)
	case attendRaise:
		m.raised(w, i, attendAgain, f)
	case attendAgain:
		if w.waiting > 0 && m.bug != "attends as if it waited" || w.closed || t.ready {
			to(w, i, attendFree, f)
		} else {
			to(w, i, attendStep, f)
		}
	case attendFree:
		w.turn = free
		to(w, i, attendPass, f)
	case attendPass:
		if w.waiting > 0 && m.bug != "attends, no baton" {
			w.baton = true
		}
		to(w, i, attendLook, f)
	case attendUncount:
		if w.attending--; w.attending == 0 && m.bug != "attends, no rouse" {
			to(w, i, lookNap, f)
		} else {
			w.end(i, f)
		}
	}
}

// end forgets the state that does not matter any more.
func (w world) end(i int, f func(world)) {
	w.threads[i] = thread{}
	f(w)
}

// selects is the select of a parked goroutine: it may take any case that is ready.
func (m model) selects(w world, i int, f func(world)) {
	if o := w; o.threads[i].message {
		o.threads[i].message = false
		to(o, i, look, f)
	}
	if o := w; o.baton {
		o.baton, o.threads[i].baton = false, true
		to(o, i, look, f)
	}
	if m.contexts || w.ending {
		to(w, i, leaving, f)
	}
}

func (m model) poster(w world, i int, f func(world)) {
	switch w.threads[i].at {
	case peekTurn:
		if w.turn == free {
			to(w, i, peekPhase, f)
		} else {
			w.end(i, f)
		}
	case peekPhase:
		if !w.closed {
			to(w, i, holding, f)
		} else {
			w.end(i, f)
		}
	case holding: // the compare-and-swap
		if w.turn == free {
			w.turn = held
			to(w, i, posterFree, f)
		} else {
			w.end(i, f)
		}
	case posterFree:
		w.turn = free
		to(w, i, posterCount, f)
	case posterCount:
		if w.waiting > 0 && m.bug != "a poster forgets the baton" {
			to(w, i, posterPass, f)
		} else {
			to(w, i, notifying, f)
		}
	case posterPass:
		w.baton = true
		to(w, i, notifying, f)
	case notifying:
		if w.waiting == 0 {
			to(w, i, lookNap, f)
		} else {
			w.end(i, f)
		}
	}
}

func (m model) pollerMoves(w world, i int, f func(world)) {
	t := &w.threads[i]
	switch t.at {
	case pollPhase:
		if w.closed {
			w.end(i, f)
		} else {
			to(w, i, pollWaiting, f)
		}
	case pollWaiting:
		switch {
		case w.waiting == 0 && w.attending == 0:
			to(w, i, pollTake, f)
		case t.deep:
			to(w, i, napDeep, f)
		default:
			to(w, i, napShort, f)
		}
	case pollTake:
		t.deep = false
		if w.turn == free {
			w.turn = held
			to(w, i, pollStep, f)
		} else {
			to(w, i, napShort, f)
		}
	case pollStep:
		m.work(w, i, pollRaise, pollAgain, f)
	case pollRaise:
		m.raised(w, i, pollAgain, f)
	case pollAgain:
		if w.waiting > 0 || w.attending > 0 || w.closed {
			to(w, i, pollFree, f)
		} else {
			to(w, i, pollStep, f)
		}
	case pollFree:
		w.turn = free
		to(w, i, pollCount, f)
	case pollCount:
		if w.waiting > 0 {
			to(w, i, pollPass, f)
		} else {
			to(w, i, pollPhase, f)
		}
	case pollPass:
		w.baton = true
		to(w, i, pollPhase, f)
	case napDeep: // keepOff
		w.napping = true
		if m.bug == "naps without a look" {
			to(w, i, napWait, f)
		} else {
			to(w, i, napLook, f)
		}
	case napLook:
		if w.waiting == 0 && w.attending == 0 {
			to(w, i, napEnd, f)
		} else {
			to(w, i, napWait, f)
		}
	case napWait: // the timer does not fire
		if o := w; o.roused {
			o.roused = false
			to(o, i, napEnd, f)
		}
		if w.ending {
			to(w, i, napEnd, f)
		}
	case napEnd:
		w.napping, t.deep = false, false
		to(w, i, pollPhase, f)
	case napShort: // the timer fires
		o := w
		o.threads[i].deep = true
		to(o, i, pollPhase, f)
		if w.roused {
			w.roused = false
			to(w, i, pollPhase, f)
		}
	}
}

func (m model) close(w world, i int, f func(world)) {
	switch w.threads[i].at {
	case closePhase:
		w.closed = true
		to(w, i, closeEnding, f)
	case closeEnding:
		w.ending = m.bug != "releases nobody"
		to(w, i, closePoller, f)
	case closePoller:
		for _, t := range w.threads {
			if t.at >= pollPhase && t.at < closePhase {
				return // leaves when it is raised
			}
		}
		to(w, i, closeTurn, f)
	case closeTurn:
		if m.bug == "does not retire" {
			w.end(i, f)
		} else if w.turn == free {
			w.turn = retired
			w.end(i, f)
		}
	}
}
