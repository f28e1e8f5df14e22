// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"slices"
	"testing"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// places are so many.
type places struct{ free, taken int }

func (p *places) Take() bool {
	if p.free == 0 {
		return false
	}
	p.free--
	p.taken++
	return true
}

func (p *places) Return() { p.free++; p.taken-- }

// A frame that ends in a notice runs when there is a place for its event, and hands the
// event out once, however often the frame comes. The frames behind it wait for it.
func TestNoticeWaitsForPlace(t *testing.T) {
	m, p := &echo{}, &places{free: 1}
	x, err := New(m, 1500, 0)
	if err != nil {
		t.Fatal(err)
	}
	with := params()
	with.Features, with.Places = wire.FeatureNotices, p
	s := x.Begin(1, with, nil)
	first := session.FirstPSN(7)
	data := func(o session.Outcome) (list []uint64) {
		for _, n := range o.Notices {
			list = append(list, n.Data)
		}
		return list
	}
	for _, step := range []struct {
		psn     uint32
		payload string
		free    int // places that are given back before
		verdict session.Verdict
		ran     int // in all, afterwards
		events  []uint64
	}{
		{0, "n", 0, session.Execute, 1, []uint64{1}},
		{0, "n", 0, session.Duplicate, 1, nil},
		{1, "n", 0, session.NoPlace, 1, nil},
		{1, "n", 0, session.NoPlace, 1, nil},
		{2, "plain", 0, session.Held, 1, nil},
		{3, "n", 0, session.Held, 1, nil},
		{1, "n", 1, session.Execute, 3, []uint64{2}}, // the one behind it needs another place
		{0, "n", 1, session.Duplicate, 4, []uint64{4}},
		{4, "n bad", 1, session.Execute, 5, nil},
		{5, "n", 0, session.Execute, 6, []uint64{6}},
		{5, "n", 9, session.Duplicate, 6, nil},
	} {
		p.free += step.free
		if o := request(s, first+step.psn, first-1, step.payload, nil); o.Verdict != step.verdict || m.ran != step.ran || !slices.Equal(data(o), step.events) {
			t.Fatalf("%+v: verdict %v, %d ran, events %v", step, o.Verdict, m.ran, data(o))
		} else if o.Verdict == session.NoPlace && !o.Due {
			t.Errorf("%+v: the initiator is not told that the target lives", step)
		}
	}
	if p.taken != 4 {
		t.Errorf("%d places are taken, want one for each of 4 events", p.taken)
	}
}

// A record of a feature that the session does not have is refused like a verb that does
// not exist.
func TestRecordWithoutFeature(t *testing.T) {
	for _, payload := range []string{"n", "m"} {
		_, s, m, first := asked(t, 0)
		if o := request(s, first, first-1, payload, nil); o.Refused != wire.ReasonReservedVerb || m.ran != 0 {
			t.Errorf("%s: %+v, %d ran", payload, o, m.ran)
		}
	}
	x, err := New(&echo{}, 1500, 0)
	if err != nil {
		t.Fatal(err)
	}
	with := params()
	with.Features = wire.FeatureMemory
	if o := request(x.Begin(1, with, nil), session.FirstPSN(7), session.FirstPSN(7)-1, "m", nil); o.Refused != wire.ReasonOK || o.Frames != 1 {
		t.Errorf("with the feature: %+v", o)
	}
}

func TestNoticesDoNotAllocate(t *testing.T) {
	p := &places{free: 1 << 30}
	x, err := New(&echo{}, 1500, 0)
	if err != nil {
		t.Fatal(err)
	}
	with := params()
	with.Features, with.Places = wire.FeatureNotices, p
	s, psn := x.Begin(1, with, nil), session.FirstPSN(7)
	payload := []byte("n")
	one := func() {
		h := wire.Header{Type: wire.Request, PSN: psn, Ack: psn - 1, Ops: 1}
		s.Receive(2, &h, payload, nil)
		psn++
	}
	one()
	one()
	if n := testing.AllocsPerRun(100, one); n != 0 {
		t.Errorf("%v allocations a notice", n)
	}
}
