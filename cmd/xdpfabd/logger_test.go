// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// A line of the log names no field of a Go struct, and no package.
func TestLogIsForPeople(t *testing.T) {
	var out bytes.Buffer
	log := newLogger(defaultConfig(), &out)
	const text = "bpf: no native XDP: want it, or UDP sockets: --transport udp, DomainAttr.Transport"
	log.Warn("an error", "reason", errors.New(text))
	log.Warn("a text", "cause", text, "name", "bpf: x")
	const want = `="no native XDP: want it, or UDP sockets: --transport udp"`
	if strings.Count(out.String(), want) != 2 || !strings.Contains(out.String(), `name="bpf: x"`) {
		t.Error(out.String())
	}
}

// However often something happens that others cause, its lines are few, and none is lost
// without a word. Errors, and other messages, are written beside them.
func TestLogIsLimited(t *testing.T) {
	now := time.Unix(1e9, 0)
	out := &lockedBuffer{}
	limit := newLogLimit(func() time.Time { return now })
	log := slog.New(limitedHandler{slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}), limit}).With("a", 1)
	lines := func() (n int, text string) {
		text = out.String()
		out.mu.Lock()
		out.buf.Reset()
		out.mu.Unlock()
		return strings.Count(text, "\n"), text
	}
	for range 100_000 {
		log.Debug("hostile")
		log.Warn("hostile, too")
	}
	if n, _ := lines(); n != 2*logBurst {
		t.Errorf("%d lines of two messages, want %d", n, 2*logBurst)
	}
	log.Info("another")
	for range logBurst + 1 {
		log.Error("hostile")
	}
	if n, _ := lines(); n != logBurst+2 {
		t.Errorf("%d lines of another message and of errors, want all %d", n, logBurst+2)
	}
	for range 3600 {
		now = now.Add(time.Second)
		log.Debug("hostile")
		log.Debug("hostile")
	}
	n, text := lines()
	if n != 3600*logRate || !strings.Contains(text, fmt.Sprintf("msg=hostile a=1 left_out=%d\n", 100_000-logBurst)) {
		t.Errorf("%d lines within an hour, want %d: %.300s", n, 3600*logRate, text)
	}
	for i := range 2 * mostMessages {
		log.Debug(fmt.Sprint(i))
	}
	if len(limit.of) > mostMessages+1 {
		t.Errorf("%d messages are told apart", len(limit.of))
	}
}

// The debug log names the sessions, what peers asked for in vain, and why; counters count
// the same by cause.
func TestDebugLog(t *testing.T) {
	conn, cfg := notifySocket(t), testConfig(t)
	cfg.LogLevel = slog.LevelDebug
	p := servePipe(t, cfg)
	receive(t, conn)
	checkServed(t, p) // adds to a region that is read-only
	ctx := limited(t)
	peer, err := p.client.Dial(ctx, p.server.Node().Name(0))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // as ping does
		if _, err := peer.Lookup(ctx, "nowhere"); !errors.Is(err, xdpfab.ErrNoRegion) {
			t.Errorf("a region that is not there: %v", err)
		}
	}
	for _, r := range []xdpfab.RemoteRegion{{Key: 7}, {Key: 0xbad}} {
		if v, err := xdpfab.WordAt[uint64](peer, r, 1<<20).Load(ctx); err == nil {
			t.Errorf("%+v: %d", r, v)
		}
	}
	if none, err := p.client.Dial(ctx, p.server.Node().Name(7)); err == nil {
		t.Errorf("an endpoint that is not there: %v", none)
	}
	counters := statusOf(t, cfg).Counters
	if n, counted := counters["op_refused_not_found"]; counted {
		t.Errorf("a question is counted as a refusal: %d", n)
	}
	for name, want := range map[string]uint64{"op_refused_no_access": 1, "lookups_not_found": 3, "op_refused_out_of_bounds": 1, "op_refused_no_such_key": 1} {
		if counters[name] != want {
			t.Errorf("%s is %d, want %d", name, counters[name], want)
		}
	}
	if counters["hello_refused_no_such_endpoint"] == 0 {
		t.Error("the session that was refused is not counted")
	}
	if err := p.client.CloseAll(); err != nil {
		t.Error(err)
	}
	wants := []string{`msg="session accepted" peer=02:00:00:00:00:0a endpoint=0 session=0x`,
		`cause="no access" verb=fetch region=scores offset=0 bytes=8`, `msg="no region has the name that a peer looked up" peer=02:00:00:00:00:0a endpoint=0 session=0x`, ` name=nowhere`,
		`cause="out of bounds" verb=fetch region=scores offset=8388608 bytes=8`,
		`cause="no such key" verb=fetch region=0x0000000000000bad offset=8388608 bytes=8`,
		`msg="session refused" peer=02:00:00:00:00:0a endpoint=7 cause="no such endpoint"`,
		`msg="session of a peer ended" peer=02:00:00:00:00:0a endpoint=0`, `cause="closed by the peer"`}
	for _, want := range wants {
		testnet.Eventually(t, "the log has "+want, func() bool { return strings.Contains(p.log.String(), want) })
	}
	if n := strings.Count(p.log.String(), "name=nowhere"); n != 1 {
		t.Errorf("the log has %d lines of a name that one session looked up three times, want one:\n%s", n, p.log)
	}
	if strings.Contains(p.log.String(), "not found") {
		t.Errorf("a question is logged as a refusal:\n%s", p.log)
	}
	if err := p.end(t); err != nil {
		t.Error(err)
	}
}

