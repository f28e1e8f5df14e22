// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

func rulesOf(t *testing.T, texts ...string) rules {
	t.Helper()
	var guests []GuestConfig
	for _, text := range texts {
		g, err := parseGuest(text)
		if err != nil {
			t.Fatal(err)
		}
		guests = append(guests, g)
	}
	all, unknown := newRules(guests)
	if len(unknown) > 0 {
		t.Fatal(unknown)
	}
	return all
}

// The first rule that fits counts, and without one only root and the daemon's user may
// attach.
func TestRules(t *testing.T) {
	own := uint32(os.Geteuid())
	alice, bob := control.Program{UID: 1000001, GID: 5, Groups: []uint32{7}}, control.Program{UID: 1000002, GID: 8}
	for _, c := range []struct {
		rules []string
		p     control.Program
		want  string // of the error; empty if the program may attach
	}{
		{nil, control.Program{UID: 0}, ""},
		{nil, control.Program{UID: own}, ""},
		{nil, alice, `user 1000001, group 5: only root and the daemon's own user may attach`},
		{nil, alice, `--guest allow:user=1000001`},
		{[]string{"deny"}, control.Program{UID: 0}, `rule guest[0] (deny)`},
		{[]string{"allow:user=1000001"}, alice, ""},
		{[]string{"allow:user=1000001"}, bob, "only root"},
		{[]string{"allow:group=5"}, alice, ""},
		{[]string{"allow:group=7"}, alice, ""},
		{[]string{"allow:group=7"}, bob, "only root"},
		{[]string{"allow:user=1000001,group=8"}, alice, "only root"},
		{[]string{"allow:user=root"}, control.Program{UID: 0}, ""},
		{[]string{"deny:user=1000001", "allow"}, alice, "rule guest[0] (deny:user=1000001) of the daemon's configuration denies it"},
		{[]string{"deny:user=1000001", "allow"}, bob, ""},
		{[]string{"allow", "deny:user=1000001"}, alice, ""},
		{[]string{"deny:socket=/run/y.sock", "allow:socket=/run/x.sock"}, alice, ""},
		{[]string{"allow:socket=/run/y.sock"}, alice, "only root"},
		{[]string{"deny:socket=/run/x.sock", "allow"}, alice, "rule guest[0] (deny:socket=/run/x.sock)"},
	} {
		_, err := rulesOf(t, c.rules...).admit(c.p, "/run/x.sock")
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, %+v: %v, want %q", c.rules, c.p, err, c.want)
		}
	}
}

func TestRuleLimits(t *testing.T) {
	r, err := rulesOf(t, "allow:entries=64,arena=1MiB,arrivals=64KiB,endpoints=2,peers=3,regions=4,memory=1GiB,weight=3,serve=app-*").admit(control.Program{}, "")
	if err != nil {
		t.Fatal(err)
	}
	l := r.limits()
	if err := l.Serve("other"); err == nil || !strings.Contains(err.Error(), `guest[0] (allow:serve=app-*,`) {
		t.Errorf("%v", err)
	}
	if err := l.Serve("app-x"); err != nil {
		t.Error(err)
	}
	if l.Rule != r.name || l.Entries != 64 || l.Arena != 1<<20 || l.Arrivals != 64<<10 || l.Endpoints != 2 || l.Peers != 3 || l.Regions != 4 || l.Memory != 1<<30 || l.Weight != 3 {
		t.Errorf("%+v", l)
	}
}

