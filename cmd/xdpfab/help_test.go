// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/route"
	"github.com/xdpfab/xdpfab/xdpfab"
)

func TestExitCodes(t *testing.T) {
	op := func(certainty, cause error) error { return &xdpfab.OpError{Certainty: certainty, Cause: cause} }
	for _, c := range []struct {
		err  error
		code int
	}{
		{nil, exitOK},
		{errors.New("any"), exitFailed},
		{op(xdpfab.ErrNotExecuted, xdpfab.ErrNoKey), exitFailed},
		{op(xdpfab.ErrNotExecuted, xdpfab.ErrPeerSilent), exitUnreachable},
		{op(xdpfab.ErrNotExecuted, xdpfab.ErrPeerClosed), exitUnreachable},
		{op(xdpfab.ErrNotExecuted, xdpfab.ErrInterfaceLost), exitInterface},
		{op(xdpfab.ErrNotExecuted, xdpfab.ErrHostLost), exitUnreachable},
		{op(xdpfab.ErrOutcomeUnknown, xdpfab.ErrHostLost), exitUnknown},
		{withoutEffect(op(xdpfab.ErrOutcomeUnknown, xdpfab.ErrHostLost)), exitUnreachable},
		{withoutEffect(op(xdpfab.ErrOutcomeUnknown, xdpfab.ErrPeerSilent)), exitUnreachable},
		{withoutEffect(op(xdpfab.ErrPeerRestarted, xdpfab.ErrPeerRestarted)), exitUnknown},
		{withoutEffect(errors.Join(nil, op(xdpfab.ErrOutcomeUnknown, xdpfab.ErrPeerSilent))), exitUnreachable},
		{op(xdpfab.ErrOutcomeUnknown, xdpfab.ErrInterfaceLost), exitUnknown},
		{op(xdpfab.ErrOutcomeUnknown, xdpfab.ErrPeerSilent), exitUnknown},
		{op(xdpfab.ErrPeerRestarted, xdpfab.ErrPeerRestarted), exitUnknown},
		{fmt.Errorf("x: %w", route.ErrUnreachable), exitUnreachable},
		{fmt.Errorf("x: %w", fs.ErrPermission), exitInterface},
		{fmt.Errorf("x: %w", control.ErrSilent), exitUnreachable},
		{fmt.Errorf("%w of this network namespace", control.ErrNoDaemon), exitUnreachable},
		{usage(&cobra.Command{}, "x"), exitUsage},
	} {
		if got := exitCode(c.err); got != c.code {
			t.Errorf("%v: %d, want %d", c.err, got, c.code)
		}
	}
}

func TestOneLine(t *testing.T) {
	err := errors.Join(errors.New("xdpfab: port: first"), errors.New("second"))
	if got := oneLine(err); got != "xdpfab: first; second" {
		t.Error(got)
	}
}

// The flags of a command stand before those that lead to the peer, in lines that fit.
func TestHelpOfFlags(t *testing.T) {
	r := newNode(t).run("", "watch", "--help")
	own, way, is := strings.Cut(r.out, "\n\nFlags for the interface, and the way to the peer:\n")
	if !is || !strings.Contains(own, "--until") || !strings.Contains(own, "--json") || strings.Contains(own, "--transport") ||
		!strings.Contains(way, "--transport") || strings.Contains(way, "--until") {
		t.Error(r.out)
	}
	for line := range strings.Lines(r.out) {
		if utf8.RuneCountInString(line) > helpWidth+1 {
			t.Errorf("%d columns: %s", utf8.RuneCountInString(line), line)
		}
	}
}

// Every command has examples and exit codes in its help, and completion scripts come out.
func TestHelp(t *testing.T) {
	n := newNode(t)
	commands := (&app{}).root().Commands()
	for _, c := range slices.Clone(commands) {
		for _, sub := range c.Commands() {
			if !strings.HasPrefix(sub.Example, "  xdpfab "+c.Name()) {
				t.Errorf("%s %s: examples %q", c.Name(), sub.Name(), sub.Example)
			}
		}
	}
	for _, c := range commands {
		r := n.run("", c.Name(), "--help")
		if r.code != 0 || !strings.Contains(r.out, "Examples:\n  ") || !strings.Contains(r.out, "xdpfab "+c.Name()) ||
			strings.Count(r.out, "Exit codes:") != 1 || r.err != "" {
			t.Errorf("%s --help: %d, %s%s", c.Name(), r.code, r.out, r.err)
		}
	}
	if r := n.run("", "completion", "bash"); r.code != 0 || !strings.Contains(r.out, "xdpfab") {
		t.Errorf("completion: %d, %.100s", r.code, r.out)
	}
	r := n.run("", "--version")
	if r.code != 0 || !strings.HasPrefix(r.out, "xdpfab version 0.") || !strings.Contains(r.out, "\n  wire      version 1: memory messages ") {
		t.Errorf("version: %+v", r)
	}
	checkDebVersion(t, r.out)
	if v := n.run("", "version"); v != r {
		t.Errorf("version: %+v, want %+v", v, r)
	}
	if v := n.run("", "version", "--json"); v.code != 0 || !strings.Contains(v.out, `"protocols":[{"name":"wire","version":1,`) {
		t.Errorf("version: %+v", v)
	}
	for args, want := range map[string]string{"atomic msw": "mswap", "atomic mswap int1": "int16", "info l": "lo", "bench x --op f": "fetch_add"} {
		if r := n.run("", append([]string{"__complete"}, strings.Fields(args)...)...); !strings.Contains(r.out, want) {
			t.Errorf("completion of %q: %q, want %s", args, r.out, want)
		}
	}
}

// checkDebVersion checks that the packages take their version from what --version says,
// which has other lines behind that.
func checkDebVersion(t *testing.T, said string) {
	t.Helper()
	const script = "../../scripts/deb"
	if _, err := os.Stat(script); err != nil {
		t.Log("no version of packages: ", err) // in a virtual machine
		return
	}
	numbers := exec.Command(script, "--version")
	numbers.Stdin = strings.NewReader(said)
	out, err := numbers.CombinedOutput()
	if number := regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(~dev\+[0-9]{8}\.[0-9]{6}(\.[0-9a-z.]+)?)?\n$`); err != nil ||
		!number.Match(out) {
		t.Errorf("the version of packages is %q, %v", out, err)
	}
}

// The transcript of a newcomer has the protocols of this release.
func TestTranscriptOfVersions(t *testing.T) {
	text, err := os.ReadFile("../../docs/transcripts/newcomer.txt")
	if err != nil {
		t.Fatal(err)
	}
	r := build()
	for line := range strings.Lines(r.Text("xdpfab")) {
		if strings.Contains(line, "  version ") && !strings.Contains(string(text), line) {
			t.Errorf("docs/transcripts/newcomer.txt lacks %q: make test-newcomer UPDATE=1 writes it anew", line)
		}
	}
}
