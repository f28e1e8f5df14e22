// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/pflag"
)

// load runs the command line up to the configuration.
func load(t *testing.T, args ...string) (Config, int, string) {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(append(args, "--print-config"), &out, &errs)
	c := defaultConfig()
	if code == exitOK {
		if _, err := parseFile("printed", out.String(), &c); err != nil {
			t.Fatalf("%v in\n%s", err, out.String())
		}
	}
	return c, code, unfolded(errs.String())
}

// unfolded is an error in one line: see tell.Fold.
func unfolded(text string) string { return strings.ReplaceAll(text, "\n  ", " ") }

func TestFlagsOverrideFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.toml")
	text := "interface = \"eth0\"\nqueues = 3\nspread = true\nwindow = 7\n[[region]]\nname = \"a\"\nsize = 1\nkey = 9\n[[region]]\nname=\"b\"\nsize=2\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, code, msg := load(t, "--config", path, "--queues=1", "--spread=false", "--udp=false", "--cores", "4,5", "--log-level", "warn",
		"--region", "b=64KiB:ro", "--region", "c=3")
	want := defaultConfig()
	want.Interface, want.Queues, want.Window, want.UDP, want.Cores, want.LogLevel = "eth0", 1, 7, false, []int{4, 5}, 4
	want.Control = "/run/xdpfabd/eth0.sock"
	for _, text := range []string{"a=1:key=9", "b=64KiB:ro", "c=3"} {
		r, _ := parseRegion(text)
		want.Regions = append(want.Regions, r)
	}
	if code != exitOK || !reflect.DeepEqual(c, want) {
		t.Errorf("%d %s\n got %+v\nwant %+v", code, msg, c, want)
	}
}

