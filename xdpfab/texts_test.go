// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// checkText checks what holds for every error of a call: the sentinels in it, one line,
// the prefix once, and its end.
func checkText(t *testing.T, what string, err error, end string, is ...error) {
	t.Helper()
	for _, want := range is {
		if !errors.Is(err, want) {
			t.Errorf("%s: %v; want %v", what, err, want)
		}
	}
	if err == nil {
		return
	}
	text := err.Error()
	if strings.LastIndex(text, "xdpfab: ") != 0 || strings.Contains(text, "\n") || !strings.HasSuffix(text, end) {
		t.Errorf("%s: %q; want one line with one prefix, at its beginning, that ends in %q", what, text, end)
	}
}

// Slices that do not have the same length are ErrLength.
func TestSlicesDiffer(t *testing.T) {
	w := newNetwork(t, 2)
	p, err := w.Node(0).Dial(ctx(t), w.Node(1).Name(0))
	if err != nil {
		t.Fatal(err)
	}
	v, err := xdpfab.Vector[uint64](ctx(t), p, "w")
	if err != nil {
		t.Fatal(err)
	}
	two, one := make([]uint64, 2), make([]uint64, 1)
	for text, err := range map[string]error{
		`Add of words 0, 0 of region "w": the slice of values has length 1: want 2, one for each word`:             v.Add(ctx(t), two, one, nil),
		`Compare of words 0, 0 of region "w": the slice of comparands has length 1: want 2, one for each word`:     v.Compare(ctx(t), atomic.Cswap, two, one, two, two),
		`Load of words 0, 0 of region "w": the slice of results has length 1: want 2, one for each word`:           v.Load(ctx(t), two, one),
		`CompareAndSwap of words 0, 0 of region "w": the slice of results has length 0: want 2, one for each word`: v.CompareAndSwap(ctx(t), two, two, two, nil),
		`AddRange of words 0 to 1 of region "w": the slice of results has length 1: want 2, one for each word`:     v.AddRange(ctx(t), 0, two, one),
	} {
		checkText(t, "slices", err, "xdpfab: "+text, xdpfab.ErrLength, xdpfab.ErrNotExecuted)
	}
	r, err := p.Lookup(ctx(t), "w")
	if err != nil {
		t.Fatal(err)
	}
	const beyond = "beyond the end of the memory region: want words 0 to 7, or a longer region"
	for end, err := range map[string]error{
		`xdpfab: Load of word 8 of region "w", which has 8 words of 8 bytes: ` + beyond:            v.Load(ctx(t), []uint64{1, 8}, two),
		`xdpfab: LoadRange of words 7 to 8 of region "w", which has 8 words of 8 bytes: ` + beyond: v.LoadRange(ctx(t), 7, two),
		`xdpfab: read of 8 bytes at 60 of region "w", which has 64 bytes: beyond the end of the memory region: want them to end at 64 or before, ` +
			"or a longer region": p.Read(ctx(t), r, 60, make([]byte, 8)),
		`xdpfab: signal in word 8 of region "w", which has 8 words of 8 bytes: ` + beyond: p.WriteSignal(ctx(t), r, 0, nil,
			xdpfab.Signal{Region: r, Index: 8, Op: atomic.Sum}),
	} {
		checkText(t, "bounds", err, end, xdpfab.ErrOutOfBounds, xdpfab.ErrNotExecuted)
	}
	for name, open := range map[string]func() error{
		"Pipe":       func() error { _, _, err := xdpfab.Pipe(make([]xdpfab.DomainAttr, 3)...); return err },
		"NewNetwork": func() error { _, err := xdpfab.NewNetwork(3, make([]xdpfab.DomainAttr, 2)...); return err },
	} {
		checkText(t, name, open(), "or one for each", xdpfab.ErrArgument)
	}
}

// tooSoon makes a call with contexts that end, each later than the one before, until the
// call ends with an unknown outcome: a busy machine may take long to begin it.
func tooSoon(t *testing.T, call func(context.Context) error) (err error) {
	t.Helper()
	for d := 50 * time.Millisecond; !errors.Is(err, xdpfab.ErrOutcomeUnknown) && d < 10*time.Second; d *= 2 {
		c, cancel := context.WithTimeout(t.Context(), d)
		err = call(c)
		cancel()
	}
	return err
}

