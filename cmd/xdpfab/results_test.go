// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/tell"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// An operation that ran, and whose result cannot be printed, has an exit code of its own:
// 1 means that it never ran, and a script would run it anew.
func TestFullStdout(t *testing.T) {
	n := newNode(t)
	file := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(file, []byte("12345678"), 0o600); err != nil {
		t.Fatal(err)
	}
	batch := `{"op":"sum","dt":"uint64","n":1,"buf":"0100000000000000"}` + "\n"
	for _, c := range []struct {
		line, in string
		code     int
		say      string
	}{
		{"atomic sum uint64 1 --peer PEER --region r", "", exitUnknown, "the operation ran; its result could not be printed"},
		{"atomic sum uint64 1 --peer PEER --region r -q", "", exitUnknown, "ran; its result could not be printed"},
		{"atomic --batch - --peer PEER --region r", batch, exitUnknown, "ran; its result could not be printed"},
		{"put PEER " + file + " --region r --offset 64", "", exitUnknown, "the copy is complete; its report could not be printed"},
		{"get PEER " + file + " --region r", "", exitUnknown, "the copy is complete; its report could not be printed"},
		{"atomic read uint64 --peer PEER --region r", "", exitFailed, "no space left on device"},
		{"get PEER - --region r", "", exitFailed, "no space left on device"},
		{"list PEER", "", exitFailed, "no space left on device"},
	} {
		r := n.runFull(c.in, n.line(c.line)...)
		checkRefusal(t, c.line, r, c.code, c.say)
		if got := strings.Count(r.err, "no space left on device"); got != 1 {
			t.Errorf("%s: %q names the cause %d times", c.line, r.err, got)
		}
	}
	if r := n.run("", n.line("get PEER /dev/full --region r")...); r.code != exitFailed ||
		!strings.Contains(r.err, "0 of 65536 bytes were copied") || strings.Contains(r.err, "--resume") {
		t.Errorf("get to a device: %+v", r)
	}
	testnet.Eventually(t, "three sums ran", func() bool {
		return binary.LittleEndian.Uint64(n.mem.Bytes()) == 3
	})
	got := receiver(t, n)
	r := n.runFull("", n.line("send PEER hello")...)
	checkRefusal(t, "send", r, exitUnknown, "ran; its result could not be printed")
	if m := <-got; string(m.Bytes) != "hello" {
		t.Errorf("received %+v", m)
	}
	sender(t, n, mailbox, func(ctx context.Context, p *xdpfab.Peer) error { return p.Send(ctx, []byte("hi")) })
	r = n.runFull("", n.line("receive --count 1")...)
	checkRefusal(t, "receive", r, exitUnknown, "ran; its result could not be printed")
}

// A command whose reader has gone has the exit code that it has otherwise. One without
// end ends, and a batch runs to its end.
func TestUnreadStdout(t *testing.T) {
	n := newNode(t)
	batch := strings.Repeat(`{"op":"sum","dt":"uint64","n":1,"buf":"0100000000000000"}`+"\n", 4)
	for _, c := range []struct {
		line, in string
		code     int
	}{
		{"atomic sum uint64 1 --peer PEER --region r", "", exitOK},
		{"atomic --batch - --peer PEER --region r", batch, exitOK},
		{"atomic cswap uint64 1 --compare 4 --peer PEER --region r", "", exitNotSwapped},
		{"get PEER - --region r", "", exitOK},
		{"watch PEER --region r", "", exitOK},
		{"ping PEER", "", exitOK},
		{"list PEER", "", exitOK},
		{"--help", "", exitOK},
	} {
		args := n.line(c.line)
		if c.line == "--help" {
			args = []string{c.line}
		}
		if r := n.runUnread(c.in, args...); r.code != c.code || strings.Contains(r.err, "broken pipe") {
			t.Errorf("%s: code %d, want %d: %s", c.line, r.code, c.code, r.err)
		}
	}
	testnet.Eventually(t, "five sums ran", func() bool { return binary.LittleEndian.Uint64(n.mem.Bytes()) == 5 })
}

