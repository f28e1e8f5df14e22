// SPDX-License-Identifier: Apache-2.0

package progress

// Notify tells whoever steps that something was posted that nobody waits for yet.
func (s *Stepper) Notify() {
	s.eng.Notify()
	if s.waiting.Load() == 0 {
		s.rouse()
	}
}

// Defer is Notify put off: a later call of Start, which Progress and Wait include, tells
// of what has been posted.
func (s *Stepper) Defer() {
	if !s.more.Load() {
		s.more.Store(true)
	}
}

// Start tells whoever steps of what was deferred. A caller that posts while the mark is
// taken away is covered as well, since the thread that steps looks at the rings afterwards.
func (s *Stepper) Start() {
	if s.more.Load() {
		s.more.Store(false)
		s.Notify()
	}
}
