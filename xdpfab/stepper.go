// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"fmt"
	"time"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/progress"
)

// stepper decides which thread steps the engine of a queue.
type stepper struct {
	*progress.Stepper
	eng *engine.Engine
	end *end // the domain's
}

// maxSleep bounds how long an idle engine sleeps between looks at its timers. It is
// a variable for tests: with an hour, a wake-up that gets lost shows.
var maxSleep = time.Second

// newStepper puts the engine of queue q in motion.
func (d *Domain) newStepper(e *engine.Engine, q int) *stepper {
	core := -1
	if len(d.attr.Cores) > 0 {
		core = d.attr.Cores[q%len(d.attr.Cores)]
	}
	closed := func() error { return fmt.Errorf("xdpfab: %w", d.end.closed()) }
	c := progress.Config{Manual: d.attr.Progress == ProgressManual, Alone: d.attr.Threading == ThreadDomain, Core: core, Spin: d.attr.Spin, Sleep: maxSleep, Closed: closed}
	return &stepper{Stepper: progress.New(e, c), eng: e, end: &d.end}
}
