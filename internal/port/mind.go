// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import "errors"

// minder is what has queues of the interface that no engine of this process has: the
// forwarders, or a queue that can be lent.
type minder interface {
	// start begins to take the frames that arrive there, and to hand them to deliver,
	// which must copy them. happened is told of a queue that does not come back, and of
	// the first frame that is forwarded. Both are called on a goroutine of the minder's.
	start(deliver func(packet []byte), happened func(Event))
	// count adds what is to be counted. It fails if a socket cannot tell.
	count(all map[string]uint64) error
	// leave adds what the next user of the interface has to know.
	leave(h *Inheritance) error
	// close ends the goroutine, and closes the queues.
	close() error
}

// Mind begins to take the frames that arrive on queues which no engine has, and hands
// them to deliver: see minder. Mind may be called once.
func (i *Interface) Mind(deliver func(packet []byte), happened func(Event)) {
	for _, m := range i.aside {
		m.start(deliver, happened)
	}
}

// closeAside closes the queues that no engine has.
func (i *Interface) closeAside() error {
	var errs []error
	for _, m := range i.aside {
		errs = append(errs, m.close())
	}
	return errors.Join(errs...)
}
