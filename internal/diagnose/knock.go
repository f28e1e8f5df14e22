// SPDX-License-Identifier: Apache-2.0

//go:build linux

package diagnose

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// knocks is how many datagrams are sent. Each may get lost.
const knocks = 3

// knocksBeside bounds how many are sent while a session is tried, too; they end with
// that. A host sends a burst of errors and then one a second. The frames of the session
// use up the burst, and get a share of the later errors.
const knocksBeside = 60

// knockPause is the time for the answer to one.
const knockPause = 200 * time.Millisecond

// knock sends datagrams to the port of frames at an address, as any program may, and
// reports whether the host refuses them. They are shorter than a frame: a node that
// serves UDP drops them.
func knock(ctx context.Context, ifname string, to netip.Addr, times int) (Port, error) {
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		e := c.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), ifname) })
		return errors.Join(e, err)
	}}
	port := strconv.Itoa(wire.UDPPort)
	conn, err := d.DialContext(ctx, "udp", net.JoinHostPort(to.String(), port))
	if err != nil {
		return PortUntried, err
	}
	defer conn.Close()
	for range times {
		if _, err := conn.Write([]byte("xdpfab?")); err != nil {
			return verdictOf(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(knockPause))
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, context.DeadlineExceeded) && !isTimeout(err) {
			return verdictOf(err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return PortSilent, nil
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// verdictOf reads the error of a datagram: the kernel passes on what hosts and routers
// say.
func verdictOf(err error) (Port, error) {
	if errors.Is(err, unix.ECONNREFUSED) {
		return PortRefused, nil
	}
	if err == nil { // something was received: somebody is there
		return PortSilent, nil
	}
	return PortUntried, err
}
