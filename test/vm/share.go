// SPDX-License-Identifier: Apache-2.0

//go:build linux

package vm

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"
)

// Machines is how many machines should share a number of packages. Under TCG one
// guest keeps no more than one core of the host busy, however many CPUs it has.
func Machines(a Accel, packages int) int {
	if a == KVM {
		return 1
	}
	return max(1, min(packages, runtime.NumCPU(), 4))
}

// StartAll boots a number of equal machines at the same time. A guest that ends or falls
// silent before its first word is booted once more, as kernels sometimes fail to on a
// busy host; say is told so. No test has run by then. CloseAll ends the machines.
func StartAll(ctx context.Context, c Config, n int, say func(string)) ([]*Machine, error) {
	machines, errs := make([]*Machine, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			machines[i], errs[i] = again(func() (*Machine, error) { return Start(ctx, c) }, say)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		CloseAll(machines)
		return nil, err
	}
	return machines, nil
}

// again calls start once more if the guest did not say a word.
func again(start func() (*Machine, error), say func(string)) (*Machine, error) {
	m, err := start()
	if !errors.Is(err, errSpeechless) {
		return m, err
	}
	say(err.Error() + "\nthe guest is booted once more")
	return start()
}

// CloseAll switches machines off; those that are nil did not start.
func CloseAll(machines []*Machine) {
	for _, m := range machines {
		if m != nil {
			_ = m.Close()
		}
	}
}

// RunTests runs test binaries in machines: each takes one after the other until none
// is left. The events are passed to f as go test -json would print them; with several
// machines, those of a package together at its end. A package also fails if the kernel
// warned while it ran, or if it left anything behind. The error is that of the
// machines' ends; there is no event of packages that have not run by then.
func RunTests(ctx context.Context, machines []*Machine, tests []Test, args []string, limit time.Duration,
	f func(Event)) error {
	queue := make(chan *Test, len(tests))
	for i := range tests {
		queue <- &tests[i]
	}
	close(queue)
	var passing sync.Mutex // of kept events to f
	errs := make([]error, len(machines))
	var wg sync.WaitGroup
	for i, m := range machines {
		wg.Go(func() {
			for t := range queue {
				var kept []Event
				keep := func(e Event) { kept = append(kept, e) }
				if len(machines) == 1 {
					keep = f
				}
				errs[i] = m.runTest(ctx, t, args, limit, keep)
				passing.Lock()
				for _, e := range kept {
					f(e)
				}
				passing.Unlock()
				if errs[i] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
