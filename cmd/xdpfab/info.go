// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/cmd/xdpfab/settings"
	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/kernel"
	"github.com/xdpfab/xdpfab/internal/nic"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// infoReport is the JSON output of info.
type infoReport struct {
	System     nic.System       `json:"system"`
	Interfaces []interfaceEntry `json:"interfaces"`
	Limits     limits           `json:"limits"`
	Operations []opEntry        `json:"operations"`
}

type interfaceEntry struct {
	nic.Interface
	Plan nic.Plan `json:"plan"`
	// MaxFrame is the longest frame of each encapsulation, in bytes; 0 where the MTU is
	// not suitable.
	MaxFrame map[string]int `json:"max_frame"`
	// NICRing is how many packets the NIC's own ring of each queue has room for, 0 if the
	// driver does not tell; NICRingMax, how many it could have.
	NICRing    uint32 `json:"nic_ring"`
	NICRingMax uint32 `json:"nic_ring_max"`
	// Probed is what binding the interface gave; nil unless it was asked for.
	Probed *probed `json:"probed,omitempty"`
	// Daemon serves the interface: programs go through it, whatever Plan says; nil if
	// none answers.
	Daemon *servedBy `json:"daemon,omitempty"`
	// Silent means that a daemon which may serve the interface has not answered, and
	// the remedy.
	Silent  string  `json:"daemon_silent,omitempty"`
	Sockets sockets `json:"udp_sockets"`
	// Resident is "yes" if there can be resident regions, or "no: " and the reason.
	Resident string `json:"resident"`
}

// limits are those of the protocol, whatever the interface.
type limits struct {
	Window        int    `json:"window"`        // request frames in flight for each session
	InjectBytes   int    `json:"inject_bytes"`  // operands whose buffers are free at once
	CallElements  uint64 `json:"call_elements"` // elements of one call, which the library segments
	RegionName    int    `json:"region_name"`   // bytes
	MinFrameBytes int    `json:"min_mtu_bytes"` // least MTU
	Datatypes     int    `json:"datatypes"`
}

// opEntry lists the forms in which an operation exists for a datatype.
type opEntry struct {
	Op       string   `json:"op"`
	Datatype string   `json:"datatype"`
	Size     int      `json:"size"` // bytes
	Forms    []string `json:"forms"`
}

const infoHelp = `info shows an interface, or all of them if none is named: the mode in which
xdpfab would use it, the limits of the kernel and of the caller's privileges, and
the operations for each datatype. It attaches nothing, changes nothing and needs
no privilege. It leaves out facts that this user may not read. It asks the daemons of
all interfaces at the same time. If one does not answer within 5 s (10 s with --fabric,
30 s with --probe), info names it and the remedy.

A queue does not always get the mode that its driver promises. With --probe, info
opens the named interface for an instant and shows the result: native or generic
XDP, zero-copy or copy, packet buffers, and the time that it took. A probe needs the
privileges of any other use, and a NIC may lose its carrier for a second or more. It
leaves an interface with an XDP program alone; if the program is xdpfabd's, info asks
the daemon instead. With --advise, the advice follows the result of the probe.

With --advise it compares the machine, and the interface if one is named, with
docs/tuning.md instead: queues, interrupts, cores, power, memory, kernel. A line
for each check says ok, advice (with the command that follows it), not applicable
or unknown (with the reason). It only reads; the exit code is 0 whatever it finds.
Run it as the user and in the cgroup that xdpfab will run in.

With --fabric it lists the results of GetInfo, as fi_info does for
libfabric: one entry for each interface and encapsulation, with every attribute
if an interface is named.`

// infoFlags are the flags of info.
type infoFlags struct {
	operations, advises, fabric, probe bool
	socket                             string
}