// statusOf asks a daemon's control socket.
func statusOf(t *testing.T, cfg Config) control.Status {
	t.Helper()
	c, err := control.Dial(cfg.Control)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := c.Status(limited(t))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Programs that are not let attach are counted by cause.
func TestGuestRefusalsAreCounted(t *testing.T) {
	user := fmt.Sprint(nobody)
	rules, found := newRules([]GuestConfig{{User: user, Deny: true}, {User: "65533", Serve: "*", Guests: 1, Limits: host.GuestLimits{Memory: 1 << 30}}})
	if len(found) > 0 {
		t.Fatal(found)
	}
	s := &server{rules: rules, log: slog.New(slog.DiscardHandler)}
	short := placeWait
	placeWait = time.Millisecond
	defer func() { placeWait = short }()
	for _, uid := range []uint32{nobody, 65532, 65533, 65533} { // the last one finds the only place taken
		_, _ = s.admit(context.Background(), control.Program{UID: uid}, "")
	}
	got := map[string]uint64{}
	s.denied.into(got)
	for _, cause := range refusalNames {
		if n := got["guest_refused_"+cause]; n != 1 {
			t.Errorf("%s: %d, want 1", cause, n)
		}
	}
	if text := fmt.Sprint(rules.given[1].rights()...); !strings.Contains(text, "memory1GiB") || !strings.Contains(text, "guests1") || !strings.Contains(text, "serve*") {
		t.Errorf("rights %q", text)
	}
}

// Lines that nobody reads are given up, and counted in the next one.
func TestLogIsPatient(t *testing.T) {
	r, to := io.Pipe()
	w := newPatient(to, time.Nanosecond)
	defer close(w.lines)
	write := func(line string) {
		if n, err := w.Write([]byte(line)); n != len(line) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	write("one\n") // taken, and waits for a reader
	write("two\n")
	write("three\n")
	got := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(r)
		got <- string(text)
	}()
	testnet.Eventually(t, "the late line is written", func() bool { return len(w.done) > 0 })
	write("four\n")
	testnet.Eventually(t, "the next line is written", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return !w.late || len(w.done) > 0
	})
	_ = to.Close()
	if text := <-got; text != "one\nxdpfabd: 2 lines are missing here, since they could not be written\nfour\n" {
		t.Errorf("%q", text)
	}
}

// failing is a writer that fails at first.
type failing struct {
	left int
	lockedBuffer
}

func (f *failing) Write(b []byte) (int, error) {
	if f.left > 0 {
		f.left--
		return 0, unix.ENOSPC
	}
	return f.lockedBuffer.Write(b)
}

// Lines that cannot be written, as on a full disk, are counted in the first one that can.
func TestLogCountsLost(t *testing.T) {
	out := &failing{left: 3}
	w := newPatient(out, testnet.Patience)
	defer close(w.lines)
	for _, line := range []string{"one\n", "two\n", "three\n", "four\n", "five\n"} {
		_, _ = w.Write([]byte(line))
	}
	if s := out.String(); s != "xdpfabd: 3 lines are missing here, since they could not be written\nfour\nfive\n" {
		t.Errorf("%q", s)
	}
}

// A daemon whose log nobody reads serves, and ends as it is asked to.
func TestProcessUnreadLog(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	r, full, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer full.Close()
	fd := int(full.Fd())
	if err := unix.SetNonblock(fd, true); err != nil { // for this loop alone
		t.Fatal(err)
	}
	for err == nil {
		_, err = unix.Write(fd, []byte("."))
	}
	if err := unix.SetNonblock(fd, false); err != nil {
		t.Fatal(err)
	}
	check := func(what string) {
		t.Helper()
		p := launchInto(t, full, net.B, socketPath(t), nil)
		p.ready(t)
		p.signal(t, unix.SIGTERM)
		if code := p.code(t); code != exitOK {
			t.Errorf("%s: exit code %d, want 0", what, code)
		}
	}
	check("a pipe that is full")
	_ = r.Close()
	check("a pipe whose reader has gone")
}
