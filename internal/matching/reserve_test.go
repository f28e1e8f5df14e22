// SPDX-License-Identifier: Apache-2.0

package matching

import "testing"

// The place of a receive that was reserved and is not posted goes to the multi-receive
// that waits for one: to its messages that are held, and to those that were refused.
func TestUnreserveMakesRoom(t *testing.T) {
	for name, held := range map[string]int{"held": 4, "refused": 0} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(c *Config, s *places) { s.free, c.Unexpected = 2, held })
			in := r.q.NewInflow(peer(1))
			if held > 0 {
				r.send(in, plain("abc"))
			}
			reserved := anySource("reserved", 8)
			if err := r.q.Reserve(&reserved); err != nil {
				t.Fatal(err)
			}
			r.post(multi("m", 64, 4)) // which has the last place
			if held == 0 && r.send(in, plain("abc")) {
				t.Fatal("a message was admitted without a place for its completion")
			}
			if len(r.sink.got) > 0 || r.rooms > 0 {
				t.Fatalf("%d completions, and Room was called %d times", len(r.sink.got), r.rooms)
			}
			r.q.Unreserve()
			if held > 0 {
				r.want("m:3")
			} else if r.rooms != 1 || !r.send(in, plain("abc")) {
				t.Errorf("Room was called %d times", r.rooms)
			}
			r.check()
		})
	}
}
