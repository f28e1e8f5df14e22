// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/nic"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/udpnode"
)

// steering is how the NIC is made to deliver frames on the queues in use, and what has
// come of it: that the driver took the settings proves little, so the frames are counted.
type steering struct {
	set   *nic.Steering // nil: nothing was set
	nic   nic.Interface
	close func()
	judge atomic.Pointer[control.Steering]
}

// steerPath returns the path of the file, beside the control socket, that holds the NIC's
// settings from before the daemon changed them.
func (c Config) steerPath() string { return c.beside(".steer") }

// steer sets the NIC up, if that is wanted, after what a daemon before this one may have
// left was undone.
func (s *server) steer() (err error) {
	if _, none := os.Stat(s.cfg.steerPath()); none != nil && !s.cfg.Steer {
		return nil
	}
	if s.steering.nic, err = nic.Inspect(s.host.Node().Dev.Info().Name); err != nil {
		return err
	}
	c, done, err := nic.OpenClassifier(s.steering.nic.Name)
	if err != nil {
		return err
	}
	s.steering.close = done
	at, info := &s.steering.nic, s.host.Node().Dev.Info()
	queues := info.Queues
	if lack := toSteer(info, at.RXQueues); !s.cfg.Steer || lack != "" {
		if s.cfg.Steer {
			s.log.Info("nothing to steer: "+lack, "queues", queues)
		}
		return nic.Unsteer(c, s.cfg.steerPath(), at)
	}
	set, err := nic.Steer(c, s.cfg.steerPath(), at, queues)
	if err != nil {
		return fmt.Errorf("steer: %w", err)
	}
	s.steering.set = set
	s.steering.judge.Store(&control.Steering{Queues: queues, Rule: set.Rule, Lacks: set.Why})
	s.log.Info("the NIC steers frames to the queues in use, until the daemon ends", "queues", queues, "of", at.RXQueues,
		"rule", set.Rule, "lacks", set.Why, "remembered", s.cfg.steerPath())
	return nil
}

// toSteer returns why nothing is to be steered on an interface with so many queues; empty
// if something is.
func toSteer(i node.InterfaceInfo, there int) string {
	switch {
	case i.Transport == udpnode.UDP.String():
		return "UDP sockets hear all queues"
	case i.Queues >= there:
		return "all queues are in use"
	}
	return ""
}

// endSteering puts the NIC's settings back.
func (s *server) endSteering() {
	if s.steering.set != nil {
		if err := s.steering.set.Undo(&s.steering.nic); err != nil {
			s.log.Warn("the NIC's settings could not be put back; the next daemon tries again", "cause", err,
				"remembered", s.cfg.steerPath())
		}
	}
	if s.steering.close != nil {
		s.steering.close()
	}
}

// keepSteering leaves the settings, and the file, to the daemon that takes this one's
// place.
func (s *server) keepSteering() { s.steering.set = nil }

// Frames that have to come before there is a verdict, and the time between two looks.
const (
	steeredFrames = 1000
	steeredLook   = time.Second
)

// judgeSteering counts where frames arrive, until there were enough, and tells once. What
// came before its first look does not count: in the pause of a takeover, or before the
// NIC was set up, frames find no socket.
func (s *server) judgeSteering(ctx context.Context) {
	if s.steering.set == nil {
		return
	}
	look := time.NewTicker(steeredLook)
	defer look.Stop()
	var before map[string]uint64
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		counters, err := s.host.Node().Stats()
		if err != nil {
			continue
		}
		if before == nil {
			before = counters
		}
		next := measured(*s.steering.judge.Load(), before, counters)
		s.steering.judge.Store(&next)
		switch {
		case next.Frames+next.Astray < steeredFrames:
			continue
		case next.Astray > 0:
			s.log.Warn("the NIC does not steer all frames as it was set to", "frames", next.Frames,
				"astray", next.Astray, "remedy", fmt.Sprintf("ethtool -S %[1]s shows where; or use one queue: "+
					"ethtool -L %[1]s combined 1", s.steering.nic.Name))
		default:
			s.log.Info("the NIC steers frames as it was set to", "frames", next.Frames)
		}
		return
	}
}

// measured adds to a verdict the frames that were counted between two looks.
func measured(v control.Steering, before, now map[string]uint64) control.Steering {
	since := func(name string) uint64 { return now[name] - before[name] }
	forwarded := since("forwarded")
	v.Astray = forwarded + since("xdp_drop_no_socket")
	v.Frames = max(since("xdp_redirect"), forwarded) - forwarded
	return v
}

// steered is the state for people; nil if the NIC is not steered.
func (s *server) steered() *control.Steering { return s.steering.judge.Load() }
