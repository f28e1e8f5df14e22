// SPDX-License-Identifier: Apache-2.0

package share

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// desk is a host and a guest with a function at its endpoint 3.
type desk struct {
	*away
	functions []*function // of the sessions, in the order in which their first calls came
	told      int         // calls that have ended, as the host's engine was told
}

// function answers a call when the test says so. It implements session.Callee.
type function struct {
	d        *desk
	from     wire.Addr
	tell     func()
	asked    map[uint32]string // requests, by psn
	ended    []*reply
	refuses  wire.Status // if it is not 0
	recalled int
	closed   bool
}

func newDesk(t testing.TB, sizes Sizes) *desk {
	d := &desk{away: newAway(t, sizes)}
	d.guest.Deliver(d)
	d.hosts.OnReply(d.host.Reply)
	return d
}

// Callee implements Receiver.
func (d *desk) Callee(endpoint uint16, from wire.Addr, told func()) session.Callee {
	if endpoint != 3 {
		return nil
	}
	f := &function{d: d, from: from, tell: told, asked: map[uint32]string{}}
	d.functions = append(d.functions, f)
	return f
}

func (f *function) Ask(psn uint32, c *wire.Call) wire.Status {
	if f.refuses == 0 {
		f.asked[psn] = string(c.Request)
	}
	return f.refuses
}

func (f *function) end(psn uint32, status wire.Status, text string) {
	delete(f.asked, psn)
	f.ended = append(f.ended, &reply{psn, status, wire.Reply{Length: uint32(len(text)), Bytes: []byte(text)}})
	f.tell()
}

func (f *function) Answered() (psn uint32, r *wire.Reply, s wire.Status, ok bool) {
	if len(f.ended) == 0 {
		return 0, nil, 0, false
	}
	return f.ended[0].psn, &f.ended[0].said, f.ended[0].status, true
}

func (f *function) Drop()   { f.ended = f.ended[1:] }
func (f *function) Recall() { f.recalled++ }
func (f *function) Close()  { f.closed = true }

// callee is the host's end of a session with endpoint 3.
func (d *desk) callee() *callee {
	return d.host.NewCallee(3, wire.Addr{MAC: wire.MAC{7}}, func() { d.told++ }).(*callee)
}

// exchange has the guest take what has come, and the host what the guest replied.
func (d *desk) exchange() {
	d.serve()
	d.hear()
	if d.broken != nil {
		d.Fatal(d.broken)
	}
}

// replies expects the reply of the call that has ended first.
func (d *desk) replies(c *callee, psn uint32, status wire.Status, text string) {
	d.Helper()
	got, r, s, ok := c.Answered()
	if !ok || got != psn || s != status || s == wire.StatusOK && string(r.Bytes) != text {
		d.Fatalf("request %d ended with %v and %+v (%t): want %d, %v and %q", got, s, r, ok, psn, status, text)
	}
	c.Drop()
}

var small = Sizes{Entries: MinEntries, Arena: MinArena, Arrivals: MinArrivals}

