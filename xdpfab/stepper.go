// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"fmt"
	"time"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/progress"
)

// stepper decides which thread steps the engine of a queue. With manual progress all
// queues of a domain have one progress.Stepper, so that whoever waits or reads serves all
// of them; otherwise each has its own.
type stepper struct {
	*progress.Stepper
	eng *engine.Engine
	end *end // the domain's
}

// maxSleep bounds how long an idle engine sleeps between looks at its timers. It is
// a variable for tests: with an hour, a wake-up that gets lost shows.
var maxSleep = time.Second

// start puts the engines in motion.
func (n *Node) start(engines []*engine.Engine) {
	if n.config.Manual && len(engines) > 1 {
		n.turns = append(n.turns, progress.New(engine.NewTeam(engines, n.waitAny()), n.stepping(0)))
	} else {
		for q, e := range engines {
			n.turns = append(n.turns, progress.New(e, n.stepping(q)))
		}
	}
	for q, e := range engines {
		n.steppers = append(n.steppers, &stepper{Stepper: n.turns[min(q, len(n.turns)-1)], eng: e, end: &n.end})
	}
}

// stepping says how the engine of queue q is stepped.
func (n *Node) stepping(q int) progress.Config {
	core := -1
	if len(n.config.Cores) > 0 {
		core = n.config.Cores[q%len(n.config.Cores)]
	}
	closed := func() error { return fmt.Errorf("xdpfab: %w", n.end.closed()) }
	return progress.Config{Manual: n.config.Manual, Alone: n.config.Alone, Core: core, Spin: n.config.Spin, Sleep: maxSleep, Closed: closed}
}

// waitAny returns what waits for any of the device's ports.
func (n *Node) waitAny() func(time.Duration) {
	if i, is := n.dev.(netInterface); is {
		return i.WaitAny
	}
	first := n.dev.Ports()[0] // of a device for tests
	return func(limit time.Duration) { first.Wait(min(limit, time.Millisecond)) }
}

// takeTurns gives out the places of count steppers, one after the other, and returns the
// first one's, which is to be taken modulo their number.
func (n *Node) takeTurns(count int) int { return int(n.given.Add(uint32(count)) - uint32(count)) }

// nextStepper returns the steppers in turn.
func (n *Node) nextStepper() *stepper { return n.steppers[n.takeTurns(1)%len(n.steppers)] }

// room tells the engines that messages which had to wait may find room.
func (n *Node) room() {
	n.dev.room()
	for _, st := range n.steppers {
		st.eng.Room()
	}
}
