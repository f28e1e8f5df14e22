// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/xdpfab/xdpfab/cmd/xdpfab/names"
	"github.com/xdpfab/xdpfab/cmd/xdpfab/settings"
	"github.com/xdpfab/xdpfab/cmd/xdpfab/way"
	"github.com/xdpfab/xdpfab/internal/diagnose"
	"github.com/xdpfab/xdpfab/internal/nic"
	"github.com/xdpfab/xdpfab/internal/route"
	"github.com/xdpfab/xdpfab/internal/tell"
	"github.com/xdpfab/xdpfab/internal/udpport"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
	"github.com/xdpfab/xdpfab/xsk"
)

// client is an interface in use and a peer that answered.
type client struct {
	ctx  context.Context // of the command
	dom  *xdpfab.Domain
	peer *xdpfab.Peer
	addr string
}

// course is how a peer is reached.
type course struct {
	attr   xdpfab.DomainAttr
	to     []wire.Addr // of the peer; all of the first one's sort
	chosen way.Choice
}

// course finds the peer's addresses, and the interface that leads there.
func (a *app) course(c *cobra.Command, f *linkFlags, peer string) (by course, err error) {
	s, err := f.prepare(a, c)
	if err != nil {
		return by, err
	}
	switch {
	case peer == "" && c.Flags().Lookup("peer") != nil:
		return by, usage(c, "missing the peer's address: name it with --peer, as in --peer 10.0.0.2")
	case peer == "":
		return by, usage(c, "PEER is empty: want an address, as in `%s 10.0.0.2`", c.CommandPath())
	}
	if c.Flags().Changed("directory") && f.directory != "" { // which an address does not need
		if err := names.Check(c.Context(), f.directory); err != nil {
			return by, usage(c, "%v", err)
		}
	}
	if by.to, err = f.peerAddresses(c, s, peer); err != nil {
		return by, err
	}
	if by.attr, err = f.attr(c, by.to[0].IsIP()); err != nil {
		return by, err
	}
	if by.chosen, err = f.choose(c, s, &by.attr, by.to); err == nil && by.chosen.Why != "" {
		by.to = []wire.Addr{by.chosen.Peer}
	}
	return by, err
}

// connect finds the peer's address and the interface that leads there, opens that and
// dials the peer.
func (a *app) connect(c *cobra.Command, f *linkFlags, peer string) (*client, error) {
	by, err := a.course(c, f, peer)
	if err != nil {
		return nil, notNetwork(err, by.to)
	}
	dom, err := a.use(c, f, by.attr, &by.chosen)
	if err != nil {
		return nil, chosenFor(byIP(err, by.to[0]), &by.chosen)
	}
	cl, err := dial(c, f, dom, by.to)
	if c.Context().Err() != nil { // the interface is not why it was interrupted
		return cl, err
	}
	return cl, chosenFor(f.astray(err, by.to), &by.chosen)
}

// byIP adds to an error whose remedy is UDP sockets that these do not reach a MAC
// address.
func byIP(err error, to wire.Addr) error {
	text := tell.Plain(err)
	switch {
	case to.IsIP() || !strings.Contains(text, "--transport udp"):
		return err
	case !strings.HasSuffix(text, "--transport udp"):
		return fmt.Errorf("%w; --transport udp takes the peer's IP address in place of its MAC address", err)
	}
	return fmt.Errorf("%w, and the peer's IP address in place of its MAC address", err)
}

// serve opens the interface for peers that send to it.
func (a *app) serve(c *cobra.Command, f *linkFlags) (*xdpfab.Domain, error) {
	if c.Flags().Changed("directory") {
		return nil, usage(c, "--directory is for finding a peer, and this command waits for peers: leave it out")
	}
	s, err := f.prepare(a, c)
	if err != nil {
		return nil, err
	}
	attr, err := f.attr(c, true)
	if err != nil {
		return nil, err
	}
	chosen, err := f.choose(c, s, &attr, nil)
	if err != nil {
		return nil, err
	}
	told := &notices{to: a.err}
	attr.Log = slog.New(told)
	dom, err := a.use(c, f, attr, &chosen)
	told.opened.Store(err == nil)
	return dom, chosenFor(err, &chosen)
}

// prepare takes from the configuration what no flag says, and checks the flags.
func (f *linkFlags) prepare(a *app, c *cobra.Command) (*settings.Settings, error) {
	s, err := a.settings()
	if err != nil {
		return nil, err
	}
	f.fill(c, s)
	return s, f.usage(c)
}

