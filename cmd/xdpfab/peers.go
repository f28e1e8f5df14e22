// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/xdpfab/xdpfab/cmd/xdpfab/names"
	"github.com/xdpfab/xdpfab/cmd/xdpfab/settings"
	nodes "github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/tell"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/xdpfab/directory"
)

// peerAddresses returns the addresses that a peer's text means: an address, a short name
// of the configuration, the name of a node in the directory, or that of a host, whichever
// fits first. All are of the first one's sort, IP or MAC.
func (f *linkFlags) peerAddresses(c *cobra.Command, s *settings.Settings, peer string) ([]wire.Addr, error) {
	ctx, cancel := context.WithTimeout(c.Context(), f.giveUp)
	defer cancel()
	name, _, _ := strings.Cut(peer, "/")
	if texts, known := s.Addresses(name); known {
		all, err := hostAddresses(ctx, c, names.Number(texts, peer))
		return all, within(err, "the short name "+name+" of the configuration")
	}
	if err := decorated(c, peer, name); err != nil {
		return nil, err
	}
	_, bad := wire.ParseAddr(peer)
	known := shortNames(s)
	if bad == nil || f.directory == "" || directory.CheckName(name) != nil {
		all, err := hostAddresses(ctx, c, []string{peer})
		return all, mistyped(c, err, name, known)
	}
	d, err := readNames(c, f.directory, f.giveUp)
	if err != nil {
		return nil, err
	}
	n, err := d.Node(name)
	if err == nil {
		all, err := hostAddresses(ctx, c, names.Number(n.Addrs, peer))
		return all, within(err, "node "+name+" of the directory "+f.directory)
	}
	all, no := hostAddresses(ctx, c, []string{peer})
	for _, n := range d.Nodes() {
		known = append(known, n.Name)
	}
	if exitCode(no) == exitUsage && tell.DidYouMean(name, known) == "" {
		return nil, usage(c, "%v; nor is it the name of a host", err)
	}
	if no != nil {
		no = fmt.Errorf("%w; nor is it a node of the directory %s", no, f.directory)
	}
	return all, mistyped(c, no, name, known)
}

// within adds to an error of an address where it comes from.
func within(err error, from string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", from, err)
}

// decorated refuses an IP address with what other programs take in it: a zone, or
// brackets.
func decorated(c *cobra.Command, peer, name string) error {
	number := strings.TrimPrefix(peer, name)
	if ip, zone, is := strings.Cut(name, "%"); is && zone != "" && isAddress(ip) {
		return usage(c, "peer %q: leave out the zone, and name the interface with -i %s: %s -i %s", peer, zone,
			ip+number, zone)
	}
	if ip := strings.Trim(name, "[]"); ip != name && isAddress(ip) {
		return usage(c, "peer %q: leave out the brackets: %s", peer, ip+number)
	}
	return nil
}

// mistyped turns the error of a name that is no host's into one about a known name that
// is like it, if there is one.
func mistyped(c *cobra.Command, err error, name string, known []string) error {
	like := tell.DidYouMean(name, known)
	if err == nil || like == "" || c.Context().Err() != nil {
		return err
	}
	return usage(c, "unknown peer %q%s: want an address, a short name of the configuration, the name of a node in the "+
		"directory, or that of a host", name, like)
}

// shortNames are those that the configuration gives peers.
func shortNames(s *settings.Settings) (names []string) {
	for _, v := range s.All() {
		if name, is := strings.CutPrefix(v.Key, "peers."); is {
			names = append(names, name)
		}
	}
	return names
}

// hostAddresses resolves addresses, each of which may be the name of a host. Those that
// cannot be resolved are left out if there are others.
func hostAddresses(ctx context.Context, c *cobra.Command, texts []string) (all []wire.Addr, err error) {
	for _, text := range texts {
		some, wrong := nodes.ResolveAll(ctx, text, "ip")
		if err = errors.Join(err, wrong); wrong != nil {
			continue
		}
		for _, a := range some {
			if len(all) == 0 || a.IsIP() == all[0].IsIP() {
				all = append(all, a)
			}
		}
	}
	switch {
	case len(all) > 0:
		return all, nil
	case c.Context().Err() != nil:
		return nil, context.Cause(c.Context())
	case errors.As(err, new(*net.DNSError)) && isInterface(texts[0]):
		return nil, usage(c, "%q is an interface of this machine: want the address of a peer, and -i %s, as in "+
			"`xdpfab list 10.0.0.2 -i %s`", texts[0], texts[0], texts[0])
	case errors.As(err, new(*net.DNSError)):
		err = fmt.Errorf("%w; `xdpfab config --help` says how to give peers names", err)
	}
	if len(texts) == 1 && likeInterface.MatchString(texts[0]) {
		err = fmt.Errorf("%w; -i names an interface, as in `xdpfab list 10.0.0.2 -i %s`", err, texts[0])
	}
	if errors.As(err, new(*net.DNSError)) && !notFound(err) {
		return nil, &codeError{err, exitUnreachable}
	}
	return nil, usage(c, "%v", err)
}

// likeInterface is a name that the kernel or udev gives interfaces.
var likeInterface = regexp.MustCompile(`^(eth|en[opsx]|eno|ib|bond|br|veth|wl)[0-9a-z]*[0-9]$`)

// notFound reports whether the resolver knows that there is no such host.
func notFound(err error) bool {
	dns := new(net.DNSError)
	return errors.As(err, &dns) && dns.IsNotFound
}

// readNames reads the directory.
func readNames(c *cobra.Command, text string, limit time.Duration) (*directory.Directory, error) {
	ctx, cancel := context.WithTimeoutCause(c.Context(), limit,
		fmt.Errorf("it was tried for %v in all (--timeout)", limit))
	defer cancel()
	d, err := names.Read(ctx, text, nil)
	switch {
	case err == nil:
		return d, nil
	case errors.As(err, new(*names.AwayError)) && c.Context().Err() == nil:
		return nil, &codeError{err, exitUnreachable}
	case c.Context().Err() != nil:
		return nil, context.Cause(c.Context())
	}
	return nil, usage(c, "%v", err)
}

// directoryOf returns the directory that a flag or else the configuration names; empty
// for none.
func directoryOf(c *cobra.Command, flag string, s *settings.Settings) string {
	text := flag
	if !c.Flags().Changed("directory") {
		text = s.Get(settings.Directory).Value
	}
	if text == names.None {
		return ""
	}
	return text
}

const directoryUsage = "where names of nodes are found: a file, or etcd://HOST:PORT[/PREFIX]; none: nowhere; " +
	"default: that of the configuration"
