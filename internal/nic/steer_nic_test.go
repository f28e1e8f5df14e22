// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// A driver takes the steering, or says that it does not, and has its own settings back
// afterwards.
func TestSteerDriver(t *testing.T) {
	nics := testnet.Borrowed(t)
	if nics == nil {
		t.Skip("needs a virtual machine with two NICs: make test-nic")
	}
	p := testnet.NewPair(t, testnet.Options{Queues: nics.Queues})
	err := p.B.Do(func() error {
		i, err := ToSteer(p.B.IfName)
		if err != nil {
			return err
		}
		i.Use, i.UDP = 1, true
		c, done, err := OpenClassifier(p.B.IfName)
		if err != nil {
			return err
		}
		defer done()
		was, tableErr := c.Table()
		rules, rulesErr := c.Rules()
		t.Logf("%s: %d queues; table of %d entries up to %d, %v; %d rules, %v", i.Driver, i.RXQueues, len(was),
			slices.Max(append(was, 0)), tableErr, len(rules), rulesErr)
		path := filepath.Join(t.TempDir(), "steer")
		s, notes, err := Steer(c, path, i)
		if errors.Is(err, ErrNoSteering) {
			t.Logf("refused: %v", err)
			return nil
		}
		if err != nil {
			return err
		}
		now, _ := c.Table()
		t.Logf("%+v: rule %t, rules on UDP %t, table %t, lacks %q; the table has queues up to %d; notes %q", i.Identity, s.Rule,
			s.Ports, s.Table, s.Why, slices.Max(append(now, 0)), notes)
		if i.Identity.Bus == "" || i.Identity.MAC == "" || i.Identity.Boot == "" {
			t.Errorf("%+v: want a NIC that can be told from others", i.Identity)
		}
		if s.Table && slices.ContainsFunc(now, func(q uint32) bool { return q != 0 }) {
			t.Errorf("the table is %v: want queue 0 alone", now)
		}
		if notes, err := s.Undo(); err != nil || len(notes) > 0 {
			t.Errorf("undone: %q, %v", notes, err)
		}
		now, _ = c.Table()
		after, err := c.Rules()
		if !slices.Equal(now, was) || len(after) != len(rules) || err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
			t.Errorf("afterwards the table is %v, and there are %d rules, %v: want %v and %d", now, len(after), err, was,
				len(rules))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
