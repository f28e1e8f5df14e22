// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"fmt"

	"github.com/cilium/ebpf/ringbuf"
)

// OnTouch calls f, in a goroutine of its own, after the program has counted an operation
// on a region whose Count was armed. Before the next call for that region it has to be
// armed anew. stop ends that, and does not wait for a call that is under way.
func (x *Executor) OnTouch(f func()) (stop func(), err error) {
	r, err := ringbuf.NewReader(x.objects.Events)
	if err != nil {
		return nil, fmt.Errorf("resident: waiting for events of the program: %w", err)
	}
	go func() {
		var event ringbuf.Record
		for r.ReadInto(&event) == nil {
			f()
		}
	}()
	return func() { _ = r.Close() }, nil
}