// Replies come in the order in which the functions give them, of any length. A function
// that does not have a request, and an endpoint that has no function, say so.
func TestGuestAnswersCalls(t *testing.T) {
	d := newDesk(t, small)
	c, other := d.callee(), d.callee()
	long := strings.Repeat("long ", 200)
	for psn, text := range map[uint32]string{70: "a", 71: long, 72: ""} {
		if status := c.Ask(psn, &wire.Call{Request: []byte(text), Most: 1400, Source: 9}); status != wire.StatusOK {
			t.Fatal(status)
		}
	}
	if status := other.Ask(70, &wire.Call{Request: []byte("other"), Most: 10}); status != wire.StatusOK {
		t.Fatal(status)
	}
	d.exchange()
	f := d.functions[0]
	if len(d.functions) != 2 || f.from != (wire.Addr{MAC: wire.MAC{7}}) || f.asked[70] != "a" || f.asked[71] != long {
		t.Fatalf("%d functions; %+v", len(d.functions), f)
	}
	f.end(71, wire.StatusOK, long)
	f.end(72, wire.StatusNotExecuted, "")
	d.exchange()
	f.end(70, wire.StatusOK, "b")
	d.exchange()
	if d.told != 3 || c.away != 0 {
		t.Errorf("the engine was told %d times, and the guest has %#x", d.told, c.away)
	}
	d.replies(c, 71, wire.StatusOK, long)
	d.replies(c, 72, wire.StatusNotExecuted, "")
	d.replies(c, 70, wire.StatusOK, "b")
	d.functions[1].refuses = wire.StatusNoRoom
	other.Ask(71, &wire.Call{Most: 10})
	d.exchange()
	d.replies(other, 71, wire.StatusNoRoom, "")
	none := d.host.NewCallee(4, wire.Addr{}, func() {}).(*callee)
	none.Ask(1, &wire.Call{Most: 10})
	d.exchange()
	d.replies(none, 1, wire.StatusNotExecuted, "")
}

// The guest learns that a session recalls its requests, and that it ends, if it knows of
// it. A reply to a session that has ended does no harm.
func TestGuestCallsEnd(t *testing.T) {
	d := newDesk(t, small)
	c, idle := d.callee(), d.callee()
	c.Recall() // of nothing
	c.Ask(1, &wire.Call{Request: []byte("x"), Most: 10})
	d.exchange()
	c.Recall()
	d.exchange()
	f := d.functions[0]
	if f.recalled != 1 || f.closed {
		t.Fatalf("recalled %d times, closed %t: want once, and not", f.recalled, f.closed)
	}
	idle.Close()
	c.Close()
	f.end(1, wire.StatusOK, "late")
	d.hear()
	d.exchange()
	if !f.closed || len(d.host.callees) != 0 || len(d.guest.in.called.sessions) != 0 || d.told != 0 {
		t.Errorf("closed %t; %d and %d sessions; %d calls have ended", f.closed, len(d.host.callees),
			len(d.guest.in.called.sessions), d.told)
	}
	d.host.End()
	if status := d.callee().Ask(1, &wire.Call{}); status != wire.StatusNotExecuted {
		t.Errorf("after the guest has gone: %v", status)
	}
}

// A guest that does not read, or has no room for its replies, costs no memory, and goes
// on when there is room.
func TestGuestCallsWantRoom(t *testing.T) {
	d := newDesk(t, small)
	long := strings.Repeat("x", 1400)
	n := uint32(0)
	var all []*callee
	for c := d.callee(); ; n++ {
		if n%64 == 0 {
			c = d.callee()
			all = append(all, c)
		}
		if status := c.Ask(n, &wire.Call{Request: []byte(long), Most: 1400}); status == wire.StatusNoRoom {
			break
		}
	}
	if n < 32 {
		t.Fatalf("room for %d requests", n)
	}
	for done := 0; done < int(n); {
		d.serve()
		for _, f := range d.functions {
			for psn, text := range f.asked {
				f.end(psn, wire.StatusOK, text)
			}
		}
		d.exchange()
		for _, c := range all {
			for {
				if _, _, _, ok := c.Answered(); !ok {
					break
				}
				c.Drop()
				done++
			}
		}
	}
	d.serve() // what the host took is free again
	if _, ok := d.guest.space.get(MinArena / 2); !ok || len(d.guest.answers) != 0 {
		t.Errorf("the arena is not free: %d replies have blocks", len(d.guest.answers))
	}
}

