// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/nic"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/udpnode"
	"github.com/xdpfab/xdpfab/xsk"
)

// steering is how the NIC is made to deliver frames on the queues in use, and what has
// come of it: that the driver took the settings proves little, so the frames are counted.
type steering struct {
	set   *nic.Steering // nil: nothing was set
	name  string
	close func()
	judge atomic.Pointer[control.Steering]
}

// steerPath returns the path of the file, beside the control socket, that holds the NIC's
// settings from before the daemon changed them.
func (c Config) steerPath() string { return c.beside(nic.SteerSuffix) }

// steer sets the NIC up, if that is wanted, after what a daemon before this one may have
// left was undone. A daemon that is not to steer serves whatever the file of a former one
// is like.
func (s *server) steer() (err error) {
	err = s.setUp()
	if err != nil && !s.cfg.Steer {
		s.log.Warn("former daemon's steering is not undone", "cause", err, "remembered", s.cfg.steerPath())
		return nil
	}
	return err
}

func (s *server) setUp() error {
	if !s.cfg.Steer && len(steerFiles(s.cfg.steerPath())) == 0 {
		return nil
	}
	info := s.host.Node().Dev.Info()
	n, err := nic.ToSteer(info.Name)
	if err != nil {
		return err
	}
	c, done, err := nic.OpenClassifier(n.Name)
	if err != nil {
		return err
	}
	s.steering.close, s.steering.name = done, n.Name
	n.Use, n.UDP = info.Queues, s.cfg.UDP
	if lack := toSteer(info, n.RXQueues); !s.cfg.Steer || lack != "" {
		if s.cfg.Steer {
			s.log.Info("nothing to steer: "+lack, "queues", n.Use)
		}
		notes, err := nic.Unsteer(c, s.cfg.steerPath(), n)
		tellNotes(s.log, notes)
		return err
	}
	set, notes, err := nic.Steer(c, s.cfg.steerPath(), n)
	if tellNotes(s.log, notes); err != nil {
		return fmt.Errorf("steer: %w", err)
	}
	s.steering.set = set
	s.steering.judge.Store(&control.Steering{Queues: n.Use, Rule: set.Rule, Ports: set.Ports, Table: set.Table,
		Lacks: set.Why})
	s.log.Info("NIC steers frames to the queues in use, until the daemon ends", "queues", n.Use, "of", n.RXQueues,
		"rule", set.Rule, "udp_rules", set.Ports, "table", set.Table, "lacks", set.Why, "remembered", s.cfg.steerPath())
	return nil
}

// steerFiles are the files of this daemon's folder, each of a NIC that was steered.
func steerFiles(path string) []string {
	found, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*"+nic.SteerSuffix))
	return found
}

// tellNotes logs what undoing a former steering has met.
func tellNotes(log *slog.Logger, notes []string) {
	for _, n := range notes {
		log.Warn("former steering: " + n)
	}
}

// unsteer undoes what a daemon that was killed has left, when no other one will come. A
// daemon that serves has the control socket, and undoes its own changes when it ends.
func unsteer(ctx context.Context, cfg Config, log *slog.Logger) error {
	l, err := control.Listen(ctx, cfg.controlPath(), control.Access{Mode: control.DefaultMode})
	if err != nil {
		return explainListen(cfg, err)
	}
	defer l.Close()
	n, err := nic.ToSteer(cfg.Interface)
	if err != nil && !errors.Is(err, xsk.ErrNoInterface) { // its NIC may have another name by now
		return errInterface(err)
	}
	held, path := cfg.beside(nic.DeferSuffix), cfg.steerPath()
	if err := nic.Undefer(nic.KernelNAPIs, held, &n.Interface); err != nil {
		return errFailure(err)
	}
	log.Info("no setting of --busy-poll is left", "looked_for", held)
	if len(steerFiles(path)) == 0 {
		log.Info("no setting of --steer is left", "looked_for", path)
		return nil
	}
	c, done, err := nic.OpenClassifier(n.Name)
	if err != nil {
		return errInterface(err)
	}
	defer done()
	notes, err := nic.Unsteer(c, path, n)
	if tellNotes(log, notes); err != nil {
		return errFailure(err)
	}
	log.Info("no NIC is steered by what lay here any more", "looked_for", path)
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
		notes, err := s.steering.set.Undo()
		if tellNotes(s.log, notes); err != nil {
			s.log.Warn("NIC's settings could not be put back; the next daemon tries again, or xdpfabd --unsteer",
				"cause", err, "remembered", s.cfg.steerPath())
		}
	}
	if s.steering.close != nil {
		s.steering.close()
	}
}

// tellQueues logs how many queues are not in use, and the way that their frames take. An
// event tells later when the first such frame arrives. Queues that nobody hears have a
// warning of their own.
func (s *server) tellQueues(i node.InterfaceInfo) {
	if i.Relayed == 0 {
		return
	}
	fewer := nic.SetQueues(i.Name, i.Queues+s.cfg.Lend)
	if i.Driver == "veth" { // which receives with as many queues as its other end sends with
		fewer += ", and the same at the other end"
	}
	s.log.Info("interface has more queues than are in use: frames that arrive on the others are passed on "+
		"with a copy, unless the NIC steers them", "in_use", i.Queues, "others", i.Relayed,
		"remedy", "more --queues; or stop the daemon, which keeps queues in use, and set fewer: "+fewer)
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
			s.log.Warn("NIC does not steer all frames as it was set to", "frames", next.Frames,
				"astray", next.Astray, "remedy", fmt.Sprintf("ethtool -S %s shows where; or stop the daemon and set "+
					"one queue: %s", s.steering.name, nic.SetQueues(s.steering.name, 1)))
		default:
			s.log.Info("NIC steers frames as it was set to", "frames", next.Frames)
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
