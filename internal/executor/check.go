// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"fmt"
	"math/bits"

	"github.com/xdpfab/xdpfab/internal/session"
)

// Check reports contradictions in the state of the executor, for tests: nil unless
// there is a bug. It is called between two steps of the engine.
func (x *Executor) Check() error {
	var answers, holds, waiting int
	sessions := map[session.Party]int{}
	for s := range x.sessions {
		if err := s.Check(); err != nil {
			return err
		}
		a, h := s.Holdings()
		if s.partial.answer != nil {
			a++
		}
		a += s.ticketed() + bits.OnesCount64(s.Away())
		waiting += s.Waiting()
		answers, holds = answers+a, holds+h
		sessions[s.party]++
	}
	if a, h := x.answers.Lent(), x.holds.Lent(); a != answers || h != holds {
		return fmt.Errorf("executor: buffers for %d answers and %d early frames are lent, but sessions have %d and %d",
			a, h, answers, holds)
	}
	if waiting != *x.waiting {
		return fmt.Errorf("executor: %d operations wait, but sessions have %d", *x.waiting, waiting)
	}
	for key, p := range x.parties {
		if p.sessions != sessions[key] {
			return fmt.Errorf("executor: party %v has %d sessions, but counts %d", key, sessions[key], p.sessions)
		}
		answers, holds = answers-p.answers.Lent(), holds-p.holds.Lent()
	}
	if answers != 0 || holds != 0 || len(sessions) != len(x.parties) {
		return fmt.Errorf("executor: the parties count %d answers and %d early frames fewer than are lent; %d "+
			"parties have sessions, but %d are known",
			answers, holds, len(sessions), len(x.parties))
	}
	return nil
}
