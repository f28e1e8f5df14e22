// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"fmt"
	"os"
	"time"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/udpnode"
	"github.com/xdpfab/xdpfab/internal/version"
	"github.com/xdpfab/xdpfab/mr"
)

// status returns the state that the control socket shows. Several goroutines may call
// it.
func (s *server) status() (control.Status, error) {
	n := s.host.Node()
	counters, err := n.Stats()
	if err != nil {
		return control.Status{}, err
	}
	s.denied.into(counters)
	return control.Status{
		Version: version.Version, PID: os.Getpid(), NetNS: control.Namespace(),
		UptimeSeconds: time.Since(s.began).Seconds(),
		Interface:     n.Dev.Info(), Address: n.Name(0), Progress: "auto",
		Regions: s.describe(), Guests: s.guests(), Lent: s.host.LentQueues(), Kept: s.kept(), Counters: counters,
		VLAN: s.vlan(), Steering: s.steered(), RenamedFrom: s.renamedFrom(),
		Metrics: cmp.Or(s.cfg.MetricsAddress, "none"),
	}, nil
}

// renamedFrom is the name that the interface had as the daemon began, if it has another
// one now.
func (s *server) renamedFrom() string {
	if s.host.Node().Dev.Info().Name == s.cfg.Interface {
		return ""
	}
	return s.cfg.Interface
}

// vlan tells whose frames the node takes; empty if it has UDP sockets.
func (s *server) vlan() string {
	if s.host.Node().Dev.Info().Transport == udpnode.UDP.String() {
		return ""
	}
	return s.cfg.VLAN.String()
}

// describe lists the regions for people.
func (s *server) describe() []control.Region {
	list := []control.Region{} // not nil, which JSON calls null
	for _, r := range s.served.all() {
		list = append(list, r.describe())
	}
	return list
}

// describe describes a region that is registered. Of what was applied to a resident one,
// the pollers know but a part, and so nothing is said.
func (r *region) describe() control.Region {
	backing := r.Backing
	if r.isFile() {
		backing = "file:" + backing
	}
	applied := appliedTo(r.reg)
	if backing == backingResident {
		applied = control.Applied{}
	}
	return control.Region{
		Name: r.Name, Key: fmt.Sprintf("0x%016x", r.reg.Key()), Size: uint64(r.reg.Len()),
		Access: accessNames(r.reg.Access()), AuthKey: len(r.auth) > 0,
		Backing: backing, Pages: r.reg.Memory().Pages().String(), Applied: applied,
	}
}

func accessNames(a mr.Access) (access []string) {
	if a&mr.RemoteRead != 0 {
		access = append(access, "read")
	}
	if a&mr.RemoteWrite != 0 {
		access = append(access, "write")
	}
	return access
}

func appliedTo(r *mr.Region) control.Applied { return control.Applied(r.Tally()) }

// regionList lists the daemon's regions and those of programs.
func (s *server) regionList() (control.RegionList, error) {
	list := control.RegionList{Regions: s.describe(), Guests: []control.GuestRegion{}}
	s.host.EachGuestRegion(func(pid int, r *mr.Region) {
		if list.Total++; list.Total <= control.MostGuestRegions {
			list.Guests = append(list.Guests, control.GuestRegion{Guest: pid, Name: r.Name(), Size: uint64(r.Len()),
				Access: accessNames(r.Access()), AuthKey: r.AuthKey() != 0, Applied: appliedTo(r)})
		}
	})
	return list, nil
}
