// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/xdpfab/xdpfab/bench/measure"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// targetLimit is the time after which a target ends by itself.
const targetLimit = 10 * time.Minute

// target serves a region until it is told to stop. With manual progress it polls
// without a pause, as the floor's echo does.
func target(ctx context.Context, dom *xdpfab.Domain, s *settings) error {
	ctx, cancel := context.WithTimeout(ctx, targetLimit)
	defer cancel()
	memory, err := s.memory(dom)
	if err != nil {
		return err
	}
	defer memory.Close()
	if err := register(dom, memory, s); err != nil {
		return err
	}
	if err := accept(dom); err != nil {
		return err
	}
	makeGarbage(ctx, s.garbage)
	fmt.Println(measure.Ready, dom.Name(0))
	if s.progress == fi.ProgressAuto {
		<-ctx.Done()
		return nil
	}
	runtime.LockOSThread()
	for ctx.Err() == nil {
		for range 1024 {
			dom.Progress()
		}
	}
	return nil
}

// memory is the target's.
func (s *settings) memory(dom *xdpfab.Domain) (*mr.Memory, error) {
	if s.resident {
		return dom.NewResidentMemory("bench", s.size)
	}
	return mr.Alloc(s.size, mr.AllocOptions{})
}

// register makes a region of all the memory, named "bench", and further ones of a
// cache line each, with the keys 1 to regions-1.
func register(dom *xdpfab.Domain, memory *mr.Memory, s *settings) error {
	rw := mr.RemoteRead | mr.RemoteWrite
	if _, err := dom.Register(memory, mr.Options{Name: "bench", Access: rw}); err != nil {
		return err
	}
	for i := 1; i < s.regions; i++ {
		key, offset := uint64(i), i*lineSize%s.size
		if _, err := dom.Register(memory,
			mr.Options{Key: &key, Access: rw, Offset: offset, Length: lineSize}); err != nil {
			return fmt.Errorf("region %d of %d: %w", i, s.regions, err)
		}
	}
	return nil
}

const lineSize = 64 // bytes
