// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/xdpfab/xdpfab/bench/measure"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// targetLimit ends a target that nobody stops.
const targetLimit = 10 * time.Minute

// target serves regions until it is told to stop: "bench", or, if there are
// several, "bench", "bench1", "bench2" and so on. With manual progress it polls
// without a pause, as the floor's echo does.
func target(ctx context.Context, dom *xdpfab.Domain, s *settings) error {
	ctx, cancel := context.WithTimeout(ctx, targetLimit)
	defer cancel()
	for i := range s.regions {
		name := "bench"
		if i > 0 {
			name = fmt.Sprintf("bench%d", i)
		}
		if _, err := dom.NewRegion(name, s.size); err != nil {
			return err
		}
	}
	ep, err := dom.NewEndpoint(xdpfab.EndpointAttr{})
	if err != nil {
		return err
	}
	if err := ep.Enable(); err != nil {
		return err
	}
	fmt.Println(measure.Ready, dom.Address(0))
	if s.progress == "auto" {
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
