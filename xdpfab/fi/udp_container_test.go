// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// contained says to a process of this test binary that it is the one in the container.
const contained = "XDPFAB_TEST_CONTAINED"

// A process with the rights of a plain container, from its first instruction, has no
// AF_XDP; TransportAuto says why and uses UDP sockets, by which all works as ever. Such
// containers have netlink, which finds addresses and routes.
func TestUDPContainer(t *testing.T) {
	if os.Getenv(contained) == "" {
		testnet.Require(t)
		pair := testnet.NewVeth(t, testnet.Options{})
		self, err := os.Open("/proc/self/exe")
		if err != nil {
			t.Fatal(err)
		}
		defer self.Close()
		run := []string{testnet.ThroughSelf, "-test.run=^TestUDPContainer$", "-test.short", "-test.v"}
		c := exec.Command(testnet.ThroughSelf, run...)
		c.Env, c.Dir = append(os.Environ(), contained+"=1"), "/"
		testnet.ConfinedBy(self)(c)
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		var out []byte
		if err := pair.A.Do(func() (err error) {
			out, err = c.CombinedOutput()
			return err
		}); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	if _, _, e := unix.Syscall(unix.SYS_BPF, 0, 0, 0); e != unix.EPERM {
		t.Fatalf("bpf: %v, want EPERM", e)
	}
	if _, err := xdpfab.Open(ctx(t), "lo", fi.DomainAttr{}); err == nil || errors.Is(err, xdpfab.ErrBusy) {
		t.Fatalf("AF_XDP: %v, want a refusal", err)
	}
	open := func(name string, transport fi.Transport) *xdpfab.Domain {
		d, err := xdpfab.Open(ctx(t), name, fi.DomainAttr{Transport: transport})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := d.CloseAll(); err != nil {
				t.Error(err)
			}
		})
		return d
	}
	server := served(t, open("lo", fi.TransportAuto))
	if i := server.Interface(); i.Transport != "udp" || i.NoXDP == "" {
		t.Errorf("%+v, want UDP sockets, and why", i)
	}
	exercise(t, open("127.0.0.2", fi.TransportUDP), server, server.Name(0))
}
