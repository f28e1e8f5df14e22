// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// selectiveReceiver posts receives that make an entry of success only on demand.
type selectiveReceiver struct {
	at        *talker // whose queue got serves both directions
	count     *fi.Counter
	receive   func(r *fi.Receive, flags fi.OpFlags) error
	cancelled func(context any) error
}

// selectiveEndpoint binds one queue for both directions in one call, as MPICH does.
func selectiveEndpoint(h *hall) selectiveReceiver {
	ep, err1 := h.b.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber, ReceiveFlags: fi.FlagCompletion, MinMultiRecv: 1})
	cq, err2 := h.b.NewCompletionQueue(fi.CQAttr{Size: 4})
	count := h.newCounter(h.b)
	h.ok(errors.Join(err1, err2))
	h.ok(errors.Join(ep.Bind(cq, fi.BindTransmit|fi.BindRecv|fi.BindSelective), ep.Bind(count, fi.BindRecv)))
	h.ok(ep.Enable())
	return selectiveReceiver{&talker{ep: ep, got: cq, name: h.name(h.b, ep.Number())}, count, ep.Receive, ep.Cancel}
}

// selectiveShared is the same of a shared receive context.
func selectiveShared(h *hall) selectiveReceiver {
	cq, err := h.b.NewCompletionQueue(fi.CQAttr{Size: 4})
	h.ok(err)
	count := h.newCounter(h.b)
	x, err := h.b.NewSharedReceive(fi.SharedReceiveAttr{
		Queue: cq, Counter: count, Selective: true, ReceiveFlags: fi.FlagCompletion, MinMultiRecv: 1,
	})
	h.ok(err)
	ep := h.sharing(x, 1)[0]
	return selectiveReceiver{&talker{ep: ep, got: cq, name: h.name(h.b, ep.Number())}, count, x.Receive, x.Cancel}
}

// With a queue that is bound selectively, a receive makes an entry if it asks for one,
// fails, or gives the buffer of many messages back. Counters count them all, and more
// receives complete than the queue has places.
func TestSelectiveReceives(t *testing.T) {
	for name, open := range map[string]func(h *hall) selectiveReceiver{"endpoint": selectiveEndpoint, "shared": selectiveShared} {
		t.Run(name, func(t *testing.T) {
			onEveryPath(t, func(h *hall) {
				b, a := open(h), h.talker(h.a, fi.EndpointAttr{})
				dest := h.knows(a, b.at)
				want := uint64(0)
				arrived := func() {
					h.Helper()
					want++
					h.until(fmt.Sprintf("%d receives are counted", want), func() bool { return b.count.Read() == want })
				}
				buf := make([]byte, 8)
				for i := range 6 {
					h.ok(b.receive(&fi.Receive{Buf: buf, Context: "quiet"}, 0))
					h.told(a, dest, string(rune('a'+i)))
					arrived()
					if buf[0] != byte('a'+i) {
						h.Errorf("message %d: %q", i, buf)
					}
				}
				h.nothing(b.at.got)
				for i, flags := range []fi.OpFlags{fi.FlagCompletion, fi.FlagDefaults} {
					h.ok(b.receive(&fi.Receive{Buf: buf, Context: i}, flags))
					h.told(a, dest, "entry")
					h.success(b.at.got, i)
					arrived()
				}
				h.ok(b.receive(&fi.Receive{Buf: buf, Context: "many"}, fi.FlagMultiRecv))
				h.told(a, dest, "12")
				h.told(a, dest, "345678")
				if c := h.success(b.at.got, "many"); c.Flags&fi.CompletionMultiRecv == 0 || c.Bytes != 6 {
					h.Errorf("%+v", c)
				}
				h.ok(b.receive(&fi.Receive{Buf: buf[:1], Context: "short"}, 0))
				h.told(a, dest, "too long")
				h.failure(b.at.got, "short", fi.ErrTruncated)
				h.ok(b.receive(&fi.Receive{Buf: buf, Context: "back"}, 0))
				h.ok(b.cancelled("back"))
				h.failure(b.at.got, "back", fi.ErrCancelled)
				h.nothing(b.at.got)
			})
		})
	}
}