// A call whose function takes its time says so, and how to go on.
func TestCallTakesLong(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{}, 64)
	reply := make(chan []byte, 1)
	_, p := handle(t, f, xdpfab.HandlerAttr{}, func(context.Context, xdpfab.Sender, []byte) ([]byte, error) {
		return <-reply, nil
	})
	var (
		buf [8]byte
		n   int
	)
	err := tooSoon(t, func(c context.Context) (err error) {
		n, err = p.Call(c, []byte("late"), buf[:])
		return err
	})
	if !errors.Is(err, xdpfab.ErrOutcomeUnknown) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(),
		": the function had not replied: give the context more time, or wait for the reply by Settle: ") {
		t.Error(err)
	}
	reply <- []byte("now")
	if n, err = xdpfab.Settle(t.Context(), n, err); err != nil || string(buf[:n]) != "now" {
		t.Errorf("%q, %v", buf[:n], err)
	}
}

// A message that its peer has not taken says why that may be, and how to go on.
func TestSendNotTaken(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{}, 64)
	box, err := f.server.NewMailbox(xdpfab.MailboxAttr{Number: 5, Buffered: -1}) // it keeps no message that is so long
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.client.Dial(t.Context(), box.Name())
	if err != nil {
		t.Fatal(err)
	}
	failure := tooSoon(t, func(c context.Context) error { return p.Send(c, make([]byte, 100)) })
	if !errors.Is(failure, xdpfab.ErrOutcomeUnknown) || !errors.Is(failure, context.DeadlineExceeded) ||
		!strings.Contains(failure.Error(), ": the peer had not taken the message, perhaps for want of room: have it receive, ") {
		t.Error(failure)
	}
	if m, err := box.Receive(t.Context(), make([]byte, 100)); err != nil || len(m.Bytes) != 100 {
		t.Error(m, err)
	}
	if err := xdpfab.SettleError(t.Context(), failure); err != nil {
		t.Error(err)
	}
}

// A region or a word that is not there is named beside those that are.
func TestNotThere(t *testing.T) {
	w := newNetwork(t, 2)
	p, err := w.Node(0).Dial(ctx(t), w.Node(1).Name(0))
	if err != nil {
		t.Fatal(err)
	}
	_, err = xdpfab.Vector[uint64](ctx(t), p, "W")
	checkText(t, "Vector", err, `no memory region of this name, did you mean "w"?: the peer has "w"`,
		xdpfab.ErrNoRegion, xdpfab.ErrNotExecuted)
	r, err := p.Lookup(ctx(t), "w")
	if err != nil {
		t.Fatal(err)
	}
	sent := func() uint64 {
		s, err := w.Node(0).Statistics()
		if err != nil {
			t.Fatal(err)
		}
		return s.OpsSent
	}
	before := sent()
	_, err = p.Lookup(ctx(t), "none")
	checkText(t, "Lookup", err, "no memory region of this name: Peer.Regions lists those of the peer, which publishes "+
		"one by Domain.Serve, or as xdpfabd --region", xdpfab.ErrNoRegion, xdpfab.ErrNotExecuted)
	if n := sent() - before; n != 1 {
		t.Errorf("a look-up has sent %d operations, want 1: programs measure round trips with it", n)
	}
	before = sent()
	_, err = xdpfab.WordAt[uint64](p, r, 8).Load(ctx(t))
	checkText(t, "WordAt", err, "beyond the end of the memory region: want words 0 to 7, or a longer region", xdpfab.ErrOutOfBounds, xdpfab.ErrNotExecuted)
	if want := `xdpfab: Load of word 8 of region "w", which has 8 words of 8 bytes: `; !strings.HasPrefix(err.Error(), want) {
		t.Errorf("WordAt: %v, want %s", err, want)
	}
	if n := sent() - before; n != 0 {
		t.Errorf("%d operations were sent for a word that is not there", n)
	}
}

// A call of what is no handler says what is wanted.
func TestCallOfNoHandler(t *testing.T) {
	w := newNetwork(t, 2)
	if _, err := w.Node(1).NewMailbox(xdpfab.MailboxAttr{Number: 5}); err != nil {
		t.Fatal(err)
	}
	for _, number := range []uint16{0, 5} {
		p, err := w.Node(0).Dial(ctx(t), w.Node(1).Name(number))
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Call(ctx(t), []byte("hello"), nil)
		checkText(t, "Call", err, "the peer answers no calls at this endpoint: want the number of a Handler",
			xdpfab.ErrOpNotSupported, xdpfab.ErrNotExecuted)
	}
}

