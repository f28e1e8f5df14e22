// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/session"
)

// Config is how a node works. The attributes of domains say what the values mean.
type Config struct {
	Manual bool // progress
	Alone  bool // the caller's goroutine alone uses the engines; takes Manual
	Spread bool
	Cores  []int
	Spin   time.Duration
	Log    *slog.Logger       // nil means that nothing is logged
	Clock  func() int64       // ns, monotonic; nil means the system's
	Fault  func(addr uintptr) // progress.Config.Fault

	Window                              int
	GiveUp, RTOMin, BaseRTT, IdleRetire time.Duration

	ProvKey, VirtAddr bool   // of all regions
	AuthKey           []byte // of regions that have none

	Sessions         int // of a queue; 0 for the engine's default
	ResidentSessions int
	ResidentLeave    bool
}

// DefaultGiveUp is a variable, since tests must not give up a live peer that a busy
// machine keeps from answering.
var DefaultGiveUp = 5 * time.Second

// leastGiveUp leaves a peer time for an answer on the fastest network.
const leastGiveUp = time.Millisecond

// WithDefaults checks a configuration and fills in the defaults.
func (c Config) WithDefaults() (Config, error) {
	for name, d := range map[string]time.Duration{"GiveUp": c.GiveUp, "RTOMin": c.RTOMin, "Spin": c.Spin,
		"IdleRetire": c.IdleRetire, "BaseRTT": c.BaseRTT} {
		if d < 0 {
			return c, errno.Refuse(errno.Argument, "xdpfab: %s of %v: want more than 0, or 0 for its default", name, d)
		}
	}
	if c.GiveUp > 0 && c.GiveUp < leastGiveUp {
		return c, errno.Refuse(errno.Argument, "xdpfab: GiveUp of %v: want at least %v, or 0 for its default", c.GiveUp,
			leastGiveUp)
	}
	if c.Window < 0 || c.Window > session.MaxWindow {
		return c, errno.Refuse(errno.Argument, "xdpfab: Window of %d frames: want 1..%d, or 0 for the default",
			c.Window, session.MaxWindow)
	}
	if err := checkCores(c.Cores); err != nil {
		return c, err
	}
	if c.Spin == 0 {
		c.Spin = 50 * time.Microsecond
	}
	if c.GiveUp == 0 {
		c.GiveUp = DefaultGiveUp
	}
	if c.GiveUp > session.MaxGiveUp {
		return c,
			fmt.Errorf(
				"xdpfab: give-up time of %v: want at most %v, which peers can be asked to remember a session for",
				c.GiveUp, session.MaxGiveUp)
	}
	if c.IdleRetire == 0 {
		c.IdleRetire = 90 * time.Second
	}
	if c.IdleRetire <= session.IdleClose {
		return c,
			fmt.Errorf(
				"xdpfab: idle retirement after %v: want more than the %v after which initiators close idle sessions",
				c.IdleRetire, session.IdleClose)
	}
	return c, nil
}
