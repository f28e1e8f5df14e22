// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/xdpfab/xdpfab/bench/measure"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// attach attaches to a daemon as many times as a flag says, prints the median of the
// times that it took, in milliseconds, and stays attached, idle, until it is told to
// stop.
func attach(ctx context.Context, s *settings) (err error) {
	ctx, cancel := context.WithTimeout(ctx, targetLimit)
	defer cancel()
	var took []time.Duration
	for range s.count {
		start := time.Now()
		dom, e := s.open(ctx)
		if e != nil {
			return e
		}
		defer func() { err = errors.Join(err, dom.CloseAll()) }()
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	fmt.Println(measure.Ready, took[len(took)/2].Seconds()*1000)
	<-ctx.Done()
	return nil
}

// attr is how the domain of any part is opened: through the daemon whose control socket a
// flag names, or directly.
func (s *settings) attr() xdpfab.DomainAttr {
	a := xdpfab.DomainAttr{Transport: s.transport, Progress: s.progress, Threading: s.threads}
	if a.Attach = fi.AttachNever; s.control != "" {
		a.Attach, a.Control = fi.AttachAlways, s.control
	}
	return a
}