// An error of an operation names the region beside the offset.
func TestOperationNamesRegion(t *testing.T) {
	w := newNetwork(t, 2)
	service, err := w.Node(1).Serve("gone", 64)
	if err != nil {
		t.Fatal(err)
	}
	p, err := w.Node(0).Dial(ctx(t), w.Node(1).Name(0))
	if err != nil {
		t.Fatal(err)
	}
	v, err := xdpfab.Vector[uint64](ctx(t), p, "gone")
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Lookup(ctx(t), "gone")
	if err != nil {
		t.Fatal(err)
	}
	if err := service.Close(); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, added := v.At(3).Add(ctx(t), 1)
	for want, err := range map[string]error{
		`xdpfab: Add of word 3 of region "gone" on `:           added,
		`xdpfab: Load of words 0, 1 of region "gone" on `:      v.Load(ctx(t), []uint64{0, 1}, make([]uint64, 2)),
		`xdpfab: Load of 5 words of region "gone" on `:         v.Load(ended, make([]uint64, 5), make([]uint64, 5)),
		`xdpfab: read of 8 bytes at 0x10 of region "gone" on `: p.Read(ctx(t), r, 16, make([]byte, 8)),
	} {
		checkText(t, want, err, "", xdpfab.ErrNotExecuted)
		if !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s…", err, want)
		}
	}
}

// A Cluster tells in one line, with one prefix, what it finds and what it does not.
func TestClusterTexts(t *testing.T) {
	w := newNetwork(t, 2, xdpfab.DomainAttr{GiveUp: 200 * time.Millisecond})
	n := newNames(t, "one 02:00:00:00:99:99,10.0.0.1 w\ntwo "+w.Node(1).Name(0)+" other\n")
	c := newCluster(t, w.Node(0), n)
	_, err := c.Dial(ctx(t), "one")
	checkText(t, "Dial", err, "", xdpfab.ErrPeerSilent, xdpfab.ErrNotExecuted)
	if strings.Count(err.Error(), "02:00:00:00:99:99") != 1 || strings.Count(err.Error(), "10.0.0.1") != 1 {
		t.Errorf("an address is told twice: %v", err)
	}
	_, err = xdpfab.Word[uint64](ctx(t), c, "W", 0)
	checkText(t, "Word", err, `xdpfab: region "W": no node of `+n.path+` publishes it, did you mean "w"?: the nodes have `+
		`"other", "w"`, xdpfab.ErrNoRegion, xdpfab.ErrNotExecuted)
}

