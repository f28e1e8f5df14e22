// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// The loss of the interface is an error event, for the domain and for each endpoint that
// is bound, and makes armed descriptors readable. Then nothing is bound any more.
func TestInterfaceLostEvent(t *testing.T) {
	for _, m := range []fi.ProgressMode{fi.ProgressAuto, fi.ProgressManual} {
		t.Run(m.String(), func(t *testing.T) {
			ctx := sleepLong(t)
			near, _, dev := watchedPipe(t, fi.DomainAttr{Progress: m, Context: "domain"})
			q, err := near.Fabric().NewEventQueue(fi.EQAttr{Wait: fi.WaitFD})
			if err != nil {
				t.Fatal(err)
			}
			cq, _ := near.NewCompletionQueue(fi.CQAttr{Wait: fi.WaitFD})
			ep, _ := near.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber, Context: "endpoint"})
			if err := errors.Join(near.BindEQ(q), ep.Bind(q, 0), ep.Bind(cq, 0), q.TryWait(), cq.TryWait(1)); err != nil {
				t.Fatal(err)
			}
			dev.tell(cutOff)
			context := "domain"
			for source := any(near.Domain); source != nil; {
				if err := q.Wait(ctx); err != nil {
					t.Fatal(err)
				}
				e, ok := q.ReadErr()
				if code, _ := fi.ErrnoOf(e.Err); !ok || e.Source != source || e.Context != context || e.Kind != fi.EventNotify || !errors.Is(e.Err, fi.ErrInterfaceLost) || code != fi.Errno(unix.ENETDOWN) {
					t.Errorf("%t, %+v: want the loss of %T", ok, e, source)
				}
				if source == any(near.Domain) {
					source, context = ep, "endpoint"
				} else {
					source = nil
				}
			}
			for what, fd := range map[string]func() (int, error){"events": q.FD, "completions": cq.FD} {
				n, err := fd()
				if err != nil {
					t.Fatal(err)
				}
				testnet.Eventually(t, "the descriptor for "+what+" is readable", func() bool {
					got, err := unix.Poll([]unix.PollFd{{Fd: int32(n), Events: unix.POLLIN}}, 0)
					if err != nil && !errors.Is(err, unix.EINTR) {
						t.Fatal(err)
					}
					return got == 1
				})
			}
			if err := cq.TryWait(1); !errors.Is(err, fi.ErrInterfaceLost) {
				t.Errorf("armed after the end: %v, want ErrInterfaceLost", err)
			}
			if err := errors.Join(near.CloseAll(), q.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}
