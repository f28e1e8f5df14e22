// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/bpf"
	"github.com/xdpfab/xdpfab/xsk"
)

// Where the program goes, native or generic, is decided here, before the driver is asked:
// drivers take programs whose sockets then receive nothing.

// lacks returns why a native program would be of no use, for all that is known; nil if it
// would be, or if that is unknown.
func (i *Interface) lacks() error {
	limits, known := LimitsOf(i.Driver)
	off := i.inTheWay(&limits)
	switch {
	case i.Kind == "bond" || i.Driver == netvsc && len(i.Below) > 0:
		return fmt.Errorf("%s: %w: it would run on the interfaces below, where its sockets receive nothing; %s",
			i.Name, bpf.ErrNoNative, i.where())
	case i.Kind == "team":
		return fmt.Errorf("%s: %w; %s", i.Name, bpf.ErrNoNative, i.where())
	case i.FeaturesKnown && i.features&XDPBasic == 0 && known && limits.XDP == hasNative && off != "":
		return fmt.Errorf("%s: the driver %s has no native XDP while %s on: `ethtool -K %s %s`: %w", i.Name, i.Driver,
			onText(off), i.Name, offText(off), unix.EOPNOTSUPP)
	case i.Driver == "veth" && i.FeaturesKnown && i.features&XDPBasic == 0: // the kernel takes it away then
		return fmt.Errorf("%s: %w as it is set up now (veth): its other end sends with more queues than the %d that "+
			"it receives with: `%s` there, with the name that it has there, or give this one more", i.Name,
			bpf.ErrNoNative, i.RXQueues, i.SetQueues(i.RXQueues))
	case i.FeaturesKnown && i.features&XDPBasic == 0, !i.FeaturesKnown && known && limits.XDP == hasGeneric:
		return fmt.Errorf("%s: %w (%s)", i.Name, bpf.ErrNoNative, i.Driver)
	case i.FeaturesKnown && i.features&XDPRedirect == 0, !i.FeaturesKnown && known && !limits.Redirect:
		return fmt.Errorf("%s: the driver %s takes XDP programs, but cannot redirect frames to sockets: %w", i.Name,
			i.Driver, bpf.ErrNoNative)
	}
	return nil
}

// hasNative reports whether the driver is known to have native XDP, be it of use or not.
func (i *Interface) hasNative() bool {
	limits, known := LimitsOf(i.Driver)
	return i.features&XDPBasic != 0 || !i.FeaturesKnown && known && limits.XDP == hasNative
}

// choose decides where the program goes. A setting in the way of native XDP is refused,
// even if any mode is wanted: the remedy is a command.
func (p *Plan) choose(i *Interface, w *Want) error {
	lack := i.lacks()
	none := errors.Is(lack, bpf.ErrNoNative)
	switch {
	case w.XDP == bpf.Generic:
		p.Attach, p.Reason = bpf.Generic, "it was forced"
	case none && (w.XDP == bpf.Any || w.XDP == bpf.Auto && i.aggregates()):
		p.Attach, p.Reason = bpf.Generic, lack.Error()
	case none:
		return fmt.Errorf("%w; or generic XDP, slower: --xdp generic, DomainAttr.XDP", lack)
	case lack == nil && w.XDP == bpf.Any && !i.FeaturesKnown && !i.hasNative():
		p.Attach = bpf.Any
		return nil
	default:
		return lack
	}
	if p.note("generic XDP, slower than native: %s", p.Reason); w.Copy == xsk.ZeroCopy {
		return fmt.Errorf("%s: zero-copy with generic XDP, which copies: want --copy auto", i.Name)
	}
	w.Copy = xsk.Copy
	return nil
}

// Keeps returns the mode in which a program takes the place of the one that is attached,
// in one step: that one's, whichever is wanted. Another mode that is forced is refused.
func (i *Interface) Keeps(want bpf.Mode) (bpf.Mode, error) {
	if i.Attached == nil { // nothing that would set the mode
		return want, nil
	}
	has := map[string]bpf.Mode{bpf.Native.String(): bpf.Native, bpf.Generic.String(): bpf.Generic}[i.Attached.Mode]
	if forced := want == bpf.Native || want == bpf.Generic; forced && want != has {
		return want, fmt.Errorf("%s: %v XDP is wanted, and the program that is there runs in %s mode, which the "+
			"one in its place keeps: want xdp auto, or stop that process instead of replacing it, and remove what it "+
			"has left", i.Name, want, i.Attached.Mode)
	}
	if has == bpf.Auto {
		return want, nil
	}
	return has, nil
}

