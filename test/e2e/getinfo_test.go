// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
	fab "github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// asInquirer, an environment variable, makes the test binary ask for what there is, try
// it, and print a discovery.
const asInquirer = "XDPFAB_E2E_INQUIRER"

// discovery is what a program finds with GetInfo, and what it then has.
type discovery struct {
	Found              []string // each info as text
	Ways               []string // its Attach
	InForce            []string // by Domain.Info, of those that go through a daemon
	Endpoints, Regions int      // of those that could be made in the first domain
	Refusals           [2]string
}

// inquirerMain has one argument, the number of the AttachMode in the hints.
func inquirerMain(args []string) int {
	d := &discovery{}
	mode, err := strconv.Atoi(args[0])
	if err == nil {
		err = d.inquire(fi.AttachMode(mode))
	}
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(d)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "inquirer:", err)
	}
	switch {
	case errors.Is(err, fab.ErrDenied) && errors.Is(err, fi.ErrNoInfo):
		return 5
	case err != nil:
		return 1
	}
	return 0
}

func (d *discovery) inquire(mode fi.AttachMode) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	list, err := fi.GetInfo(ctx, &fi.Info{Attach: mode})
	if err != nil {
		return err
	}
	fabric, err := fi.NewFabric(fab.DomainAttr{})
	if err != nil {
		return err
	}
	for n := range list {
		i := &list[n]
		d.Found, d.Ways = append(d.Found, i.String()), append(d.Ways, i.Attach.String())
		if i.Attach != fi.AttachAlways {
			continue
		}
		dom, err := fabric.OpenInfo(ctx, i, fab.DomainAttr{})
		if err != nil {
			return err
		}
		if i.Endpoint.Type == fi.EndpointRDM {
			now := dom.Info()
			d.InForce = append(d.InForce, now.String())
		}
		if n == 0 {
			d.exhaust(&fab.Domain{Domain: dom}, i)
		}
		if err := dom.CloseAll(); err != nil {
			return err
		}
	}
	return nil
}

// exhaust makes endpoints and regions until they are refused.
func (d *discovery) exhaust(dom *fab.Domain, i *fi.Info) {
	for ; ; d.Endpoints++ {
		if _, err := dom.NewEndpoint(i.EndpointAttr()); err != nil {
			d.Refusals[0] = err.Error()
			break
		}
	}
	for ; ; d.Regions++ {
		m, err := mr.Memfd("some", 4096)
		if err == nil {
			_, err = dom.Register(m, mr.Options{Access: mr.RemoteRead})
		}
		if err != nil {
			d.Refusals[1] = err.Error()
			return
		}
	}
}

// What a program finds with GetInfo on an interface that a daemon serves is what it then
// has as a guest, by the rule that is about it.
func TestGetInfoThroughDaemon(t *testing.T) {
	testnet.Require(t)
	net := testnet.NewPair(t, testnet.Options{})
	socket := filepath.Join(folder, socketName)
	hostAt(t, net.A, socket, "--socket-mode", "0666", "--guest", "deny:user=65533",
		"--guest", "allow:user=65534,endpoints=3,regions=2,entries=64,peers=5,memory=1MiB")
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	ask := func(side *testnet.Side, user uint32, mode fi.AttachMode) *process {
		return start(t, side, testnet.ThroughSelf, []string{strconv.Itoa(int(mode))}, func(c *exec.Cmd) {
			c.Env = append(os.Environ(), asInquirer+"=1", fi.ControlEnv+"="+socket)
			c.ExtraFiles = []*os.File{self}
			c.SysProcAttr.Credential = &syscall.Credential{Uid: user, Gid: user}
		})
	}
	for _, mode := range []fi.AttachMode{fi.AttachAuto, fi.AttachAlways} {
		d := decoded[discovery](ask(net.A, nobody, mode))
		wantWays(t, &d, 3, 0)
		if d.Endpoints != 3 || d.Regions != 2 || !strings.Contains(d.Refusals[0], "guest[1]") || !strings.Contains(d.Refusals[1], "guest[1]") {
			t.Errorf("%d endpoints and %d regions could be made, want 3 and 2: %q", d.Endpoints, d.Regions, d.Refusals)
		}
		for _, line := range []string{"rule: rule guest[1]", "operations: 64\n", "peers: 5\n", "memory: 1048576\n", "ep_cnt: 3\n", "mr_cnt: 2\n", "attach: always\n", "daemon: " + socket} {
			if !strings.Contains(d.Found[0], line) {
				t.Errorf("no %q in %s", line, d.Found[0])
			}
		}
	}
	ask(net.A, nobody, fi.AttachNever).wants(1, net.A.IfName+": ", "no interface offers this")
	ask(net.A, 65533, fi.AttachAlways).wants(5, "guest[0]", "denies it")

	// The other node has an interface of the same name, which is free.
	d := decoded[discovery](ask(net.B, nobody, fi.AttachAuto))
	wantWays(t, &d, 3, 3)
}

// wantWays checks how many ways of reliable datagram endpoints there are through the
// daemon and past it, in this order, each with one of connected ones, and that what was
// found is in force.
func wantWays(t *testing.T, d *discovery, through, past int) {
	t.Helper()
	one := strings.Repeat("always ", through) + strings.Repeat("never ", past)
	if got := strings.Join(d.Ways, " ") + " "; got != one+one {
		t.Errorf("ways %q, want %q twice", got, one)
	}
	if len(d.InForce) != through {
		t.Fatalf("%d domains, want %d", len(d.InForce), through)
	}
	for i, now := range d.InForce {
		if now != d.Found[i] {
			t.Errorf("found:\n%s\nin force:\n%s", d.Found[i], now)
		}
	}
}