// A rule has so many places, and a refusal names it. A place that is given back is the
// next one's.
func TestPlaces(t *testing.T) {
	r, err := rulesOf(t, "allow:guests=2").admit(control.Program{}, "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(limited(t))
	first, err := r.places.enter(ctx, 0)
	if err == nil {
		_, err = r.places.enter(ctx, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	waits := make(chan error, 1)
	go func() {
		_, err := r.places.enter(limited(t), 0)
		waits <- err
	}()
	first.leave()
	if err := <-waits; err != nil {
		t.Errorf("a place is free: %v", err)
	}
	cancel()
	if _, err := r.places.enter(ctx, 0); err == nil || !strings.Contains(err.Error(), "2 programs are attached: rule guest[0] (allow:guests=2) of the daemon's configuration allows no more") {
		t.Errorf("%v", err)
	}
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"*", "", true}, {"*", "a/b", true}, {"", "", false}, {"", "a", false}, {"a", "a", true}, {"a", "ab", false},
		{"a*", "a", true}, {"a*", "abc", true}, {"a*", "ba", false}, {"*a", "ba", true}, {"*a", "ab", false},
		{"a*a", "a", false}, {"a*a", "aa", true}, {"a*b*c", "a-b-c", true}, {"a*b*c", "a-c-b", false}, {"*b*", "abc", true}, {"**", "", true},
		{"a*bc*c", "abc", false}, {"a?", "ab", false},
	} {
		if matches(c.pattern, c.name) != c.want {
			t.Errorf("%q, %q: want %v", c.pattern, c.name, c.want)
		}
	}
}

// Rules of the file come behind those of flags, and their errors name their lines.
func TestGuestConfiguration(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.toml")
	write := func(text string) {
		if err := os.WriteFile(path, []byte("interface = \"eth0\"\nsocket-mode = \"0666\"\nsocket-group = \"0\"\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("[[guest]]\nuser = \"root\"\nserve = \"\"\nmemory = \"1GiB\"\nentries = 128\n[[guest]]\ndeny = true\n")
	c, code, msg := load(t, "--config", path, "--guest", "allow:group=0")
	var got []string
	for _, g := range c.Guests {
		got = append(got, g.String())
	}
	const usual = "arena=64MiB,arrivals=4MiB,endpoints=256,peers=65536,regions=1024,host=128MiB"
	want := "allow:group=0,guests=1024,entries=4096," + usual + ",memory=16GiB,weight=1 " +
		"allow:user=root,serve=,guests=1024,entries=128," + usual + ",memory=1GiB,weight=1 deny"
	if code != exitOK || strings.Join(got, " ") != want || c.SocketMode != 0o666 || c.SocketGroup != "0" {
		t.Errorf("%d %s: %s, %o, %q; want %s", code, msg, got, c.SocketMode, c.SocketGroup, want)
	}
	for text, want := range map[string]string{
		"[[guest]]\nuser = \"no such user\"\n":    "x.toml:5: guest[0].user: ",
		"[[guest]]\n[[guest]]\nname = \"root\"\n": "x.toml:6: guest[1].name: unknown key; known are user, group, socket, serve, guests",
		"guest = 3":               "guest: want tables: begin each guest with a line [[guest]]",
		"[[guest]]\nentries = 15": "x.toml:5: guest[0].entries: ",
	} {
		write(text)
		if _, code, msg := load(t, "--config", path); code != exitUsage || !strings.Contains(msg, want) {
			t.Errorf("%q: %d, %s; want %s", text, code, msg, want)
		}
	}
	var errs strings.Builder
	write("[[guest]]\nuser = \"xdpfab-nobody-has-this-name\"\n")
	if code := run([]string{"--config", path, "--check", "--guest=allow"}, &errs, &errs); code != exitUsage || !strings.Contains(errs.String(), "x.toml:5: guest[1].user: ") {
		t.Errorf("%d, %s", code, errs.String())
	}
	for arg, want := range map[string]string{
		"permit": "want allow or deny", "allow:usr=1": "want one of user, group", "allow:user=": "user: want a value",
		"allow:user=1,user=2": "user: given twice", "deny:deny=true": "want one of", "allow:memory=x": "memory: ",
	} {
		if _, code, msg := load(t, "--interface=e", "--guest", arg); code != exitUsage || !strings.Contains(msg, want) {
			t.Errorf("--guest %s: %d, %s; want %s", arg, code, msg, want)
		}
	}
	for _, c := range []struct {
		args []string
		want string // empty: it is good
	}{
		{[]string{"allow:user=1", "deny:user=2", "allow"}, ""},
		{[]string{"deny:user=1,group=2", "allow:user=1", "allow:group=1"}, ""},
		{[]string{"allow", "deny:user=1"}, "guest[1]: deny:user=1: this rule is never reached: guest[0] (allow)"},
		{[]string{"allow:user=1", "deny", "allow:group=1"}, "guest[2]: allow:group=1: this rule is never reached: guest[1] (deny)"},
		{[]string{"allow:user=1", "deny:user=1,group=2"}, "guest[1]: "},
		{[]string{"deny:user=1,memory=1GiB"}, "memory: 1GiB: a program that may not attach has no limits"},
		{[]string{"deny:user=1,serve=a*"}, "serve: a*: a program"},
		{[]string{"allow:queues=1"}, "queues: 1: this daemon lends none"},
	} {
		args := []string{"--interface=e"}
		for _, a := range c.args {
			args = append(args, "--guest", a)
		}
		if _, code, msg := load(t, args...); (code == exitOK) != (c.want == "") || !strings.Contains(strings.Join(strings.Fields(msg), " "), c.want) {
			t.Errorf("%v: %d, %s; want %q", c.args, code, msg, c.want)
		}
	}
	if _, code, msg := load(t, "--interface=e", "--socket-mode", "rw"); code != exitUsage || !strings.Contains(msg, "octal") {
		t.Errorf("--socket-mode rw: %d, %s", code, msg)
	}
}

// A program attaches by the control socket and works; the daemon says who is there. Its
// log does so once the program serves peers: not of each that only looks.
func TestGuestOfDaemon(t *testing.T) {
	conn, cfg := notifySocket(t), testConfig(t)
	cfg.Guests = []GuestConfig{{Serve: "mine-*"}}
	p := servePipe(t, cfg)
	receive(t, conn)
	ctx := limited(t)
	g, err := xdpfab.Open(ctx, "pipe", xdpfab.DomainAttr{Control: cfg.Control, Attach: fi.AttachAlways})
	if err != nil {
		t.Fatal(err)
	}
	if g.Interface().Daemon != cfg.Control {
		t.Errorf("interface %+v", g.Interface())
	}
	other, err := p.client.NewRegion("words", 4096)
	if err != nil {
		t.Fatal(err)
	}
	own, err := p.client.NewEndpoint(xdpfab.EndpointAttr{})
	if err == nil {
		err = own.Enable()
	}
	if err != nil {
		t.Fatal(err)
	}
	peer, err := g.Dial(ctx, p.client.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	w, err := xdpfab.Word[uint64](ctx, peer, "words", 0)
	if err == nil {
		_, err = w.Add(ctx, 5)
	}
	if v, e := other.Uint64(0); err != nil || e != nil || v.Load() != 5 {
		t.Errorf("add: %v", errors.Join(err, e))
	}
	mem, err := mr.Memfd("yours", 4096)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Register(mem, mr.Options{Name: "yours"}); !errors.Is(err, xdpfab.ErrDenied) || !strings.Contains(err.Error(), "rule guest[0]") {
		t.Errorf("a region that the rule does not allow: %v", err)
	}
	c, err := control.Dial(cfg.Control)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := c.Status(ctx)
	if err != nil || len(s.Guests) != 1 || s.Guests[0].PID != os.Getpid() || s.Guests[0].User == "" || s.Guests[0].Taken == 0 {
		t.Errorf("status: %v, %+v", err, s.Guests)
	}
	checkPeers(t, c, p.client, g)
	if strings.Contains(p.log.String(), "msg=\"guest ") {
		t.Errorf("a program that uses other nodes' memory has lines in the log:\n%s", p.log)
	}
	served, err := g.Register(mem, mr.Options{Name: "mine-own", AuthKey: []byte("one-one-one-one-one")})
	if err != nil {
		t.Fatal(err)
	}
	var list control.RegionList
	if err := c.Call(ctx, "region-list", nil, &list); err != nil || len(list.Guests) != 1 || !list.Guests[0].AuthKey {
		t.Errorf("regions of guests: %v, %+v, want one with an authorization key", err, list.Guests)
	}
	if n := strings.Count(p.log.String(), "level=INFO msg=\"guest serves peers\""); n != 1 {
		t.Errorf("the log has %d lines that a guest serves peers, want one:\n%s", n, p.log)
	}
	if err := served.Close(); err != nil {
		t.Error(err)
	}
	if err := p.end(t); err != nil {
		t.Error(err)
	}
	if _, err := w.Add(ctx, 1); !errors.Is(err, xdpfab.ErrHostLost) {
		t.Errorf("after the daemon's end: %v", err)
	}
	if err := errors.Join(g.CloseAll(), mem.Close()); err != nil {
		t.Error(err)
	}
	if want := "level=INFO msg=\"guest gone\""; !strings.Contains(p.log.String(), want) {
		t.Errorf("log lacks %q:\n%s", want, p.log)
	}
}

// checkPeers checks that the daemon and the peer of a guest count the same traffic, and
// that the guest leaves that to the daemon.
func checkPeers(t *testing.T, c *control.Client, peer, guest *xdpfab.Domain) {
	t.Helper()
	var here control.Peers
	if err := c.Call(limited(t), "peers", control.AskPeers{Limit: 10}, &here); err != nil {
		t.Fatal(err)
	}
	there, err := peer.PeerStats()
	if err != nil || len(there) != 1 || here.Total != 1 || len(here.Peers) != 1 {
		t.Fatalf("%v: the peer has sessions with %d nodes, the daemon says %+v; want one", err, len(there), here)
	}
	p := here.Peers[0]
	for _, s := range there { // by the daemon's address
		if p.Ops < 2 || p.Ops != s["ops_executed"] || p.Frames != s["frames_executed"] || s["sessions"] != 1 || s["ops_sent"] != 0 {
			t.Errorf("the daemon counts %d operations in %d frames, the peer %v", p.Ops, p.Frames, s)
		}
	}
	if p.Peer != peer.Name(0) || p.Role != "initiator" || p.State != "open" || p.RTT <= 0 || p.BytesSent == 0 {
		t.Errorf("the daemon says %+v, want an initiator's open session with %s", p, peer.Name(0))
	}
	if _, err := guest.PeerStats(); !errors.Is(err, xdpfab.ErrNotImplemented) || !strings.Contains(err.Error(), "xdpfab stat peers") {
		t.Errorf("sessions of a guest: %v", err)
	}
}

// A program more than the rule has places for is refused, until another one has gone.
func TestGuestsOfRule(t *testing.T) {
	wait := placeWait
	placeWait = time.Millisecond
	defer func() { placeWait = wait }()
	conn, cfg := notifySocket(t), testConfig(t)
	cfg.Guests = []GuestConfig{{Serve: "*", Guests: 1}}
	p := servePipe(t, cfg)
	receive(t, conn)
	open := func() (*xdpfab.Domain, error) {
		return xdpfab.Open(limited(t), "pipe", xdpfab.DomainAttr{Control: cfg.Control, Attach: fi.AttachAlways})
	}
	first, err := open()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(); !errors.Is(err, xdpfab.ErrDenied) || !strings.Contains(err.Error(), "rule guest[0] (allow:guests=1)") {
		t.Errorf("a second program: %v", err)
	}
	if err := first.CloseAll(); err != nil {
		t.Error(err)
	}
	testnet.Eventually(t, "the place given back", func() bool {
		var second *xdpfab.Domain
		if second, err = open(); err == nil {
			err = second.CloseAll()
		}
		return err == nil
	})
	if err := p.end(t); err != nil {
		t.Error(err)
	}
}

func TestGuestRefused(t *testing.T) {
	conn, cfg := notifySocket(t), testConfig(t)
	cfg.Guests = []GuestConfig{{Deny: true}}
	p := servePipe(t, cfg)
	receive(t, conn)
	_, err := xdpfab.Open(limited(t), "pipe", xdpfab.DomainAttr{Control: cfg.Control})
	if !errors.Is(err, xdpfab.ErrDenied) || !strings.Contains(err.Error(), "rule guest[0] (deny:serve=)") {
		t.Errorf("%v", err)
	}
	if err := p.end(t); err != nil {
		t.Error(err)
	}
	if !strings.Contains(p.log.String(), "guest refused") {
		t.Errorf("log: %s", p.log)
	}
}

// A daemon that takes another's place asks for it only when it knows whom its rules are
// about.
func TestTakeoverKnowsItsRules(t *testing.T) {
	cfg := Config{Interface: "absent0", Control: filepath.Join(t.TempDir(), "x.sock"), Guests: []GuestConfig{{User: "nobody-of-this-name"}}}
	err := takeOver(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "guest[0].user") {
		t.Errorf("%v; want that the user is unknown", err)
	}
}