// Refused adds to an error of attaching the program what stands in the way, for all that
// is known of the driver, and the command that mends it.
func (p *Plan) Refused(err error) error {
	i, r := &p.of, new(bpf.Refusal)
	if !errors.As(err, &r) || r.Mode != bpf.Native {
		return Taken(i.Name, err)
	}
	limits, _ := LimitsOf(i.Driver)
	remedies := i.remedies(&limits)
	// What the driver has, and refuses in its present settings, is not lacking.
	if r.NoNative && i.hasNative() {
		told := *r
		told.NoNative = false
		r, err = &told, &told
	}
	if r.Said == "" && !r.NoNative {
		remedies = append(remedies, "the kernel's log may say more: dmesg")
	}
	if len(remedies) == 0 {
		return err
	}
	return fmt.Errorf("%w; for %s with the driver %s: %s", err, i.Name, i.Driver, strings.Join(remedies, "; "))
}

// remedies lists what the table knows to keep native XDP away: first what is seen to be
// so, with commands, and without any such thing what cannot be seen from here.
func (i *Interface) remedies(l *Limits) (list []string) {
	needs := i.InTheWay()
	if len(needs) == 0 {
		for _, n := range l.Needs {
			needs = append(needs, Need{"it needs " + n.What, strings.ReplaceAll(n.Command, "IFACE", i.Name)})
		}
	}
	for _, n := range needs {
		if n.Command != "" {
			n.What += fmt.Sprintf(": `%s`", n.Command)
		}
		list = append(list, n.What)
	}
	return list
}

// InTheWay lists the settings of the interface that keep native XDP away, by the row of
// its driver, each with the command that changes it.
func (i *Interface) InTheWay() (list []Need) {
	l, _ := LimitsOf(i.Driver)
	add := func(command, format string, args ...any) {
		list = append(list, Need{fmt.Sprintf(format, args...), command})
	}
	most := l.MTU
	if i.several { // above it the program is one that takes packets in several buffers
		most = l.FragsMTU
	}
	if most != 0 && i.MTU > most {
		add(fmt.Sprintf("ip link set dev %s mtu %d", i.Name, most), "the MTU is %d, at most %d", i.MTU, most)
	}
	if off := i.inTheWay(&l); off != "" {
		add(fmt.Sprintf("ethtool -K %s %s", i.Name, offText(off)), "%s on", onText(off))
	}
	c := i.channels
	half, both := max(c.most/2, 1), min(i.RXQueues, i.TXQueues)
	switch {
	case c.most == 0:
	case l.Channels == "combined" && c.apart:
		add(fmt.Sprintf("ethtool -L %s rx 0 tx 0 combined %d", i.Name, i.RXQueues), "its channels have to be combined")
	case strings.HasSuffix(l.Channels, "half") && i.RXQueues > half:
		add(fmt.Sprintf("ethtool -L %s combined %d", i.Name, half),
			"it has %d channels in use, at most %d, half of all", i.RXQueues, half)
	case strings.HasPrefix(l.Channels, "equal") && i.RXQueues != i.TXQueues:
		add(fmt.Sprintf("ethtool -L %s rx %d tx %d", i.Name, both, both),
			"it needs as many queues to receive as to send")
	}
	return list
}

// ethtoolNames are ethtool's names of offloads that differ from the kernel's.
var ethtoolNames = map[string]string{"rx-lro": "lro"}

// inTheWay lists the offloads that are on, and keep a native program away; empty for
// none.
func (i *Interface) inTheWay(l *Limits) string {
	var on []string
	for _, name := range l.Off {
		if !i.offloads[name] {
			continue
		}
		if short := ethtoolNames[name]; short != "" {
			name = short
		}
		on = append(on, name)
	}
	return strings.Join(on, " ")
}

func onText(off string) string {
	if strings.Contains(off, " ") {
		return strings.ReplaceAll(off, " ", " and ") + " are"
	}
	return off + " is"
}

func offText(off string) string { return strings.ReplaceAll(off, " ", " off ") + " off" }