// A command that waits ends when the reader of its output goes, though it has nothing to
// write.
func TestReaderGoes(t *testing.T) {
	n := newNode(t)
	for line, begins := range map[string]string{
		"watch PEER --region r --until 77": "  0\n", "watch PEER": "", "receive --count 2": "", "bench PEER --region r --duration 1h": "",
		"ping PEER -c 2 --interval 1h": "ping " + peerAddr, "bench serve": "serving at ",
	} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		var errs lockedBuffer
		ctx, cancel := context.WithTimeout(t.Context(), 10*testnet.Patience)
		a := &app{open: n.open, in: strings.NewReader(""), out: w, err: &errs}
		done := make(chan int, 1)
		go func() { done <- a.run(ctx, n.line(line)) }()
		if begins == "" { // the reader may go before anything is connected
		} else if text, err := bufio.NewReader(r).ReadString('\n'); err != nil || !strings.Contains(text, begins) {
			t.Errorf("%s: %q, %v", line, text, err)
		}
		_ = r.Close()
		if code := <-done; code != exitOK || ctx.Err() != nil || strings.Contains(errs.String(), "xdpfab: ") {
			t.Errorf("%s: code %d, %v, %s", line, code, ctx.Err(), errs.String())
		}
		cancel()
		_ = w.Close()
	}
}

