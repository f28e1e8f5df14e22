// SPDX-License-Identifier: Apache-2.0

package executor_test

// The model is that of docs/internals/waiting.md: operations that wait at the target,
// here for one lock, by a compare-and-swap of 0 to the caller's number. Each caller has a
// session and a thread of the target's, which makes one access to shared memory a move.
// The network keeps whatever was sent: any of it may arrive at any time, again, or never.
// The target may restart once. explore goes through all orders (waiting_test.go).

const callers = 3

// stage is how far a caller is, as it knows.
type stage uint8

const (
	asking     stage = iota // the request was sent, and may be sent again
	parked                  // the target has said that it waits
	cancelling              // nobody wants it any more: it is to end one way or the other
	holding                 // it ran; the caller has the lock
	unlocking               // the request that frees the lock was sent
	over                    // the end: it ran and the lock is free, it never ran, or the target restarted
)

// place is where the thread of a caller's session is, at the target.
type place uint8

const (
	idle    place = iota
	looks         // the request is in the queue: the thread has to look at its head
	appends       // with the sown bug: the look was in vain, and the request is to be queued
	wakes         // the lock was freed: the thread has to look whether somebody waits
)

// answer is what the session of a caller has for it.
type answer uint8

const (
	none answer = iota
	waits
	ran
	never // it was cancelled
)

// What the network has, for each caller, of each life of the target.
const (
	request = 1 << iota
	cancel
	unlock
	saidParked
	saidRan
	saidNever
	saidUnlocked
)

// world is a state of all.
type world struct {
	word     uint8              // 0 if the lock is free
	queue    [callers + 1]uint8 // callers by number from 1, in order
	life     uint8              // of the target
	answers  [callers]answer
	unlocked [callers]bool // the session has run the unlock
	threads  [callers]place
	stages   [callers]stage
	knows    [callers]uint8 // the life that the caller asks
	net      [callers][2]uint8

	// What no part of the system sees.
	runs   [callers]uint8 // in the life that the caller asks
	before [callers]uint8 // bits of the callers that came to the queue earlier, and wait
	bad    string
}

// bug is sown into the protocol.
type bug uint8

const (
	sound      bug = iota
	looksFirst     // the thread looks at the word, and only then queues the request
	parksTwice     // a request that comes again is parked again: its answer is not kept
	barges         // a request whose condition holds runs at once, though others wait
	leaves         // a cancelled request stays in the queue
	anyLife        // the caller takes the news of a former life of the target
)

// start is the first state: so many callers have asked, and there are no others.
func start(n int) (w world) {
	for i := range callers {
		if w.net[i][0] = request; i >= n {
			w.net[i][0], w.stages[i] = 0, over
		}
	}
	return w
}

// moves calls to with each state that may follow.
func (w world) moves(b bug, to func(world)) {
	for i := range callers {
		for life := range uint8(2) {
			for m := uint8(request); m <= saidUnlocked; m <<= 1 {
				if w.net[i][life]&m != 0 {
					to(w.arrives(b, i, life, m))
				}
			}
		}
		if w.threads[i] != idle {
			to(w.thread(b, i))
		}
		switch w.stages[i] {
		case asking, parked:
			to(w.sends(i, cancelling, cancel))
		case holding:
			to(w.sends(i, unlocking, unlock))
		}
	}
	if w.life == 0 {
		to(w.restarts())
	}
}

// sends has a caller go to a stage and send a request.
func (w world) sends(i int, s stage, m uint8) world {
	w.stages[i] = s
	w.net[i][w.knows[i]] |= m
	return w
}

// restarts is the end of the target's process and its memory. Callers learn of it from
// the first answer of the next life.
func (w world) restarts() world {
	w.life, w.word, w.queue = 1, 0, [callers + 1]uint8{}
	w.answers, w.unlocked, w.threads = [callers]answer{}, [callers]bool{}, [callers]place{}
	w.before = [callers]uint8{}
	return w
}