// A guest that never replies holds no more than so many buffers of the host, and gives
// them back with its sessions.
func TestGuestCallsAreBounded(t *testing.T) {
	d := newDesk(t, small)
	var all []*callee
	c := d.callee()
	for n := range uint32(mostAway + 1) {
		if n%session.MaxWindow == 0 {
			c = d.callee()
			all = append(all, c)
		}
		want := wire.StatusOK
		if n == mostAway {
			want = wire.StatusNoRoom
		}
		if status := c.Ask(n, &wire.Call{Most: 10}); status != want {
			t.Fatalf("request %d: %v, want %v", n, status, want)
		}
		d.serve()
	}
	all[0].Close()
	if status := c.Ask(1<<20, &wire.Call{Most: 10}); status != wire.StatusOK {
		t.Error(status)
	}
	for _, c := range all[1:] {
		c.Close()
	}
	if d.host.away != 0 {
		t.Errorf("%d requests count as those of the guest", d.host.away)
	}
}

// Another host goes on with the calls that a guest has.
func TestGuestCallsMove(t *testing.T) {
	d := newDesk(t, small)
	c := d.callee()
	for psn := range uint32(3) {
		c.Ask(psn, &wire.Call{Request: []byte("x"), Most: 10})
	}
	d.exchange()
	f := d.functions[0]
	f.end(0, wire.StatusOK, "before")
	d.exchange()
	d.replies(c, 0, wire.StatusOK, "before")
	ring, number := d.hosts.Export(), c.State()
	state := d.host.Export()
	c.Detach()
	f.end(1, wire.StatusOK, "between")
	d.serve()

	text, err := json.Marshal(&state)
	if err != nil {
		t.Fatal(err)
	}
	var next ArrivalsState
	if err := json.Unmarshal(text, &next); err != nil {
		t.Fatal(err)
	}
	evict := func(err error) { t.Error(err) }
	own := d.hosts.doorbell
	d.hosts = NewHostRing(d.theirs, own, d.hosts.eng, evict)
	d.hosts.Restore(&ring)
	d.host = NewArrivals(d.theirs, own, evict)
	d.hosts.OnReply(d.host.Reply)
	d.host.Restore(&next)
	d.hosts.Unhold()
	d.hear() // before the session comes
	c = d.callee()
	if asked := c.Restore(number); asked != 1<<1|1<<2 || d.told != 2 {
		t.Fatalf("requests %#x, told %d times: want %#x, and once more", asked, d.told, 1<<1|1<<2)
	}
	f.end(2, wire.StatusOK, "after")
	d.exchange()
	d.replies(c, 1, wire.StatusOK, "between")
	d.replies(c, 2, wire.StatusOK, "after")
	if len(d.host.callees) != 1 || d.callee().Restore(99) != 0 {
		t.Errorf("%d sessions, or one that nobody knows", len(d.host.callees))
	}
}

