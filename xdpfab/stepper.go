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
func (d *Domain) start(engines []*engine.Engine) {
	if d.attr.Progress == ProgressManual && len(engines) > 1 {
		d.turns = append(d.turns, progress.New(engine.NewTeam(engines, d.waitAny()), d.config(0)))
	} else {
		for q, e := range engines {
			d.turns = append(d.turns, progress.New(e, d.config(q)))
		}
	}
	for q, e := range engines {
		d.steppers = append(d.steppers, &stepper{Stepper: d.turns[min(q, len(d.turns)-1)], eng: e, end: &d.end})
	}
}

// config says how the engine of queue q is stepped.
func (d *Domain) config(q int) progress.Config {
	core := -1
	if len(d.attr.Cores) > 0 {
		core = d.attr.Cores[q%len(d.attr.Cores)]
	}
	closed := func() error { return fmt.Errorf("xdpfab: %w", d.end.closed()) }
	return progress.Config{Manual: d.attr.Progress == ProgressManual, Alone: d.attr.Threading == ThreadDomain, Core: core, Spin: d.attr.Spin, Sleep: maxSleep, Closed: closed}
}

// waitAny returns what waits for any of the device's ports.
func (d *Domain) waitAny() func(time.Duration) {
	if i, is := d.dev.(netInterface); is {
		return i.WaitAny
	}
	first := d.dev.Ports()[0] // of a device for tests
	return func(limit time.Duration) { first.Wait(min(limit, time.Millisecond)) }
}

// takeTurns gives out the places of count steppers, one after the other, and returns the
// first one's, which is to be taken modulo their number.
func (d *Domain) takeTurns(count int) int { return int(d.given.Add(uint32(count)) - uint32(count)) }

// nextStepper returns the steppers in turn.
func (d *Domain) nextStepper() *stepper { return d.steppers[d.takeTurns(1)%len(d.steppers)] }
