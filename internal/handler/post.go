// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"sync/atomic"

	"github.com/xdpfab/xdpfab/internal/progress"
)

// Attendant is where a goroutine waits for requests: a stepper, of which it takes the
// poller's place.
type Attendant interface {
	Attend(*progress.Signal) error
	// Alert ends its sleep in the port.
	Alert()
}

// post is the place of the goroutine that waits for requests. It makes progress, so it is
// mostly the thread that receives a request which answers it.
type post struct {
	at     Attendant
	taken  atomic.Bool     // a goroutine has the place
	signal progress.Signal // there are requests; the owner is that goroutine
}

// Attend sets where a goroutine waits for requests. It comes before the first request.
func (h *Handler) Attend(at Attendant) {
	h.post.at, h.post.signal = at, progress.NewSignal()
}

// attend waits until there may be a request. It reports false if another goroutine has
// the place, or the attendant is closed.
func (p *post) attend(h *Handler) bool {
	if !p.taken.CompareAndSwap(false, true) {
		return false
	}
	defer p.taken.Store(false)
	p.signal.Reset()
	// whoever asks, or closes, does so first and looks at the place afterwards
	if len(h.queue) > 0 || h.closed.Load() {
		return true
	}
	return p.at.Attend(&p.signal) == nil
}

// call tells the goroutine that waits, if there is one, that there is a request, or that
// the handler is closed. Any thread calls it.
func (p *post) call() {
	if p.taken.Load() {
		p.signal.Raise()
		p.at.Alert()
	}
}
