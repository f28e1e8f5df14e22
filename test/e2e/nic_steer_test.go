// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"errors"
	"os/exec"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/nic"
)

// steer has a daemon that uses one queue of several steer the NIC, under traffic that
// comes on all of them otherwise: no frame comes elsewhere any more. What was there
// before comes back by the next daemon after kill -9, and by the command. On a NIC that
// lets nobody choose queues the daemon is refused.
func (p *nicPair) steer(t *testing.T) {
	own, flags := p.tables(t), p.flags
	defer func() { p.flags = flags }()
	p.flags = append(slices.Clone(flags), "--queues", "1", "--steer")
	if !p.steerable(t) {
		p.kill()
		launch(t, p.net.B, p.node.socket, p.flags...).wants(1, "takes neither an indirection table nor rules")
		p.flags = flags
		p.restart()
		p.sum(t, p.net.B.IP4.String(), 1000)
		return
	}
	steered := func() bool {
		t.Helper()
		for range 50 { // emulated NICs pass some hundred frames a second
			p.bench(t, p.net.B.IP4.String(), "--endpoints", "16", "--window", "8")
			p.bench(t, p.net.B.MAC.String())
			s, err := p.ask()
			if err != nil || s.Interface.Queues != 1 || s.Steering == nil {
				t.Errorf("%+v, %v: want one queue, steered", s.Interface, err)
				return false
			}
			if x := s.Steering; x.Astray != 0 {
				t.Errorf("%v: want none elsewhere", x)
				return false
			} else if x.Frames > 1000 {
				t.Log(x)
				return true
			}
		}
		t.Error("a thousand frames never came")
		return false
	}
	// A table that is put back counts as an administrator's, and the kernel refuses fewer
	// queues than such a table has, as tests that come later ask for.
	defer p.net.B.Do(func() error { return exec.Command("ethtool", "-X", p.net.B.IfName, "default").Run() })
	p.kill()
	p.restart()
	want := p.tables(t)
	if !steered() || want == own {
		t.Fatalf("the NIC is not steered: %s", want)
	}
	p.kill()
	if now := p.tables(t); now != want {
		t.Errorf("a daemon that was killed has changed the tables:\n%s", now)
	}
	p.restart() // goes on with it
	steered()
	p.kill()
	undo := start(t, p.net.B, xdpfabdPath, []string{"--interface", p.net.B.IfName, "--control", p.node.socket, "--unsteer"})
	if undo.wants(0); p.tables(t) != own {
		t.Errorf("undone by the command to:\n%s\nwant\n%s", p.tables(t), own)
	}
	p.restart()
	steered()
	p.kill()
	p.flags = flags // the next daemon is not to steer
	if p.restart(); p.tables(t) != own {
		t.Errorf("undone by the next daemon to:\n%s\nwant\n%s", p.tables(t), own)
	}
	p.sum(t, p.net.B.IP4.String(), 1000)
}

// steerable reports whether the driver has an indirection table, or rules. ethtool says
// something, and ends in order, where it has none.
func (p *nicPair) steerable(t *testing.T) (is bool) {
	t.Helper()
	err := p.net.B.Do(func() error {
		c, done, err := nic.OpenClassifier(p.net.B.IfName)
		if err != nil {
			return err
		}
		defer done()
		_, table := c.Table()
		_, rules := c.Rules()
		is = !errors.Is(table, unix.EOPNOTSUPP) || !errors.Is(rules, unix.EOPNOTSUPP)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return is
}

// tables are the NIC's indirection table and its rules, as text, as far as it has them.
func (p *nicPair) tables(t *testing.T) (all string) {
	t.Helper()
	for _, what := range []string{"-x", "-n"} {
		_ = p.net.B.Do(func() error {
			out, err := exec.Command("ethtool", what, p.net.B.IfName).Output()
			if err == nil {
				all += string(out)
			}
			return err
		})
	}
	return all
}
