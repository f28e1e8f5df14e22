// SPDX-License-Identifier: Apache-2.0

package engine

import "time"

// Team is the engines of several queues that one thread steps in turn, as if they were
// one: with manual progress, each waiting thread serves all queues. All its methods but
// Notify, Wake and Call belong to that thread.
type Team struct {
	engines []*Engine
	wait    func(time.Duration)
}

// NewTeam returns a team. wait is Port.Wait for all ports at once: it ends when a packet
// can be received on any of them, or any is woken.
func NewTeam(engines []*Engine, wait func(time.Duration)) *Team {
	for _, e := range engines {
		e.teamed = len(engines) > 1
	}
	return &Team{engines, wait}
}

// Step is one round of each engine; it returns how much there was to do.
func (t *Team) Step() int { return t.each((*Engine).Step) }

// Spin is Step for a caller that calls again at once.
func (t *Team) Spin() int { return t.each((*Engine).Spin) }

// Poll is Step for a caller that may call again at once, or much later.
func (t *Team) Poll() int { return t.each((*Engine).Poll) }

func (t *Team) each(step func(*Engine) int) (n int) {
	for _, e := range t.engines {
		n += step(e)
	}
	return n
}

// Close ends the sessions of all engines.
func (t *Team) Close() {
	for _, e := range t.engines {
		e.Close()
	}
}

// Idle reports whether nothing is left to be sent.
func (t *Team) Idle() bool {
	for _, e := range t.engines {
		if !e.Idle() {
			return false
		}
	}
	return true
}

// Sleep waits for work for at most limit, or until the next timer of any engine is due.
// All engines say that they sleep before any looks for work.
func (t *Team) Sleep(limit time.Duration) {
	d := limit
	for _, e := range t.engines {
		d = min(d, e.mayRest(limit))
	}
	if d <= 0 {
		return
	}
	work := false
	for _, e := range t.engines {
		e.sleeper.asleep.Store(true)
	}
	for _, e := range t.engines {
		work = e.guests.rest() || work || e.waiting()
	}
	if !work {
		t.wait(d)
	}
	for _, e := range t.engines {
		e.rise()
	}
}

// Notify makes the engines look at their rings soon. They sleep together.
func (t *Team) Notify() { t.engines[0].Notify() }

// Wake ends the sleep, or prevents the next one.
func (t *Team) Wake() { t.engines[0].Wake() }

// Call has f run between the rounds of the other engines; it may use any of them.
func (t *Team) Call(f func()) bool { return t.engines[0].Call(f) }
