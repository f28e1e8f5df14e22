// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/xdpfab/xdpfab/xdpfab/directory"
	"github.com/xdpfab/xdpfab/xdpfab/directory/etcd"
)

// entryPace is the time between two looks at what this node serves.
const entryPace = time.Second

// inDirectory keeps this node's entry in the directory, if one is configured, until ctx
// ends. A daemon whose place is taken leaves the entry to the next one.
func (s *server) inDirectory(ctx context.Context) {
	if s.cfg.Directory == "" {
		return
	}
	source, err := etcd.Open(s.cfg.Directory, s.log)
	if err != nil { // a file of certificates has gone since the configuration was checked
		s.log.Error("this node is not in the directory", "cause", err)
		return
	}
	defer source.Close()
	s.directory.Store(source)
	announcing, end := context.WithCancelCause(context.WithoutCancel(ctx))
	entries, ended := make(chan directory.Node), make(chan struct{})
	go func() {
		defer close(ended)
		_ = source.Announce(announcing, entries)
	}()
	s.tellEntries(ctx, entries)
	if errors.As(context.Cause(ctx), new(*leaving)) {
		end(directory.ErrReplaced)
	} else {
		end(nil)
	}
	<-ended
}

// tellEntries sends this node's entry whenever it changes. It can change by a region, by
// an address, and by the interface's MAC address.
func (s *server) tellEntries(ctx context.Context, entries chan<- directory.Node) {
	tick := time.NewTicker(entryPace)
	defer tick.Stop()
	var told directory.Node
	for {
		var to chan<- directory.Node
		n, err := s.entry()
		if !n.Equal(told) && err == nil {
			to = entries
		}
		select {
		case <-ctx.Done():
			return
		case to <- n:
			told = n
		case <-tick.C: // nothing new, or the directory is slow
		}
	}
}

// entry describes this node for others. The addresses of the interface alone, and those
// that mean another node elsewhere, are left out.
func (s *server) entry() (directory.Node, error) {
	i := s.host.Node().Dev.Info()
	n := directory.Node{Name: s.cfg.nodeName()}
	for text := range strings.FieldsSeq(i.Served) {
		p, err := netip.ParsePrefix(text)
		if err == nil && !p.Addr().IsLoopback() && !p.Addr().IsLinkLocalUnicast() {
			n.Addrs = append(n.Addrs, p.Addr().String())
		}
	}
	if own := s.host.Node().Name(0); !slices.Contains(n.Addrs, own) {
		n.Addrs = append(n.Addrs, own)
	}
	n.Addrs = n.Addrs[:min(len(n.Addrs), directory.MostAddrs)]
	for _, r := range s.served.all() {
		if directory.CheckRegion(r.Name) == nil { // others are found by the node's name
			n.Regions = append(n.Regions, r.Name)
		}
	}
	slices.Sort(n.Regions)
	n.Regions = n.Regions[:min(len(n.Regions), directory.MostRegions)]
	return n, n.Check()
}

// nodeName is the name under which this node is in the directory.
func (c Config) nodeName() string {
	if c.Node != "" {
		return c.Node
	}
	name, _ := os.Hostname() // Config.validate refuses an empty one
	return name
}

// checkDirectory checks the URL of a directory.
func checkDirectory(text string) error {
	if text == "" {
		return nil
	}
	if !strings.Contains(text, "://") {
		return wants(text, "etcd://HOST:PORT; a file is written by hand, and read by clients alone")
	}
	source, err := etcd.Open(text, nil)
	if err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "directory ")) // --directory says so
	}
	return source.Close()
}

func checkNode(name string) error {
	if name == "" {
		return nil
	}
	return directory.CheckName(name)
}
