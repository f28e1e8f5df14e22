// SPDX-License-Identifier: Apache-2.0

//go:build linux

package diagnose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"strings"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/nic"
	"github.com/xdpfab/xdpfab/internal/tell"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// The steps on this node.

func (d *diagnosis) lookAtInterface(context.Context) Step {
	i, err := nic.Inspect(d.Interface)
	if err != nil {
		d.shut = "the interface is not in this network namespace"
		return failed(tell.Plain(err), "name one that `ip link` lists")
	}
	d.nic, d.known = i, true
	text := fmt.Sprintf("%s: driver %s, MTU %d, %s", i.Name, i.Driver, i.MTU, macOf(i.MAC))
	switch carrier, _ := os.ReadFile("/sys/class/net/" + i.Name + "/carrier"); {
	case !i.Up:
		d.shut = "the interface is down"
		return failed(text+", down", "ip link set dev "+i.Name+" up")
	case strings.TrimSpace(string(carrier)) == "0":
		d.shut = "the interface has no carrier"
		return failed(text+", no carrier", "look at the cable, or at the other end of the link: it has to be up, too")
	}
	if a := i.Attached; a != nil {
		text += fmt.Sprintf(", %s XDP program %s", a.Mode, cmp.Or(a.Name, fmt.Sprint(a.ID)))
	}
	return ok(text + ", up")
}

func (d *diagnosis) lookAtDaemon(ctx context.Context) Step {
	if d.Attr.Attach == fi.AttachNever {
		return leftOut("--direct: no daemon is looked for")
	}
	named := cmp.Or(d.Control, os.Getenv(fi.ControlEnv))
	path := cmp.Or(named, control.DefaultPath(d.Interface))
	c, err := control.Dial(path)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return doubtful(fmt.Sprintf("a daemon may be at %s, which this user may not use", path),
			"ask its administrator for --socket-group and a rule (xdpfabd --guest)")
	case err != nil && named != "":
		d.shut = "the daemon's socket is missing"
		return failed(fmt.Sprintf("no daemon is at %s, which --control or %s names", path, fi.ControlEnv),
			"start the daemon, or correct the path, or unset it")
	case err != nil:
		return ok("none serves the interface: it is opened here")
	}
	defer c.Close()
	if named == "" && c.Elsewhere() {
		if d.Attr.Attach == fi.AttachAuto && !d.Attr.Borrow {
			d.Attr.Attach = fi.AttachNever
		}
		return ok(fmt.Sprintf("the one at %s is in another network namespace", path))
	}
	c.Patience = d.Timeout
	s, err := c.Status(ctx)
	if err != nil {
		d.shut = "the daemon does not answer"
		return failed(fmt.Sprintf("the daemon at %s does not answer", path), tell.Plain(err))
	}
	if s.Interface.Name != d.Interface || s.Elsewhere() && named == "" {
		return ok(fmt.Sprintf("the one at %s serves %s of network namespace %d, not this interface", path,
			s.Interface.Name, s.NetNS))
	}
	d.status, d.away = &s, s.Elsewhere()
	d.NoUDP = !s.Interface.UDP
	text := fmt.Sprintf("xdpfabd %s, process %d, at %s: %s, %s, UDP %s", s.Version, s.PID, path,
		transportOf(&s), queues(s.Interface.Queues), onOff(s.Interface.UDP))
	if d.NoUDP && d.Peer.IsIP() {
		d.shut = "this node's daemon sends no UDP"
		return failed(text, "an IP address takes UDP: start this node's daemon without --udp=false, or give the "+
			"peer's MAC address")
	}
	return ok(text)
}

func transportOf(s *control.Status) string {
	if s.Interface.Transport == fi.TransportUDP.String() {
		return "UDP sockets"
	}
	return s.Interface.XDP + " XDP, " + s.Interface.Copy
}

func queues(n int) string {
	if n == 1 {
		return "1 queue"
	}
	return fmt.Sprintf("%d queues", n)
}