// fill takes from the settings what no flag says. A control socket stands for its
// daemon's interface, unless one is settled with precedence.
func (f *linkFlags) fill(c *cobra.Command, s *settings.Settings) {
	if v := s.Get(settings.Timeout); v.Value != "" && !c.Flags().Changed("timeout") {
		f.giveUp, _ = time.ParseDuration(v.Value) // which was checked
	}
	if !c.Flags().Changed("auth-key-file") {
		f.authKey, f.authKeyBy = s.Get(settings.AuthKey).Value, s.Get(settings.AuthKey).From
	}
	// Flags that ask for a daemon take precedence: it has a transport of its own.
	v, asked := s.Get(settings.Transport), f.control != "" || f.borrow
	if v.Value != "" && !asked && !c.Flags().Changed("transport") {
		_ = f.transport.UnmarshalText([]byte(v.Value)) // which was checked
		f.transportBy = v.From
	}
	f.directory = directoryOf(c, f.directory, s)
	ifname, socket := s.Get(settings.Interface), s.Get(settings.Control)
	switch {
	case f.ifname != "" || f.control != "":
	case socket.Value != "" && !ifname.Precedes(socket) && f.looksForDaemon():
		f.control, f.by = socket.Value, socket.From
	default:
		f.ifname, f.ifnameBy = ifname.Value, ifname.From
	}
}

// looksForDaemon reports whether the command may go through a daemon that no flag names.
func (f *linkFlags) looksForDaemon() bool { return !f.direct && f.transport != fi.TransportUDP }

// choose completes the attributes, and the interface if none is named.
func (f *linkFlags) choose(c *cobra.Command, s *settings.Settings, attr *xdpfab.DomainAttr,
	to []wire.Addr) (chosen way.Choice, err error) {
	if f.ifname != "" {
		if attr.Control == "" && f.looksForDaemon() {
			attr.Control = s.Get(settings.Control).Value
		}
		return chosen, nil
	}
	if chosen, err = way.Choose(c.Context(), f.control, way.Folder(), to, f.giveUp); err != nil {
		return chosen, namedBy(f.by, unclear(c, err))
	}
	if f.by != "" {
		if err := contradiction(c, s, chosen.Interface); err != nil {
			return chosen, err
		}
	}
	f.ifname = chosen.Interface
	if attr.Attach == fi.AttachAuto && f.looksForDaemon() {
		attr.Control = chosen.Control
	}
	return chosen, nil
}

// contradiction refuses settings of one rank that name a daemon's socket, and another
// interface than that daemon has: one of them would be ignored.
func contradiction(c *cobra.Command, s *settings.Settings, has string) error {
	ifname, socket := s.Get(settings.Interface), s.Get(settings.Control)
	if ifname.Value == "" || ifname.Value == has || socket.Precedes(ifname) {
		return nil
	}
	return usage(c, "%s names the interface %s, and the daemon at %s, which %s names, has %s: unset one of them, or "+
		"name one by -i or --control", ifname.From, ifname.Value, socket.Value, socket.From, has)
}

// namedBy adds to an error about a daemon's socket what in the configuration names it.
func namedBy(from string, err error) error {
	if err == nil || from == "" {
		return err
	}
	what := "the socket"
	if errors.Is(err, xsk.ErrNoInterface) {
		what = "the interface"
	}
	return fmt.Errorf("%w (%s names %s: correct or unset it)", err, from, what)
}

// unclear makes an error in the use of a command of a choice that could not be made.
func unclear(c *cobra.Command, err error) error {
	if errors.Is(err, way.ErrUnclear) {
		return usage(c, "%v", err)
	}
	return err
}

// astray adds to the error of an interface that does not lead to a peer which one does.
func (f *linkFlags) astray(err error, to []wire.Addr) error {
	if !errors.Is(err, udpport.ErrNoRoute) { // others say which one
		return err
	}
	other := way.Instead(f.ifname, to[0])
	if other == "" {
		return err
	}
	return fmt.Errorf("%w: the route to %v is by %s: want -i %s, or no -i", err, to[0].IP, other, other)
}

// chosenFor adds to an error which interface was chosen, and why, unless it is the right
// one, as the peer has answered, or the command line is wrong.
func chosenFor(err error, chosen *way.Choice) error {
	if err == nil || chosen.Why == "" || errors.Is(err, xdpfab.ErrRefused) || exitCode(err) == exitUsage {
		return err
	}
	return fmt.Errorf("%w (%s was chosen by %s; -i names another interface)", err, chosen.Interface, chosen.Why)
}

// use opens the interface.
func (a *app) use(c *cobra.Command, f *linkFlags, attr xdpfab.DomainAttr, chosen *way.Choice) (*xdpfab.Domain,
	error) {
	socket, err := f.awaitDaemon(c.Context(), &attr, chosen.Control)
	if err != nil {
		return nil, err
	}
	direct := make(chan struct{})
	if socket != "" {
		go a.watchDaemon(c.Context(), socket, f.giveUp, direct)
	}
	dom, err := a.open(c.Context(), f.ifname, attr)
	if errors.Is(err, xsk.ErrNoInterface) && f.ifnameBy != "" {
		err = fmt.Errorf("%w (%s names it: correct or unset it)", err, f.ifnameBy)
	}
	if err != nil {
		return nil, unopened(a.besideDaemon(c.Context(), f, err))
	}
	if dom.Interface().Daemon == "" {
		close(direct)
	}
	if err := f.check(c, dom); err != nil {
		return nil, errors.Join(err, dom.CloseAll())
	}
	a.tellWay(f, dom, chosen)
	a.tellAbsent(f, dom, attr.Control)
	return dom, nil
}