func (a *app) infoCmd() *cobra.Command {
	var f infoFlags
	c := &cobra.Command{
		Use:   "info [INTERFACE]",
		Short: "Show what an interface, the kernel and xdpfab can do",
		Long:  infoHelp,
		Example: `  xdpfab info
  xdpfab info eth0
  xdpfab info --advise eth0
  xdpfab info --probe eth0
  xdpfab info --fabric eth0
  xdpfab info eth0 --json | jq '.interfaces[0].plan'`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage(c, "unexpected argument %q: want one interface, or none for all", args[1])
			}
			if len(args) == 1 && isAddress(args[0]) {
				return noInterface(c, args[0])
			}
			return nil
		},
		ValidArgsFunction: completeInterfaces,
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.contradict(c, args); err != nil {
				return err
			}
			return a.info(c.Context(), &f, args)
		},
	}
	a.jsonFlag(c)
	c.Flags().BoolVar(&f.advises, "advise", false, "compare the machine with docs/tuning.md")
	c.Flags().BoolVar(&f.probe, "probe", false,
		"open the interface for an instant, to show the mode that it really gets")
	c.Flags().BoolVar(&f.fabric, "fabric", false, "list interfaces and encapsulations with libfabric's attributes")
	c.Flags().StringVar(&f.socket, "control", "",
		"control socket of the daemon that may serve the interface; default: that of the configuration")
	c.Flags().BoolVar(&f.operations, "operations", false, "print the table of operations, alone without INTERFACE")
	return c
}

// contradict refuses flags that do not go together.
func (f *infoFlags) contradict(c *cobra.Command, args []string) error {
	switch {
	case f.advises && f.operations, f.advises && f.fabric, f.operations && f.fabric:
		return usage(c, "--advise, --fabric and --operations exclude each other: want one of them")
	case f.advises && !f.probe && f.socket != "":
		return usage(c, "--control: --advise asks no daemon, unless it is with --probe")
	case f.probe && (f.fabric || f.operations):
		return usage(c, "%s with --probe: want one of them", ifThen(f.fabric, "--fabric")+
			ifThen(f.operations, "--operations"))
	case f.probe && len(args) != 1:
		return usage(c, "--probe: want an interface to probe, as in `%s --probe eth0`", c.CommandPath())
	}
	return nil
}

// info prints what the flags ask for.
func (a *app) info(ctx context.Context, f *infoFlags, args []string) error {
	s, err := a.settings()
	if err != nil {
		return err
	}
	if f.socket != "" && !f.probe { // a probe has an advice of its own
		d, err := control.Dial(f.socket)
		if err != nil {
			return err
		}
		defer d.Close()
	}
	socket := cmp.Or(f.socket, s.Get(settings.Control).Value)
	var found *probed
	if f.probe {
		if found, err = probeInterface(ctx, args[0], socket); err != nil {
			return err
		}
	}
	switch {
	case f.operations && len(args) == 0 && !a.json:
		return a.print(nil, operationsText)
	case f.fabric:
		d, err := discover(ctx, args, socket)
		if err != nil {
			return err
		}
		return a.print(d, func(w io.Writer) { d.text(w, len(args) == 1) })
	case f.advises:
		r, err := advice(args, found)
		if err != nil {
			return err
		}
		return a.print(r, r.text)
	}
	r, err := report(ctx, args, socket)
	if err != nil {
		return err
	}
	if found != nil {
		r.Interfaces[0].Probed = found
	}
	return a.print(r, func(w io.Writer) { r.text(w, len(args) == 1 || f.operations) })
}