// macOf names an interface's MAC address. The loopback interface has none.
func macOf(mac string) string {
	if mac == "" {
		return "no MAC address"
	}
	return "MAC " + mac
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

func (d *diagnosis) lookAtKernel(context.Context) Step {
	m, err := nic.Machine()
	if err != nil {
		return doubtful(tell.Plain(err), "")
	}
	d.privileged = m.Can("CAP_NET_ADMIN")
	text := "Linux " + m.Kernel
	switch {
	case d.status != nil:
		return ok(text + "; through the daemon no privilege is needed")
	case d.Attr.Transport == fi.TransportUDP:
		return ok(text + "; UDP sockets need no privilege")
	case !d.known:
		return leftOut(text + "; " + d.shut)
	}
	if !d.nic.Up {
		return leftOut(text + "; " + d.shut)
	}
	plan := m.Plan(&d.nic, nic.Want{Queues: d.Attr.Queues})
	switch {
	case d.nic.MAC == "" && d.Attr.Transport == fi.TransportAuto: // as that of lo
		d.sockets = true
		return ok(text + "; " + d.Interface + " is not an Ethernet interface: UDP sockets are used, without a " +
			"privilege")
	case !plan.Usable:
		d.shut = cmp.Or(d.shut, "the interface cannot be used with AF_XDP")
		remedy := "mend that, or use --transport udp with the peer's IP address"
		if a := d.nic.Attached; a != nil && a.Name == nic.ProgramName {
			remedy = "mend that first: the program there takes the packets for UDP sockets, too"
		}
		return failed(strings.Join(plan.Problems, "; "), remedy)
	case plan.Missing() != nil && d.Peer.IsIP():
		d.sockets = true
		return doubtful(text+"; "+tell.Plain(plan.Missing()), "UDP sockets are used instead: AF_XDP is not tried")
	case plan.Missing() != nil:
		d.shut = "AF_XDP takes privileges that this user lacks"
		return doubtful(text+"; "+tell.Plain(plan.Missing()), "run it as root to try raw Ethernet, or give the "+
			"peer's IP address")
	}
	return ok(text + "; the privileges for AF_XDP are there; " + plan.How())
}

func (d *diagnosis) lookAtAddresses(context.Context) Step {
	if !d.known {
		return leftOut("the interface is not here")
	}
	if d.away {
		return leftOut("the daemon's interface is in another network namespace")
	}
	served := strings.Join(d.nic.Served, " ")
	if !d.Peer.IsIP() {
		if d.Own = d.Peer.MAC.String() == d.nic.MAC; d.Own {
			return d.ownAddress(d.Peer.MAC.String()+" is this interface's own address",
				"give that of the peer, which `ip link` shows there")
		}
		return ok(strings.TrimSpace(d.nic.MAC + " " + served))
	}
	var family []string
	for _, text := range d.nic.Served {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			continue
		}
		if d.Own = d.Own || p.Addr() == d.Peer.IP; p.Addr().Is4() == d.Peer.IP.Is4() {
			family = append(family, text)
		}
	}
	d.elsewhereHere(d.nic.Index, d.Interface, d.throughDaemon())
	c, other := d.other()
	switch {
	case other && !portTaken(d.Peer.IP):
		d.shut = thisNode
		return failed(c.Text, c.Remedy)
	case other:
		return doubtful(c.Text, c.Remedy)
	case d.Own && !d.throughDaemon() && portTaken(d.Peer.IP):
		return d.taken()
	case d.Own:
		return d.ownAddress(d.Peer.IP.String()+" is this node's own address",
			"give that of the peer, which `ip address` shows there")
	case len(family) == 0:
		return failed(fmt.Sprintf("the interface has no address of the family of %v (it has: %s)", d.Peer.IP,
			cmp.Or(served, "none")), "ip address add ADDRESS/LENGTH dev "+d.Interface+", or give the peer's MAC "+
			"address")
	}
	return ok(strings.Join(family, " "))
}

// ownAddress is the verdict on an address of this node. Its daemon answers there, and may
// be the peer that was meant; a domain that is opened here alone does not.
func (d *diagnosis) ownAddress(detail, remedy string) Step {
	if d.throughDaemon() {
		return doubtful(detail+": the peer is this node's daemon", "if another node was meant, "+remedy)
	}
	return failed(detail, remedy)
}

// throughDaemon reports whether this node's daemon carries the frames.
func (d *diagnosis) throughDaemon() bool { return d.status != nil }

// wireKind names the encapsulation that leads to an address.
func wireKind(a wire.Addr) string {
	if a.IsIP() {
		return "UDP"
	}
	return "raw Ethernet"
}
