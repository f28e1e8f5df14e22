// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// A config that no engine can have is refused with an error that says what is wanted; no
// value is ever replaced.
func TestImpossibleConfig(t *testing.T) {
	p, _ := port.NewMemoryPair(1500, 1)
	for want, change := range map[string]func(*engine.Config){
		"port":                       func(c *engine.Config) { c.Port = nil },
		"queue -1":                   func(c *engine.Config) { c.Queue = -1 },
		"MTU of 255":                 func(c *engine.Config) { c.MTU = wire.MinMTU - 1 },
		"as seals take, 1245":        func(c *engine.Config) { c.SealRoom = 1245 },
		"seals take, -1":             func(c *engine.Config) { c.SealRoom = -1 },
		"-1 sessions":                func(c *engine.Config) { c.Sessions = -1 },
		"16385 sessions":             func(c *engine.Config) { c.Sessions = wire.MaxSessions + 1 },
		"-1 buffers":                 func(c *engine.Config) { c.Buffers = -1 },
		"window of 65":               func(c *engine.Config) { c.Session.Window = session.MaxWindow + 1 },
		"window of -1":               func(c *engine.Config) { c.Session.Window = -1 },
		"give-up time of -1s":        func(c *engine.Config) { c.Session.GiveUp = -time.Second },
		"longest idle round trip of": func(c *engine.Config) { c.Session.BaseRTT = -1 },
	} {
		c := engine.Config{Port: p, MTU: 1500, Local: macA}
		if _, err := engine.New(c); err != nil {
			t.Fatal(err)
		}
		change(&c)
		if _, err := engine.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error about %q, have %v", want, err)
		}
	}
}
