// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"errors"
	"testing"
)

// The numbers of a queue, a counter and a shared context are alone, and so need no locked
// instruction, if the caller makes no two calls at a time, and not otherwise. Both kinds
// count alike.
func TestGauges(t *testing.T) {
	for _, threading := range []Threading{ThreadSafe, ThreadDomain} {
		a, b, err := Pipe(DomainAttr{Progress: ProgressManual, Threading: threading}, DomainAttr{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = errors.Join(a.CloseAll(), b.CloseAll()) })
		cq, err1 := a.NewCompletionQueue(CQAttr{})
		c, err2 := a.NewCounter()
		x, err3 := a.NewSharedTransmit(SharedTransmitAttr{})
		if err1 != nil || err2 != nil || err3 != nil {
			t.Fatal(err1, err2, err3)
		}
		want := threading == ThreadDomain
		for name, g := range map[string]*gauge[int64]{"reserved": &cq.reserved, "failures": &cq.failures.shown, "used": &x.used} {
			if g.alone != want {
				t.Errorf("%v, %s: alone is %t", threading, name, g.alone)
			}
		}
		for name, g := range map[string]*gauge[uint64]{"tail": &cq.tail, "head": &cq.head, "value": &c.value, "errs": &c.errs} {
			if g.alone != want {
				t.Errorf("%v, %s: alone is %t", threading, name, g.alone)
			}
		}
		g := gauge[int64]{alone: want}
		g.Store(5)
		if n := g.Add(-7); n != -2 || g.Load() != -2 {
			t.Errorf("%v: 5 and -7 are %d, then %d", threading, n, g.Load())
		}
	}
}