func report(ctx context.Context, args []string, socket string) (r infoReport, err error) {
	if r.System, err = nic.Machine(); err != nil {
		return r, err
	}
	var list []nic.Interface
	if len(args) == 0 {
		list, err = nic.List()
	} else {
		list = make([]nic.Interface, 1)
		list[0], err = nic.Inspect(args[0])
	}
	if err != nil {
		return r, interfaceError(err)
	}
	daemons := daemonsOf(ctx, list, socket)
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	for n, i := range list {
		daemon := daemons[n].by(i.Name, socket)
		e := interfaceEntry{
			Interface: i, Plan: r.System.Plan(&i, nic.Want{VLAN: daemon.tags()}), MaxFrame: map[string]int{},
			Daemon: daemon, Silent: daemons[n].silence(),
			Resident: canReside(r.System.Kernel, i.Driver), Sockets: socketsOf(i.Name),
		}
		if s := nic.SettingsOf(i.Index); s.RingErr == nil {
			e.NICRing, e.NICRingMax = s.RXRing, s.RXRingMax
		}
		// The IP and UDP headers count towards the MTU; the Ethernet header does not.
		for kind := range wire.NumKinds {
			e.MaxFrame[kind.String()] = max(min(i.MTU, wire.MaxFrame)-kind.Overhead(), 0)
		}
		r.Interfaces = append(r.Interfaces, e)
	}
	r.Limits = limits{
		Window: session.MaxWindow, InjectBytes: engine.InlineLen, CallElements: math.MaxUint32,
		RegionName: mr.MaxName, MinFrameBytes: wire.MinMTU, Datatypes: atomic.NumDatatypes,
	}
	for op := range atomic.Ops() {
		for dt := range atomic.Datatype(atomic.NumDatatypes) {
			if f := formsOf(op, dt); len(f) > 0 {
				e := opEntry{Op: op.String(), Datatype: dt.String(), Size: dt.Size(), Forms: f}
				r.Operations = append(r.Operations, e)
			}
		}
	}
	return r, nil
}

// canReside reports whether the XDP program of an interface can execute operations.
func canReside(release, driver string) string {
	switch {
	case kernel.Lacks(release, kernel.Resident):
		return fmt.Sprintf("no: they take Linux %s", kernel.Resident)
	case driver == "veth":
		return "yes; the XDP program's answers arrive if the other end of the veth has an XDP program, too: " +
			"otherwise the daemon sends them"
	}
	return "yes"
}

func (r *infoReport) text(w io.Writer, full bool) {
	if full && len(r.Interfaces) == 1 {
		r.Interfaces[0].text(w)
	} else {
		r.summary(w)
	}
	r.systemText(w)
	l := r.Limits
	fmt.Fprintf(w, "\nlimits\twindow %d frames, inject %d bytes, %d elements a call, region names of %d bytes\n",
		l.Window, l.InjectBytes, l.CallElements, l.RegionName)
	if full {
		fmt.Fprintln(w)
		operationsText(w)
	}
}

// summary prints one line for each interface.
func (r *infoReport) summary(w io.Writer) {
	fmt.Fprintln(w, "INTERFACE\tDRIVER\tMTU\tQUEUES\tMAC\tXDP\tCOPY\tUSABLE")
	for _, i := range r.Interfaces {
		usable := "yes"
		switch {
		case i.Daemon != nil:
			usable = fmt.Sprintf("through xdpfabd, process %d", i.Daemon.PID)
		case i.Silent != "":
			usable = "unknown: " + i.Silent
		case !i.Plan.Usable:
			usable = "no: " + strings.Join(i.Plan.Problems, "; ")
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\n", i.Name, i.Driver, i.MTU, i.RXQueues, orDash(i.MAC),
			i.Plan.XDP, i.Plan.Copy, usable)
	}
}

