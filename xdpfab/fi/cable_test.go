// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"os"
	"testing"

	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/udpnode"
	"github.com/xdpfab/xdpfab/internal/udpport"
)

// OverSockets means that the tests of pipes run over UDP sockets on a loopback
// interface, as `make test-udp` wants it: package fabrictest sees to it.
var OverSockets = os.Getenv("XDPFAB_TEST_CABLE") == "udp"

// Nobody is an address at which no node is.
func Nobody() string {
	if OverSockets {
		return "127.127.0.77"
	}
	return "02:00:00:00:00:77"
}

// NotOverSockets skips a test that needs more than UDP sockets have, if pipes are such.
func NotOverSockets(t testing.TB, why string) {
	if OverSockets {
		t.Skip("not over UDP sockets: " + why)
	}
}

func socketAt(addr string) (node.Device, error) {
	u := &udpnode.Device{}
	err := testnet.OnLoopback(func() (err error) {
		u.Device, err = udpport.Open(addr, udpport.Options{Portable: os.Getenv("XDPFAB_TEST_PORTABLE") != ""})
		return err
	})
	return u, err
}
