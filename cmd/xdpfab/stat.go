// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/xdpfab/xdpfab/cmd/xdpfab/settings"
	"github.com/xdpfab/xdpfab/internal/control"
	nodes "github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/tell"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

type statFlags struct {
	daemonFlags
	watch time.Duration
	count int
	all   bool
}

func (a *app) statCmd() *cobra.Command {
	var f statFlags
	c := &cobra.Command{
		Use:   "stat",
		Short: "Show the state and the counters of a daemon",
		Long: `stat asks a daemon of this machine, by its control socket, for its regions, its
guests (the programs that use the interface through it) and its counters.
Without --control and --interface it asks the daemon that the configuration names
(xdpfab config), or the only running one. (key) after the rights to a region means that
peers have to prove an authorization key.

With --watch, stat asks again at each interval and shows rates per second. On a terminal
it updates one page; elsewhere it prints a line for each counter that has changed.`,
		Example: `  xdpfab stat
  xdpfab stat --interface eth0 --watch 1s
  xdpfab stat --control /run/xdpfabd/eth0.sock --json`,
		Args: unknownCommand,
		RunE: func(c *cobra.Command, _ []string) error { return a.stat(c, &f) },
	}
	a.jsonFlag(c)
	f.register(c)
	fs := c.Flags()
	fs.DurationVar(&f.watch, "watch", 0, "repeat at this interval, with rates")
	fs.IntVar(&f.count, "count", 0, "with --watch, number of requests; 0 until interrupted")
	fs.BoolVar(&f.all, "all", false, "show counters that are zero, too")
	c.AddCommand(a.statSessionsCmd(), a.statPeersCmd(), a.statRegionsCmd(), a.statGuestsCmd())
	return c
}

// daemonFlags choose a daemon of this machine.
type daemonFlags struct {
	path, ifname string
	timeout      time.Duration
	changes      bool // the command is a change, which may take longer than an answer of a peer
}

func (f *daemonFlags) register(c *cobra.Command) {
	c.Flags().DurationVar(&f.timeout, "timeout", 0,
		"time that the daemon may take for an answer; 0 for 30s, or 2m to create or remove a region")
	c.Flags().StringVar(&f.path, "control", "", "path of the daemon's control socket")
	c.Flags().StringVarP(&f.ifname, "interface", "i", "", "interface of the daemon, instead of --control")
	_ = c.RegisterFlagCompletionFunc("interface", completeInterfaces)
}