// A guest that replies to what it was not asked, or not as it was asked, is turned out.
func TestLyingReplies(t *testing.T) {
	entry := func(session, psn uint64, text string) engine.Entry {
		e := engine.Entry{Verb: VerbReply, Key: session, Cookie: psn, Count: uint32(len(text)), Offset: uint64(len(text))}
		copy(e.Inline[:], text)
		return e
	}
	with := func(change func(e *engine.Entry)) engine.Entry {
		e := entry(1, 50, "text")
		change(&e)
		return e
	}
	outside := func(at uint64, count uint32) engine.Entry {
		return with(func(e *engine.Entry) {
			e.Count, e.Offset, e.Flags = count, uint64(count), engine.FlagOutside
			placesOf(e).Operand = at
		})
	}
	for name, c := range map[string]struct {
		entries []engine.Entry
		refused string // part of the reason; empty: it is taken
	}{
		"as asked":             {[]engine.Entry{entry(1, 51, "text"), entry(1, 50, "")}, ""},
		"to a session that is": {[]engine.Entry{entry(2, 50, "text")}, ""},
		"twice":                {[]engine.Entry{entry(1, 50, "text"), entry(1, 50, "text")}, "does not have it"},
		"another request":      {[]engine.Entry{entry(1, 52, "text")}, "does not have it"},
		"of the same slot":     {[]engine.Entry{entry(1, 50+session.MaxWindow, "text")}, "does not have it"},
		"far beyond":           {[]engine.Entry{entry(1, 50|1<<40, "text")}, "does not have it"},
		"session never begun":  {[]engine.Entry{entry(3, 50, "text")}, "want one of the 2"},
		"session 0":            {[]engine.Entry{entry(0, 50, "text")}, "want one of the 2"},
		"too long":             {[]engine.Entry{entry(1, 50, "more than it")}, "want at most 10"},
		"longer than it says":  {[]engine.Entry{with(func(e *engine.Entry) { e.Offset = 3 })}, "of which have come"},
		"a kind that is none":  {[]engine.Entry{with(func(e *engine.Entry) { e.Opcode = 3 })}, "kind 3"},
		"a status of others":   {[]engine.Entry{with(func(e *engine.Entry) { e.Datatype = uint8(wire.StatusNoKey) })}, "want what a request"},
		"a status that is none": {[]engine.Entry{with(func(e *engine.Entry) { e.Datatype = 200 })},
			"want what a request"},
		"beyond the entry":     {[]engine.Entry{with(func(e *engine.Entry) { e.Count = 200 })}, "200 bytes"},
		"beyond the arena":     {[]engine.Entry{outside(MinArena-8, 24)}, "24 bytes"},
		"far beyond the arena": {[]engine.Entry{outside(1<<63, 24)}, "24 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, small)
			x, gone := d.callee(), d.callee()
			gone.Close()
			for psn := range uint32(2) {
				x.Ask(50+psn, &wire.Call{Most: 10})
			}
			copy(d.theirs.entries, c.entries)
			d.theirs.h.posted.Store(uint64(len(c.entries)))
			d.hear()
			switch {
			case c.refused == "" && d.broken != nil:
				t.Error(d.broken)
			case c.refused != "" && (d.broken == nil || !strings.Contains(d.broken.Error(), c.refused)):
				t.Errorf("%v, want %q", d.broken, c.refused)
			}
		})
	}
}

// Once the first calls have gone by, neither side allocates for another one.
func TestGuestCallsAllocateNothing(t *testing.T) {
	d := newDesk(t, small)
	c := d.callee()
	request := bytes.Repeat([]byte("x"), 300)
	f := &fast{}
	d.guest.Deliver(&fastDesk{d, f})
	none := func(uint32, *engine.Completion, uint64, []byte) {}
	psn, call := uint32(0), wire.Call{Request: request, Most: 300}
	if n := testing.AllocsPerRun(1000, func() {
		psn++
		if c.Ask(psn, &call) != wire.StatusOK {
			t.Fatal("refused")
		}
		for range 2 {
			d.guest.Receive(none)
			d.hear()
		}
		if _, r, _, ok := c.Answered(); !ok || len(r.Bytes) != 300 {
			t.Fatal("no reply")
		}
		c.Drop()
	}); n != 0 {
		t.Errorf("%v allocations a call", n)
	}
}

// fast replies with the request at once.
type fast struct {
	function
	r reply
	n int
}

type fastDesk struct {
	*desk
	f *fast
}

func (d *fastDesk) Callee(_ uint16, _ wire.Addr, told func()) session.Callee {
	d.f.tell = told
	return d.f
}

func (f *fast) Ask(psn uint32, c *wire.Call) wire.Status {
	f.r.psn, f.n = psn, 1
	f.r.said = wire.Reply{Length: uint32(len(c.Request)), Bytes: append(f.r.said.Bytes[:0], c.Request...)}
	f.tell()
	return wire.StatusOK
}

func (f *fast) Answered() (psn uint32, r *wire.Reply, s wire.Status, ok bool) {
	return f.r.psn, &f.r.said, wire.StatusOK, f.n == 1
}

func (f *fast) Drop() { f.n = 0 }

var _ session.MobileCallee = (*callee)(nil)