func TestWrongArguments(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.toml")
	if err := os.WriteFile(path, []byte("interface=\"e\"\n[[region]]\nname=\"a\"\nsize=1\nkey=5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"nothing":        {nil, "interface: missing"},
		"background":     {[]string{"--daemon"}, "unknown flag: --daemon: it always runs in the foreground; `systemctl start"},
		"background, -d": {[]string{"-d"}, "in -d: it always runs in the foreground; `systemctl start"},
		"unknown flag":   {[]string{"--queus=1"}, "unknown flag: --queus, did you mean --queues?; see `xdpfabd --help`"},
		"argument":       {[]string{"eth0"}, "unexpected argument \"eth0\": want flags alone, such as --interface eth0"},
		"queues":         {[]string{"--queues=x"}, `"x": want a number from 0 to 64`},
		"no file":        {[]string{"--config=/nonexistent/x"}, "no such file"},
		"region":         {[]string{"--interface=e", "--region", "a=1x"}, `--region a=1x: size: "1x": want bytes`},
		"same name":      {[]string{"--interface=e", "--region=a=1", "--region=a=2"}, `--region a: name: "a": another region has this name; want one of its own`},
		"flag and file":  {[]string{"--config", path, "--region=b=1:key=5"}, `--region b: key: 0x5: region "a" has this key`},
		"give-up":        {[]string{"--interface=e", "--rto-min=6s"}, "--rto-min: 6s: want less than the 5s of give-up"},
		"rule":           {[]string{"--interface=e", "--guest=allow", "--guest=deny:socket=/x"}, `--guest deny:socket=/x: socket: "/x": want the path of one`},
		"no size":        {[]string{"--interface=e", "--region=a:ro"}, "--region a: size: missing: want bytes"},
		"no equals":      {[]string{"--interface=e", "--region=a"}, `xdpfabd: --region "a": want name=size`},
		"no verb":        {[]string{"--interface=e", "--guest=a"}, `xdpfabd: --guest "a": want allow or deny`},
		"no path":        {[]string{"--interface=e", "--socket=:mode=0600"}, `xdpfabd: --socket ":mode=0600": want a path`},
		"address":        {[]string{"--interface=10.0.0.2"}, "--interface: \"10.0.0.2\": want the name of a network interface, not an address: `ip address` shows"},
		"one dash":       {[]string{"-interface", "eth0"}, `"-interface": want two dashes: --interface eth0`},
		"read-only":      {[]string{"--interface=e", "--region=a=8:read-only"}, `"read-only", did you mean access=read?: want ro, wo`},
		"budget alone":   {[]string{"--interface=e", "--busy-budget=9"}, "--busy-budget: 9: no driver is polled without busy-poll; want busy-poll"},
		"two tasks":      {[]string{"--interface=e", "--check"}, "--print-config with --check: only one of them would be done; want one of them"},
		"takeover, too":  {[]string{"--interface=e", "--takeover"}, "--print-config with --takeover: only one"},
		"takeover":       {[]string{"--takeover=2"}, `--takeover: "2": want true or false`},
		"no directory":   {[]string{"--interface=e", "--node=n"}, `--node: "n" is a name in the directory, and none is configured; want directory`},
		"blank":          {[]string{"--interface=e", "--region=a b=4KiB"}, `name: "a b": want a name of printable characters without spaces`},
		"two addresses":  {[]string{"-i=e", "--metrics-address=:1", "--metrics-address=:2"}, `--metrics-address: given twice, as ":1" and ":2": want one of them`},
		"two of them":    {[]string{"--interface=e", "-i", "f"}, `--interface: given twice, as "e" and "f": one daemon serves one interface`},
		"two files":      {[]string{"--config", path, "--config", "/x"}, `and "/x": want one file`},
		"letter":         {[]string{"-i", "e", "-r", "a=4KiB"}, "did you mean --rto-min or --resident-sessions or --region?; see"},
		"comma":          {[]string{"-i", "e", "--region=a=4KiB,ro"}, `size: "4KiB,ro" has options behind a comma: want a colon before them: a=4KiB:ro`},
		"colons":         {[]string{"-i", "e", "--region=a=4KiB:resident:ro"}, `"resident:ro": want commas between options: resident,ro`},
		"short give-up":  {[]string{"-i", "e", "--give-up=1ms"}, `--give-up: 1ms: want more than the 10ms of rto-min`},
		"replaced":       {[]string{"--config", path, "--region=a="}, "xdpfabd: --region a: size: missing"},
	} {
		if _, code, msg := load(t, c.args...); code != exitUsage || !strings.HasPrefix(msg, "xdpfabd: ") || !strings.Contains(msg, c.want) {
			t.Errorf("%s: code %d, %q; want 2, %q", name, code, msg, c.want)
		}
	}
	var errs bytes.Buffer
	if code := run([]string{"-i", "e", "--check", "--takeover"}, &errs, &errs); code != exitUsage ||
		!strings.Contains(errs.String(), "says what a takeover would do, too: leave out --takeover") {
		t.Errorf("a check of a takeover: %d, %q", code, errs.String())
	}
	for flag, want := range map[string]string{"queues": "number, as in --queues 2", "log-level": "level, as in --log-level info", "socket": "socket, as in"} {
		errs.Reset()
		if code := run([]string{"--" + flag}, &errs, &errs); code != exitUsage || !strings.HasPrefix(errs.String(), "xdpfabd: --"+flag+" needs a value: want its "+want) {
			t.Errorf("--%s: %d, %q; want %s", flag, code, errs.String(), want)
		}
	}
	errs.Reset()
	const good = "the configuration is good: 1 region (a) on e, which is not there at present; 2 rules for programs; control socket /run/xdpfabd/e.sock\n"
	if code := run([]string{"--config", path, "--guest=deny:user=1", "--guest=allow", "--check"}, &errs, &errs); code != exitOK || errs.String() != good {
		t.Errorf("a check that finds nothing: %d, %q; want %q", code, errs.String(), good)
	}
	errs.Reset()
	if code := run([]string{"--interface=e", "--cores=1000", "--check"}, &errs, &errs); code != exitUsage || !strings.Contains(errs.String(), "cores: ") {
		t.Errorf("a core that is not there: %d, %q", code, errs.String())
	}
}

func TestHelpAndCompletion(t *testing.T) {
	var out bytes.Buffer
	if code := run([]string{"--help"}, &out, &out); code != exitOK || out.String() != brief {
		t.Errorf("--help: %d", code)
	}
	if code := run([]string{"--help-all"}, &out, &out); code != exitOK {
		t.Errorf("--help-all: %d", code)
	}
	for line := range strings.Lines(examples) {
		if !strings.Contains(out.String(), strings.TrimRight(line, "\n")) {
			t.Errorf("help lacks the example %q", line)
		}
	}
	newCommand(&out, &out).Flags().VisitAll(func(f *pflag.Flag) {
		if !strings.Contains(out.String(), "--"+f.Name) {
			t.Errorf("help lacks --%s", f.Name)
		}
		if !regexp.MustCompile(`--` + f.Name + `\b`).MatchString(brief) {
			t.Errorf("the brief help lacks --%s", f.Name)
		}
	})
	for _, shell := range []string{"bash", "zsh", "fish"} {
		out.Reset()
		if code := run([]string{"completion", shell}, &out, &out); code != exitOK || !strings.Contains(out.String(), "xdpfabd") {
			t.Errorf("completion %s: %d", shell, code)
		}
	}
	out.Reset()
	if run([]string{"__complete", "--copy", ""}, &out, &out); !strings.Contains(out.String(), "zero-copy\n") {
		t.Errorf("completion of --copy: %q", out.String())
	}
}

// The help has every setting of a rule. deny is the verb.
func TestHelpHasGuestSettings(t *testing.T) {
	_, text, _ := strings.Cut(long, "--guest allow|deny")
	text, _, found := strings.Cut(text, "\n\n")
	if !found {
		t.Fatal("the help has no paragraph on --guest")
	}
	for _, o := range guestOptions[:len(guestOptions)-1] {
		if !regexp.MustCompile(`\b` + o.key + `\b`).MatchString(text) {
			t.Errorf("the help of --guest lacks %s", o.key)
		}
	}
}

// The text above the flags fits a terminal, and --help is two screens of one.
func TestHelpWidth(t *testing.T) {
	for line := range strings.SplitSeq(long+"\n"+brief, "\n") {
		if n := utf8.RuneCountInString(line); n > 100 {
			t.Errorf("%d columns, want at most 100: %s", n, line)
		}
	}
	if n := strings.Count(brief, "\n"); n > 80 {
		t.Errorf("the brief help has %d lines, want at most 80", n)
	}
}
