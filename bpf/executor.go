// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
)

// Shared returns the maps that an executor redirects by and counts in: the sockets, by
// queue and lane, and the packets by Reason. They belong to the Program.
func (p *Program) Shared() (sockets, counters *ebpf.Map) {
	return p.objects.Sockets, p.objects.Counters
}

// SetExecutor has an XDP program called for each request, ack and probe that would be
// redirected to a socket, in place of the one before; nil for none. It has to redirect by
// itself what it does not deal with, and to count each packet: see Shared. Without
// Config.Execute it is an error.
func (p *Program) SetExecutor(x *ebpf.Program) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return ErrClosed
	case !p.execute:
		return fmt.Errorf("bpf: %w: an executor for a program that calls none; set Config.Execute", ErrConfig)
	case x == nil:
		if err := p.objects.Executors.Delete(uint32(0)); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("bpf: removing the executor: %w", err)
		}
		return nil
	}
	if err := p.objects.Executors.Put(uint32(0), x); err != nil {
		return fmt.Errorf("bpf: setting the executor: %w", err)
	}
	return nil
}