// A right that the region does not grant is named beside those that it grants.
func TestRightsAreNamed(t *testing.T) {
	w := newNetwork(t, 2)
	for name, o := range map[string]mr.Options{"ro": {Access: mr.RemoteRead}, "wo": {Access: mr.RemoteWrite},
		"keyed": {Access: mr.RemoteRead | mr.RemoteWrite, AuthKey: []byte("0123456789abcdef0123456789abcdef")}} {
		m, err := mr.Alloc(4096, mr.AllocOptions{})
		if err != nil {
			t.Fatal(err)
		}
		o.Name = name
		if _, err := w.Node(1).Register(m, o); err != nil {
			t.Fatal(err)
		}
	}
	p, err := w.Node(0).Dial(ctx(t), w.Node(1).Name(0))
	if err != nil {
		t.Fatal(err)
	}
	vector := func(region string) xdpfab.RemoteVector[uint64] {
		v, err := xdpfab.Vector[uint64](ctx(t), p, region)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	ro, wo := vector("ro"), vector("wo")
	r, err := p.Lookup(ctx(t), "ro")
	if err != nil {
		t.Fatal(err)
	}
	bare := xdpfab.RemoteRegion{Key: r.Key}
	const grant = ": have its owner grant that (mr.Options.Access)"
	one, is := []uint64{1}, []error{xdpfab.ErrAccess, xdpfab.ErrNotExecuted}
	_, pending := ro.At(0).StartAdd(ctx(t), 1).Wait(ctx(t))
	_, guarded := wo.At(0).Guard(ctx(t))
	for name, c := range map[string]struct {
		err error
		end string
	}{
		"Add":      {second(ro.At(0).Add(ctx(t), 1)), "it takes read and write, and the region grants read" + grant},
		"Store":    {ro.At(0).Store(ctx(t), 1), "it takes write, and the region grants read" + grant},
		"Load":     {second(wo.At(0).Load(ctx(t))), "it takes read, and the region grants write" + grant},
		"StartAdd": {pending, "it takes read and write, and the region grants read" + grant},
		"Guard":    {guarded, "it takes read, and the region grants write" + grant},
		"vector":   {ro.StoreRange(ctx(t), 0, one), "it takes write, and the region grants read" + grant},
		"Write":    {p.Write(ctx(t), r, 0, make([]byte, 8)), "it takes write, and the region grants read" + grant},
		"by key": {p.Write(ctx(t), bare, 0, make([]byte, 8)), "it takes write" + grant +
			", and use its authorization key if it has one (DomainAttr.AuthKey)"},
		"keyed": {second(vector("keyed").At(0).Add(ctx(t), 1)), "want the key of its owner (DomainAttr.AuthKey)"},
	} {
		checkText(t, name, c.err, c.end, is...)
	}
}

// A region that begins where no word can be is for its owner to mend, as the error says.
func TestMisalignedRegion(t *testing.T) {
	w := newNetwork(t, 2)
	m, err := mr.Alloc(4096, mr.AllocOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Node(1).Register(m, mr.Options{Name: "odd", Offset: 4, Access: mr.RemoteRead | mr.RemoteWrite}); err != nil {
		t.Fatal(err)
	}
	p, err := w.Node(0).Dial(ctx(t), w.Node(1).Name(0))
	if err != nil {
		t.Fatal(err)
	}
	v, err := xdpfab.Vector[uint64](ctx(t), p, "odd")
	if err != nil {
		t.Fatal(err)
	}
	_, pending := v.At(0).StartAdd(ctx(t), 1).Wait(ctx(t))
	for name, err := range map[string]error{"Add": second(v.At(0).Add(ctx(t), 1)), "vector": v.StoreRange(ctx(t), 0, []uint64{1}),
		"StartAdd": pending} {
		checkText(t, name, err, "element's alignment: the region does not begin at a multiple of that: have its owner register "+
			"it at a multiple of 8, or of 16 for words of 16 bytes (mr.Options.Offset)", xdpfab.ErrMisaligned, xdpfab.ErrNotExecuted)
	}
}

// Nobody there has the endpoint: the error names the number, and who opens one.
func TestNoSuchEndpoint(t *testing.T) {
	w := newNetwork(t, 2)
	d := w.Node(0)
	const end = ": it has no such endpoint: number 9 is not open there: dial another one, or have a program there " +
		"open it (Domain.Serve, NewMailbox, Handle, NewEndpoint)"
	_, err := d.Dial(ctx(t), w.Node(1).Name(9))
	checkText(t, "Dial", err, end, xdpfab.ErrRefused, xdpfab.ErrNotExecuted)
	_, err = d.Dial(ctx(t), w.Node(1).Name(65535)) // from which a message came
	checkText(t, "Dial", err, ": number 65535 is not open there: a number so high is, as a rule, that of Domain.Dial, to which "+
		"nothing can be sent: have the program there send by Mailbox.Dial, and answer its mailbox", xdpfab.ErrRefused)
	for name, open := range map[string]func() error{
		"a mailbox":   func() error { return second(d.NewMailbox(xdpfab.MailboxAttr{Number: 5})) },
		"an endpoint": func() error { return second(d.NewEndpoint(xdpfab.EndpointAttr{Number: 6})) },
		"a handler": func() error {
			return second(d.Handle(xdpfab.HandlerAttr{Number: 7}, func(context.Context, xdpfab.Sender, []byte) ([]byte, error) {
				return nil, nil
			}))
		},
	} {
		if err := open(); err != nil {
			t.Fatal(err)
		}
		checkText(t, name, open(), "is taken by "+name+" of the domain on 02:00:00:00:00:0a: choose another one, or AnyNumber",
			xdpfab.ErrBusy)
	}
}
