// SPDX-License-Identifier: Apache-2.0

package progress

// Notify tells the thread that steps that an operation was posted that no
// goroutine waits for yet. A caller alone has no such thread.
func (s *Stepper) Notify() {
	if s.alone {
		return
	}
	s.eng.Notify()
	if s.waiting.Load() == 0 {
		s.rouse()
	}
}

// Defer postpones Notify: a later call of Start, which Progress and Wait include, tells
// that thread.
func (s *Stepper) Defer() {
	if !s.alone && !s.more.Load() {
		s.more.Store(true)
	}
}

// Start makes up for the Notify that Defer postponed. A caller that posts while the
// mark is being taken away is covered as well, since the thread that steps looks at the
// rings afterwards.
func (s *Stepper) Start() {
	if s.more.Load() {
		s.more.Store(false)
		s.Notify()
	}
}