// unopened marks the error of an interface that could not be opened: a daemon that was
// asked for and is not there does not answer, whichever way it was named. That does not
// matter where the interface cannot be used without one either.
func unopened(err error) error {
	for _, own := range []error{fs.ErrPermission, xdpfab.ErrBusy, xsk.ErrNoInterface, nic.ErrNotEthernet} {
		if errors.Is(err, own) {
			return interfaceError(err)
		}
	}
	if errors.Is(err, fi.ErrNoDaemon) {
		return &codeError{err, exitUnreachable}
	}
	return interfaceError(err)
}

// dial dials the first of the addresses that there is a way to. When it fails, the domain
// is closed.
func dial(c *cobra.Command, f *linkFlags, dom *xdpfab.Domain, to []wire.Addr) (*client, error) {
	// Finding the next hop takes time of its own. The domain notices when the peer is
	// silent; this limit is for a machine so busy that the domain notices too late.
	ctx, cancel := context.WithTimeoutCause(c.Context(), 2*f.giveUp+2*time.Second, xdpfab.ErrPeerSilent)
	defer cancel()
	for {
		addr := to[0].String()
		if err := diagnose.Unserved(ctx, dom, to[0]); err != nil {
			return nil, errors.Join(&codeError{err, exitUnreachable}, closeAll(c.Context(), dom))
		}
		trial := diagnose.Begin(c.Context(), dom, to[0], f.ifname, f.giveUp)
		p, err := dom.Dial(ctx, addr)
		err = noEndpoint(err)
		said := trial.Explain(err)
		told := said != err // as of an address of this node's
		if err = f.keyed(said); !f.mailbox && !(told && to[0].Endpoint == 0) {
			err = atEndpoint(err, to[0])
		}
		if !f.mailbox {
			err = notNetwork(f.atMailbox(ctx, dom, err, to[0]), to)
		}
		if err == nil {
			return &client{ctx: c.Context(), dom: dom, peer: p, addr: addr}, nil
		}
		if to = to[1:]; len(to) == 0 || !errors.Is(err, route.ErrNoRoute) {
			return nil, errors.Join(err, closeAll(c.Context(), dom))
		}
	}
}

// tellWay says on stderr what the user has not asked for, and with --verbose the rest.
func (a *app) tellWay(f *linkFlags, dom *xdpfab.Domain, chosen *way.Choice) {
	in := dom.Interface()
	switch {
	case in.NoXDP != "" && !f.verbose:
		fmt.Fprintln(a.err, "xdpfab: UDP sockets carry the frames: round trips take about twice as long as with "+
			"AF_XDP; -v says why")
	case in.NoXDP != "":
		fmt.Fprintln(a.err, tell.Fold(fmt.Sprintf("xdpfab: UDP sockets carry the frames: round trips take about "+
			"twice as long as with AF_XDP, which cannot be used (%s); --transport xdp fails instead",
			tell.Plain(errors.New(in.NoXDP)))))
	}
	if in.Beside != "" {
		fmt.Fprintf(a.err, "xdpfab: the peer may not be heard: %s\n", in.Beside)
	}
	if !f.verbose {
		return
	}
	why, daemon := "which -i or the configuration names", "no daemon"
	if chosen.Why != "" {
		why = "chosen by " + chosen.Why
	}
	if in.Daemon != "" {
		daemon = "the daemon at " + in.Daemon
	}
	fmt.Fprintf(a.err, "xdpfab: interface %s, %s; transport %s, through %s\n", in.Name, why, in.Transport, daemon)
}

// tellAbsent says on stderr that no daemon answered at the socket that the configuration
// names, and that the domain was opened without one.
func (a *app) tellAbsent(f *linkFlags, dom *xdpfab.Domain, socket string) {
	s, err := a.settings()
	if err != nil || socket == "" || dom.Interface().Daemon != "" {
		return
	}
	fmt.Fprintf(a.err, "xdpfab: no daemon answers at %s, which %s names: %s is used without one; start the daemon, "+
		"or correct the path\n", socket, s.Get(settings.Control).From, f.ifname)
}

// settings reads the configuration.
func (a *app) settings() (*settings.Settings, error) {
	env := a.env
	if env == nil {
		env = func(string) string { return "" }
	}
	for _, name := range settings.Misspelt(a.environ) {
		fmt.Fprintln(a.err, tell.Fold("xdpfab: nothing reads the environment variable "+name+
			"; `xdpfab config --help` lists those that are read"))
	}
	a.environ = nil // told once
	s, err := settings.Load(env, a.files)
	if err != nil {
		return nil, &codeError{err, exitUsage}
	}
	return s, nil
}

// userSettings has an app read the configuration of the user.
func (a *app) userSettings() {
	a.env, a.environ, a.files = os.Getenv, os.Environ(), settings.Files(os.Getenv)
}

func isAddress(text string) bool {
	_, err := wire.ParseAddr(text)
	return err == nil
}
