// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import "fmt"

// lending is what the next daemon has to know of the queues that this one lends.
type lending struct {
	Lent []int // those that programs have, by number
	Lend int   // how many this one can lend
}

func (s *server) lending() lending {
	l := lending{Lend: s.cfg.Lend}
	for _, q := range s.host.LentQueues() {
		if q.IsLent() {
			l.Lent = append(l.Lent, q.Queue)
		}
	}
	return l
}

// lentOut is how many queues programs have, or may have still.
func (s *server) lentOut() (n int) {
	for _, q := range s.host.LentQueues() {
		if q.PID != 0 || !q.IsFree() {
			n++
		}
	}
	return n
}

// lends reports an error if one of the queues that are lent is not among those behind the
// daemon's own which it can lend.
func (c Config) lends(lent []int, own int) error {
	for _, q := range lent {
		if q < own || q >= own+c.Lend {
			return fmt.Errorf(
				"queue %d is lent to a program, and is not among those to lend any more, with %d queues in use and %d "+
					"to lend behind them: want as many as before", q, own, c.Lend)
		}
	}
	return nil
}