func (i *interfaceEntry) text(w io.Writer) {
	features := strings.Join(i.Features, " ")
	switch {
	case !i.FeaturesKnown:
		features = "unknown (kernel < 6.3)"
	case features == "":
		features = "none"
	}
	attached := "nothing"
	if x := i.Attached; x != nil {
		attached = strings.TrimSpace(fmt.Sprintf("program %d (%s) %s", x.ID, x.Mode, x.Name))
	}
	state := map[bool]string{true: "up", false: "down"}[i.Up]
	fmt.Fprintf(w, "interface\t%s, index %d, %s\n", i.Name, i.Index, state)
	fmt.Fprintf(w, "driver\t%s\n", i.Driver)
	limitsText(w, i.Driver)
	fmt.Fprintf(w, "MTU\t%d bytes: frames of %d (Ethernet), %d (UDP/IPv4), %d (UDP/IPv6)\n",
		i.MTU, i.MaxFrame["ethernet"], i.MaxFrame["udp4"], i.MaxFrame["udp6"])
	fmt.Fprintf(w, "MAC\t%s\n", orDash(i.MAC))
	fmt.Fprintf(w, "addresses\t%s\n", orDash(strings.Join(i.Addresses, " ")))
	i.stackText(w)
	fmt.Fprintf(w, "802.1Q tags\t%s\n", i.Tags(i.Daemon.tags()))
	fmt.Fprintf(w, "queues\t%d receive, %d transmit\n", i.RXQueues, i.TXQueues)
	fmt.Fprintf(w, "packet buffers\t%s\n", i.buffering())
	fmt.Fprintf(w, "XDP features\t%s\n", features)
	fmt.Fprintf(w, "resident regions\t%s\n", i.Resident)
	fmt.Fprintf(w, "XDP attached\t%s\n", attached)
	fmt.Fprintf(w, "UDP sockets\t%s\n", i.Sockets)
	if d := i.Daemon; d != nil {
		fmt.Fprintf(w, "served by\txdpfabd, process %d%s: programs go through %s, %d do now\n", d.PID, d.how(),
			d.Control, d.Guests)
		if d.Steering != nil {
			fmt.Fprintf(w, "steering\t%v\n", d.Steering)
		}
	} else if i.Silent != "" {
		fmt.Fprintf(w, "served by\tnobody that answers: %s\n", i.Silent)
	} else if i.Plan.Usable {
		fmt.Fprintf(w, "xdpfab would use\t%s, %s\n", i.Plan.How(), plural(i.Plan.Queues, "queue"))
	} else {
		fmt.Fprintf(w, "xdpfab can not use it\t%s\n", strings.Join(i.Plan.Problems, "; "))
	}
	if i.Probed != nil {
		i.Probed.text(w)
	}
	for _, n := range i.Plan.Notes {
		fmt.Fprintf(w, "note\t%s\n", n)
	}
}

// stackText names the interfaces above and below, and the addresses that are served.
func (i *interfaceEntry) stackText(w io.Writer) {
	for _, a := range i.Above {
		state := "its addresses are served here, too"
		switch {
		case a.Served && a.Kind != "vrf" && a.MAC != i.MAC:
			state += ", and its MAC address " + a.MAC
		case !a.Served:
			state = fmt.Sprintf("its addresses are not served here: packets to them come to %s; `ip link set dev %s "+
				"address %s` changes that", a.MAC, a.Name, i.MAC)
		}
		fmt.Fprintf(w, "belongs to\t%s (%s) %s: %s\n", a.Name, a.Kind, strings.Join(a.Addresses, " "), state)
	}
	for _, b := range i.Below {
		fmt.Fprintf(w, "consists of\t%s (%s)%s\n", b.Name, b.Driver, ifThen(b.Active, ", active"))
	}
	served := strings.Join(i.Served, " ")
	if served == "" {
		served = "none: no peer reaches it over UDP"
	}
	fmt.Fprintf(w, "served over UDP\t%s\n", served)
}

func (r *infoReport) systemText(w io.Writer) {
	fmt.Fprintf(w, "\nkernel\t%s\n", r.System.Kernel)
	for _, f := range r.System.Features {
		fmt.Fprintf(w, "  %s\t%s (Linux %s%s)\n", f.Name, yesNo(f.Present), f.Since, ifThen(f.Required, ", required"))
	}
	fmt.Fprintln(w, "privileges\t")
	for _, c := range r.System.Capabilities {
		fmt.Fprintf(w, "  %s\t%s (%s%s)\n", c.Name, yesNo(c.Have), c.For, ifThen(c.Required, ", required"))
	}
	memlock := "unlimited"
	if !r.System.Unlimited() {
		memlock = fmt.Sprintf("%d KiB", r.System.Memlock>>10)
	}
	fmt.Fprintf(w, "  memlock limit\t%s\n", memlock)
}

// completeInterfaces offers the names of interfaces to the shell.
func completeInterfaces(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	list, _ := nic.List()
	var names []string
	for _, i := range list {
		names = append(names, i.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
