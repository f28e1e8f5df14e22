// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/progress"
)

// Stepper decides which thread steps the engine of a queue. With manual progress all
// queues of a domain have one progress.Stepper, so that a thread that waits or reads
// serves all of them; otherwise each has its own.
type Stepper struct {
	*progress.Stepper
	Eng *engine.Engine
	End *End // the domain's
}

// MaxSleep bounds how long an idle engine sleeps between looks at its timers. It is
// a variable for tests: with an hour, a wake-up that gets lost shows.
var MaxSleep = time.Second

// start puts the engines in motion.
func (n *Node) start(engines []*engine.Engine) {
	if n.Config.Manual && len(engines) > 1 {
		n.Turns = append(n.Turns, progress.New(engine.NewTeam(engines, n.waitAny()), n.stepping(0)))
	} else {
		for q, e := range engines {
			n.Turns = append(n.Turns, progress.New(e, n.stepping(q)))
		}
	}
	n.adviseProcessors(len(engines))
	for q, e := range engines {
		n.Steppers = append(n.Steppers, &Stepper{Stepper: n.Turns[min(q, len(n.Turns)-1)], Eng: e, End: &n.End})
	}
}

// adviseProcessors logs that Go has no processor besides those that pollers may use. The
// check "gomaxprocs" of package advise has the same limit.
func (n *Node) adviseProcessors(pollers int) {
	if have := runtime.GOMAXPROCS(0); !n.Config.Manual && have <= pollers {
		n.Log(slog.LevelInfo, "Go has no processor besides those of the pollers: goroutines may wait for 20 ms; "+
			"see gomaxprocs in docs/tuning.md", slog.Int("GOMAXPROCS", have), slog.Int("want", pollers+1))
	}
}

// stepping reports how the engine of queue q is stepped.
func (n *Node) stepping(q int) progress.Config {
	core := -1
	if len(n.Config.Cores) > 0 {
		core = n.Config.Cores[q%len(n.Config.Cores)]
	}
	closed := func() error { return fmt.Errorf("xdpfab: %w", n.End.Closed("open it again")) }
	return progress.Config{Manual: n.Config.Manual, Alone: n.Config.Alone, Core: core, Spin: n.Config.Spin,
		Sleep: MaxSleep, Closed: closed, Fault: n.Config.Fault}
}

// waitAny returns what waits for any of the device's ports.
func (n *Node) waitAny() func(time.Duration) {
	if i, is := n.Dev.(interface{ WaitAny(time.Duration) }); is {
		return i.WaitAny
	}
	first := n.Dev.Ports()[0] // of a device for tests
	return func(limit time.Duration) { first.Wait(min(limit, time.Millisecond)) }
}

// TakeTurns gives out the places of count steppers, one after the other, and returns the
// first one's, which is to be taken modulo their number.
func (n *Node) TakeTurns(count int) int { return int(n.given.Add(uint32(count)) - uint32(count)) }

// NextStepper returns the steppers in turn.
func (n *Node) NextStepper() *Stepper { return n.Steppers[n.TakeTurns(1)%len(n.Steppers)] }

// Room tells the engines that messages which had to wait may find room.
func (n *Node) Room() {
	n.Dev.Room()
	for _, st := range n.Steppers {
		st.Eng.Room()
	}
}