// dial finds the daemon: by the flags, by the configuration, or the only one. A socket
// that nobody named has to be that of a daemon of this network namespace.
func (f *daemonFlags) dial(a *app, c *cobra.Command) (*control.Client, error) {
	named, from, err := f.find(a, c)
	if err != nil {
		return nil, withLeft(err)
	}
	d, err := control.Dial(f.path)
	if err != nil {
		return nil, namedBy(from, f.noInterface(withLeft(err)))
	}
	d.Patience = f.timeout
	switch {
	case named && from != "":
		err = a.contradicted(c, d)
	case !named:
		err = nearby(c.Context(), d, f)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// contradicted refuses a daemon that the configuration names together with another
// interface than it has. Whether the daemon answers, the command itself finds out.
func (a *app) contradicted(c *cobra.Command, d *control.Client) error {
	s, err := a.settings()
	if err != nil || s.Get(settings.Interface).Value == "" {
		return err
	}
	status, err := d.Status(c.Context())
	if err != nil {
		return nil
	}
	return contradiction(c, s, status.Interface.Name)
}

// find completes the path of the socket, and the time limit. It reports whether anybody
// named the socket itself, and what in the configuration the path comes from.
func (f *daemonFlags) find(a *app, c *cobra.Command) (named bool, from string, err error) {
	s, err := a.settings()
	if err != nil {
		return false, "", err
	}
	if v := s.Get(settings.Timeout); v.Value != "" && !f.changes && !c.Flags().Changed("timeout") {
		f.timeout, _ = time.ParseDuration(v.Value) // which was checked
	}
	ifname, socket := s.Get(settings.Interface), s.Get(settings.Control)
	switch {
	case f.timeout < 0:
		return false, "", negative(c, "timeout")
	case f.path != "" && f.ifname != "":
		return false, "", usage(c, "--control with --interface: want one of them")
	case f.path != "":
		return true, "", nil
	case f.ifname != "":
		f.path = control.DefaultPath(f.ifname)
	case socket.Value != "" && !ifname.Precedes(socket):
		f.path = socket.Value
		return true, socket.From, nil
	case ifname.Value != "":
		f.ifname = ifname.Value
		f.path, from = control.DefaultPath(f.ifname), ifname.From
	default:
		f.path, err = onlyDaemon(filepath.Dir(control.DefaultPath("any")))
	}
	return false, from, err
}

// noInterface adds to the error of a daemon that there is not which interfaces daemons
// serve, and says so if there is no such interface either.
func (f *daemonFlags) noInterface(err error) error {
	if !errors.Is(err, control.ErrNoDaemon) {
		return err
	}
	pattern := control.DefaultPath("*")
	if _, lack := net.InterfaceByName(f.ifname); lack != nil && f.ifname != "" {
		return absent(f.ifname, pattern)
	}
	if r, is := control.FindRenamed(context.Background(), f.ifname, pattern); is {
		return fmt.Errorf("%w; %s", err, r.Asked())
	}
	if served := servedNames(pattern); len(served) > 0 {
		return fmt.Errorf("%w; daemons serve %s: `xdpfab stat -i %s` asks one", err, tell.List(served, mostServed),
			served[0])
	}
	return err
}

// nearby refuses the daemon of another network namespace: namespaces share the directory
// of the sockets, in which nobody named that one.
func nearby(ctx context.Context, d *control.Client, f *daemonFlags) error {
	s, err := d.Status(ctx)
	if err != nil || !s.Elsewhere() {
		return err
	}
	what, own := "an interface", exampleInterface()
	if f.ifname != "" {
		what, own = f.ifname, f.ifname
	}
	return &codeError{fmt.Errorf("no daemon serves %s of this network namespace: start one here, as in `xdpfabd -i %s "+
		"--region counters=64KiB`; process %d, which has %s, serves the %s of another network namespace: "+
		"--control %s asks it", what, own, s.PID, f.path, s.Interface.Name, f.path), exitUnreachable}
}

// exampleInterface is one that a daemon could serve here.
func exampleInterface() string {
	all, _ := net.Interfaces()
	for _, i := range all {
		if i.Flags&net.FlagUp != 0 && len(i.HardwareAddr) == len(wire.MAC{}) {
			return i.Name
		}
	}
	return "eth0"
}

// call has a daemon do what a verb says, and prints the result.
func call[T any](a *app, c *cobra.Command, f *daemonFlags, verb string, arguments any, text func(io.Writer, T)) error {
	d, err := f.dial(a, c)
	if err != nil {
		return err
	}
	defer d.Close()
	var result T
	if err := d.Call(c.Context(), verb, arguments, &result); err != nil {
		return err
	}
	a.ran = verb != "kept"
	return a.print(result, func(w io.Writer) { text(w, result) })
}

// statReport is a daemon's state as JSON, with rates if an earlier state is known.
type statReport struct {
	control.Status
	Rates map[string]float64 `json:"rates,omitempty"` // events per second since the last one
}

func (a *app) stat(c *cobra.Command, f *statFlags) (err error) {
	if err := negative(c, "watch", "count"); err != nil {
		return err
	}
	if f.count > 0 && f.watch == 0 {
		return usage(c, "--count %d: want --watch, whose requests it counts", f.count)
	}
	d, err := f.dial(a, c)
	if err != nil {
		return err
	}
	defer d.Close()
	defer a.whileRead()()
	show, end := a.statView(f)
	defer func() { err = errors.Join(err, end()) }()
	var last statReport
	for n := 1; ; n++ {
		r, err := ask(c.Context(), d, last)
		if err != nil {
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		}
		if err := errors.Join(show(&r), a.flush()); err != nil {
			return err
		}
		if f.watch == 0 || n == f.count {
			return nil
		}
		last = r
		select {
		case <-c.Context().Done():
			return nil
		case <-time.After(f.watch):
		}
	}
}

// ask gets a status, and the rates since the previous one.
func ask(ctx context.Context, d *control.Client, last statReport) (r statReport, err error) {
	if r.Status, err = d.Status(ctx); err != nil || last.PID == 0 {
		return r, err
	}
	elapsed := r.UptimeSeconds - last.UptimeSeconds
	if r.PID != last.PID || elapsed <= 0 {
		return r, nil // another daemon's counters began anew
	}
	r.Rates = make(map[string]float64)
	for name, v := range r.Counters {
		r.Rates[name] = float64(v-last.Counters[name]) / elapsed
	}
	return r, nil
}

// onlyDaemon finds the one control socket of a directory: of several, the one that has a
// daemon of this network namespace. Daemons that were killed leave theirs.
func onlyDaemon(dir string) (string, error) {
	found, _ := filepath.Glob(filepath.Join(dir, "*.sock"))
	if len(found) > 1 {
		left := len(found)
		if found = slices.DeleteFunc(found, dead); len(found) == 0 {
			return "", fmt.Errorf("%w: the daemons that made the %d sockets in %s have ended: start xdpfabd",
				control.ErrNoDaemon, left, dir)
		}
		if near := slices.DeleteFunc(slices.Clone(found), unserved); len(near) > 0 {
			found = near
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		if _, err := os.Stat(dir); errors.Is(err, os.ErrPermission) {
			return "", err
		}
		return "", control.NoneIn(dir)
	}
	return "",
		&codeError{fmt.Errorf("several daemons: choose one with --control %s", strings.Join(found, " or ")), exitUsage}
}

// dead reports whether the daemon that made a control socket has ended.
func dead(path string) bool {
	d, err := control.Dial(path)
	if err == nil {
		_ = d.Close()
	}
	return errors.Is(err, control.ErrNoDaemon)
}

// unserved reports whether a control socket has no daemon, or one that is known to be in
// another network namespace.
func unserved(path string) bool {
	d, err := control.Dial(path)
	if err != nil {
		return errors.Is(err, control.ErrNoDaemon)
	}
	defer d.Close()
	return d.Elsewhere()
}

func (r *statReport) text(w io.Writer, all bool) {
	i := r.Interface
	fmt.Fprintf(w, "daemon\t%s, pid %d, up %v\n", r.Version, r.PID,
		(time.Duration(r.UptimeSeconds) * time.Second).String())
	fmt.Fprintf(w, "interface\t%s (%s), MTU %d, %s, %s progress\n", i.Name, i.Driver, i.MTU, carrier(&i), r.Progress)
	fmt.Fprintf(w, "address\t%s\n", r.Address)
	if r.VLAN != "" {
		fmt.Fprintf(w, "802.1Q tags\t%s\n", r.VLAN)
	}
	if x := r.Steering; x != nil {
		fmt.Fprintf(w, "steering\t%v\n", x)
	}
	if len(r.Regions) > 0 {
		fmt.Fprintln(w, "\nREGION\tKEY\tBYTES\tACCESS\tBACKING\tPAGES")
	}
	for _, e := range r.Regions {
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\n", orDash(e.Name), e.Key, e.Size, accessOf(e),
			e.Backing, e.Pages)
	}
	if len(r.Guests) > 0 {
		fmt.Fprintln(w, "\nGUEST\tUSER\tENDPOINTS\tSERVING\tPEERS\tREGIONS\tBYTES\tTAKEN\tREFUSED")
	}
	for _, g := range r.Guests {
		fmt.Fprintf(w, "%d\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", g.PID, cmp.Or(g.User, strconv.Itoa(int(g.UID))),
			g.Endpoints, g.Serving, g.Peers, g.Regions, g.Memory, g.Taken, g.Refused)
	}
	printLent(w, r.Lent)
	if len(r.Kept) > 0 {
		fmt.Fprintln(w)
		printKept(w, r.Kept)
	}
	fmt.Fprintf(w, "\nCOUNTER\tTOTAL%s\n", ifThen(r.Rates != nil, "\tPER SECOND"))
	ofProgram := false
	for _, name := range slices.Sorted(maps.Keys(r.Counters)) {
		if r.Counters[name] == 0 && !all {
			continue
		}
		fmt.Fprintf(w, "%s\t%d", name, r.Counters[name])
		if r.Rates != nil {
			fmt.Fprintf(w, "\t%.0f", r.Rates[name])
		}
		fmt.Fprintln(w)
		ofProgram = ofProgram || strings.HasPrefix(name, "xdp_")
	}
	if ofProgram {
		fmt.Fprintln(w, "\nxdp_… count since the XDP program was loaded, the others since this daemon began")
	}
}

// carrier is what carries the frames of an interface, for people.
func carrier(i *nodes.InterfaceInfo) string {
	if i.Transport == fi.TransportUDP.String() {
		return "UDP sockets"
	}
	return fmt.Sprintf("%d queue%s, %s XDP, %s", i.Queues, ifThen(i.Queues != 1, "s"), i.XDP, i.Copy)
}