// arrives hands a packet to whom it is for.
func (w world) arrives(b bug, i int, life, m uint8) world {
	switch m {
	case request, cancel, unlock:
		if life != w.life { // of a session that this process does not know
			w.end(i, life)
			return w
		}
		return w.asked(b, i, m)
	}
	if life != w.knows[i] && b != anyLife {
		return w
	}
	switch s := w.stages[i]; {
	case m == saidParked && s == asking:
		w.stages[i] = parked
	case m == saidRan && (s == asking || s == parked || s == cancelling):
		w.stages[i] = holding
		w.fail(w.runs[i] != 1, "a caller takes an operation for done that did not run once")
	case m == saidNever && s == cancelling:
		w.stages[i] = over
		w.fail(w.runs[i] != 0, "a caller takes an operation for cancelled that ran")
	case m == saidUnlocked && s == unlocking:
		w.stages[i] = over
	}
	return w
}

// end tells a caller that the target has restarted. It asks the next life once more if it
// had no lock: the news of the former may still be on their way.
func (w *world) end(i int, life uint8) {
	if life != w.knows[i] {
		return
	}
	w.knows[i]++
	switch w.stages[i] {
	case asking, parked:
		w.stages[i], w.runs[i] = asking, 0
		w.net[i][1] |= request
	default:
		w.stages[i] = over
	}
}

// asked runs a request of a caller, once, or answers it again.
func (w world) asked(b bug, i int, m uint8) world {
	busy, first := w.threads[i] != idle, w.answers[i] == none
	switch {
	case busy: // the thread is at work on the one before: the packet comes later
	case m == request && (first || b == parksTwice && w.answers[i] == waits):
		w.answers[i] = waits
		for _, n := range w.queue {
			if first && n != 0 {
				w.before[i] |= 1 << (n - 1)
			}
		}
		switch {
		case b == looksFirst && w.word != 0:
			w.threads[i] = appends
		case b == barges && w.word == 0:
			w.run(i)
		default:
			w.enqueue(i)
			w.threads[i] = looks
		}
	case first: // no packet runs before the one in front of it
	case m == cancel && w.answers[i] == waits:
		w.answers[i] = never
		if b != leaves {
			w.dequeue(i)
		}
	case m == unlock && !w.unlocked[i]:
		w.unlocked[i], w.word, w.threads[i] = true, 0, wakes
	}
	w.say(i)
	return w
}

// say sends a caller the answer that its session has.
func (w *world) say(i int) {
	w.net[i][w.life] |= [...]uint8{none: 0, waits: saidParked, ran: saidRan, never: saidNever}[w.answers[i]]
	if w.unlocked[i] && w.threads[i] == idle {
		w.net[i][w.life] |= saidUnlocked
	}
}

// thread is the next step of a thread of the target.
func (w world) thread(b bug, i int) world {
	at := w.threads[i]
	w.threads[i] = idle
	switch at {
	case appends:
		w.enqueue(i)
	case looks, wakes:
		for w.word == 0 && w.queue[0] != 0 {
			head := int(w.queue[0]) - 1
			if w.dequeue(head); w.answers[head] != waits && b != parksTwice && b != leaves {
				w.fail(true, "a caller without a request is in the queue")
			}
			w.run(head)
			w.say(head)
		}
	}
	w.say(i)
	return w
}

// run executes the operation of a caller.
func (w *world) run(i int) {
	w.fail(w.before[i] != 0, "a caller overtakes one that came before")
	w.word = uint8(i + 1)
	w.answers[i] = ran
	w.runs[i]++
	w.fail(w.runs[i] > 1, "an operation ran twice")
}

// enqueue puts a caller at the end of the queue.
func (w *world) enqueue(i int) {
	for at := range w.queue {
		if w.queue[at] == 0 {
			w.queue[at] = uint8(i + 1)
			return
		}
	}
}

// dequeue takes a caller out of the queue.
func (w *world) dequeue(i int) {
	for at := range w.queue {
		if w.queue[at] == uint8(i+1) {
			copy(w.queue[at:], w.queue[at+1:])
			w.queue[callers] = 0
			break
		}
	}
	for j := range w.before {
		w.before[j] &^= 1 << i
	}
}

func (w *world) fail(failed bool, what string) {
	if failed && w.bad == "" {
		w.bad = what
	}
}

// ended reports whether all callers have come to their end.
func (w *world) ended() bool { return w.stages == [callers]stage{over, over, over} }