// A change of a daemon's regions is not undone when its result cannot be printed.
func TestFullStdoutOfChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.sock")
	l, err := control.Listen(t.Context(), path, control.Access{})
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan string, 3)
	verb := func(name string, result any) control.Verb {
		return control.Verb{Name: name, Do: func(context.Context, json.RawMessage) (any, error) {
			asked <- name
			return result, nil
		}}
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error)
	go func() {
		served <- control.ServeListener(ctx, l, control.Service{Verbs: []control.Verb{
			verb("create-region", control.Region{Name: "r"}), verb("remove-region", control.Region{Name: "r"}),
			verb("withdraw", control.Kept{})}})
	}()
	n := newNode(t)
	for line, name := range map[string]string{
		"region create r=4KiB": "create-region", "region remove r": "remove-region", "kept remove r": "withdraw",
	} {
		r := n.runFull("", append(strings.Fields(line), "--control", path)...)
		checkRefusal(t, line, r, exitUnknown, "ran; its result could not be printed")
		if was := <-asked; was != name {
			t.Errorf("%s: the daemon did %s", line, was)
		}
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// With --json an error is JSON, too, and says what is known of the operation.
func TestErrorsAsJSON(t *testing.T) {
	n := newNode(t)
	for _, c := range []struct {
		line, certainty string
		code            int
	}{
		{"atomic sum uint64 1 --peer PEER --region none --json", "not executed", exitFailed},
		{"atomic cswap uint64 1 --compare 5 --peer PEER --region r --json", "executed", exitNotSwapped},
		{"atomic sun uint64 1 --peer PEER --region r --json", "not executed", exitUsage},
		{"list PEER/9 --json", "not executed", exitFailed},
		{"atomic --no-such-flag --json", "not executed", exitUsage},
		{"lst --json", "not executed", exitUsage},
		{"watch PEER --region r --until 77 --wait 1ms --json", "", exitFailed},
		{"receive --wait 1ms --json", "", exitFailed},
	} {
		r := n.run("", n.line(c.line)...)
		var e errorReport
		if err := json.Unmarshal([]byte(r.err), &e); err != nil || e.Error == "" || e.Certainty != c.certainty ||
			e.Code != c.code || r.code != c.code {
			t.Errorf("%s: code %d, %q; want code %d, %s (%v)", c.line, r.code, r.err, c.code, c.certainty, err)
		}
	}
	r := n.runFull("", n.line("atomic sum uint64 1 --peer PEER --region r --json")...)
	if !strings.Contains(r.err, `"certainty":"executed","code":3`) {
		t.Errorf("full: %q", r.err)
	}
}

// A batch says of each line, and of all, whether operations ran.
func TestBatchErrorsAsJSON(t *testing.T) {
	n := newNode(t)
	n.begun = func(_, server *xdpfab.Domain) {
		if _, err := server.Register(n.mem, mr.Options{Name: "wo", Access: mr.RemoteWrite}); err != nil {
			t.Error(err)
		}
	}
	const bad, unread = `{"op":"sum"}`, `{"func":"base","op":"write","dt":"uint8","dst":"01","buf":"02"}`
	for in, want := range map[string]struct {
		line, all string
		code      int
	}{
		bad + "\n" + bad: {"not executed", "not executed", exitUsage},
		unread:           {"executed", "executed", exitFailed},
	} {
		r := n.run(in, n.line("atomic --batch - --peer PEER --region wo --json")...)
		var line batchResult
		var all errorReport
		if err := errors.Join(json.NewDecoder(strings.NewReader(r.out)).Decode(&line), json.Unmarshal([]byte(r.err), &all)); err != nil {
			t.Error(err)
		}
		if line.Certainty != want.line || all.Certainty != want.all || r.code != want.code {
			t.Errorf("%s: code %d, %s%s; want %+v", in, r.code, r.out, r.err, want)
		}
	}
}

// A region that does not grant a right is said to once, with one remedy.
func TestDeniedOnce(t *testing.T) {
	n := newNode(t)
	n.begun = func(_, server *xdpfab.Domain) {
		if _, err := server.Register(n.mem, mr.Options{Name: "wo", Access: mr.RemoteWrite}); err != nil {
			t.Error(err)
		}
	}
	for _, line := range []string{"ping PEER --region wo -q", "watch PEER --region wo", "get PEER - --region wo", "atomic read uint64 --peer PEER --region wo"} {
		r := n.run("", n.line(line)...)
		checkRefusal(t, line, r, exitFailed, `region "wo" grants write, and `)
		if strings.Count(r.err, "have its owner grant") != 1 || strings.Contains(r.err, "mr.") {
			t.Errorf("%s: %s", line, r.err)
		}
	}
}

// What a user may type instead of what is meant.
func TestNearMisses(t *testing.T) {
	n := newNode(t)
	for line, say := range map[string]string{
		"lst":                 `did you mean "list"?`,
		"atomic add uint64 1": "here it is sum",
		"atomic uint64 sum 1": `"uint64" is a datatype: the order is OP DATATYPE VALUE`,
		"stat foo":            "want guests or peers or regions or sessions",
		"stat region":         `did you mean "regions"?`,
		"stat --count 2":      "--count 2: want --watch",
		"info eth0 eth1":      "want one interface, or none for all",
		"receive 10.0.0.2":    "receive takes messages of all peers",
	} {
		checkRefusal(t, line, n.run("", strings.Fields(line)...), exitUsage, say)
	}
	r := n.run("", n.line("atomic write uint64 1 --form base --peer PEER --region r")...)
	if r.out != "1 element: done\n" {
		t.Errorf("output %q, error %q", r.out, r.err)
	}
}

// The text above a command's flags fits a terminal.
func TestHelpWidth(t *testing.T) {
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		for line := range strings.SplitSeq(c.Long, "\n") {
			if n := utf8.RuneCountInString(line); n > 90 {
				t.Errorf("%s --help: %d columns, want at most 90: %s", c.CommandPath(), n, line)
			}
		}
		for _, sub := range c.Commands() {
			check(sub)
		}
	}
	check((&app{}).root())
}

// Errors that lack a remedy on the way up get one here.
func TestRemedies(t *testing.T) {
	mac, err := wire.ParseAddr(peerAddr)
	if err != nil {
		t.Fatal(err)
	}
	lost := fmt.Errorf("read: %w", xdpfab.ErrHostLost)
	denied := fmt.Errorf("%w: or use UDP sockets: --transport udp (DomainAttr.Transport)", fs.ErrPermission)
	for got, want := range map[error]string{
		whyGivenUp(t.Context(), lost):                                   ": start it again, and run the command again",
		byIP(fmt.Errorf("%w; or have root start xdpfabd", denied), mac): "; --transport udp takes the peer's IP address in place of its MAC address",
		byIP(denied, mac): "--transport udp, and the peer's IP address in place of its MAC address",
		byIP(denied, wire.Addr{IP: netip.MustParseAddr("10.0.0.2")}): "--transport udp",
	} {
		if !strings.HasSuffix(tell.Plain(got), want) {
			t.Errorf("%s, want %q at the end", tell.Plain(got), want)
		}
	}
}
