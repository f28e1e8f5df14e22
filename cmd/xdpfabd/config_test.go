// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// check parses and validates, as load does with a file and no flags.
func check(text string) (Config, error) {
	c := defaultConfig()
	f, err := parseFile("x.toml", text, &c)
	if err == nil {
		err = f.errors(c.validate())
	}
	return c, err
}

func ptr[T any](v T) *T { return &v }

func TestFullFile(t *testing.T) {
	got, err := check(`
interface = "ens1f0np0"
queues = 2
cores = [0,
  1] # two lines
spin = "1ms"
copy = "zero-copy"
generic = true
udp = true
window = 8
give-up = "2s"
rto-min = "20ms"
idle-retire = "2m"
control = "/tmp/c.sock"
log-level = "debug"
log-format = "json"
[[region]]
name = "a"
size = 4096
key = 7
access = "read"
huge = "never"
[[region]]
name = "b"
size = "2MiB"
key = "0xffffffffffffffff"
access = "write"
backing = "memfd"
[[region]]
name = "c"
backing = "./c"
`)
	want := Config{
		Interface: "ens1f0np0", Queues: 2, Cores: []int{0, 1}, Spin: time.Millisecond, Copy: xdpfab.ZeroCopyForce,
		Generic: true, UDP: true, Window: 8, GiveUp: 2 * time.Second, RTOMin: 20 * time.Millisecond,
		IdleRetire: 2 * time.Minute, Control: "/tmp/c.sock", LogLevel: -4, LogFormat: logJSON,
		Regions: []RegionConfig{
			{Name: "a", Size: 4096, Key: ptr(uint64(7)), Access: mr.RemoteRead, Backing: "anonymous", Huge: mr.HugeNever},
			{Name: "b", Size: 2 << 20, Key: ptr(^uint64(0)), Access: mr.RemoteWrite, Backing: "memfd"},
			{Name: "c", Access: mr.RemoteRead | mr.RemoteWrite, Backing: "./c"},
		},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n got %+v\nwant %+v", err, got, want)
	}
	if attr := got.domainAttr(); attr.Window != 8 || attr.Copy != xdpfab.ZeroCopyForce || !attr.UDP || attr.RTOMin != 20*time.Millisecond {
		t.Errorf("domain attributes: %+v", attr)
	}
}

// wrongFiles are texts and an error that each must give, with line and key.
var wrongFiles = map[string]struct{ text, want string }{
	"size":           {"interface=\"e\"\n[[region]]\nname=\"a\"\nsize=1\n[[region]]\nname=\"b\"\nsize = \"12q\"", `x.toml:7: region[1].size: "12q": want bytes, e.g. 65536 or "64KiB"`},
	"negative size":  {"[[region]]\nsize = -1", `x.toml:2: region[0].size: "-1": want bytes`},
	"huge size":      {"[[region]]\nsize = \"99999999GiB\"", `x.toml:2: region[0].size: "99999999GiB": want bytes`},
	"float size":     {"[[region]]\nsize = 1.5", `x.toml:2: region[0].size: 1.5: want an integer, or a string`},
	"no size":        {"interface=\"e\"\n\n[[region]]\nname=\"a\"", `x.toml:3: region[0].size: missing`},
	"no name":        {"interface=\"e\"\n[[region]]\nsize=1", `x.toml:2: region[0].name: missing`},
	"empty name":     {"[[region]]\nname=\"\"", `x.toml:2: region[0].name: "": want a name of 1 to 64 bytes`},
	"same name":      {"interface=\"e\"\n[[region]]\nname=\"a\"\nsize=1\n[[region]]\nsize=1\nname=\"a\"", `x.toml:7: region[1].name: "a": region[0] has this name`},
	"same key":       {"interface=\"e\"\n[[region]]\nname=\"a\"\nsize=1\nkey=5\n[[region]]\nname=\"b\"\nsize=1\nkey=\"0x5\"", `x.toml:9: region[1].key: 0x5: region[0] has this key`},
	"key":            {"[[region]]\nkey=\"c0ffee\"", `x.toml:2: region[0].key: "c0ffee": want a key`},
	"long key":       {"[[region]]\nkey=\"0x10000000000000000\"", `x.toml:2: region[0].key: "0x10000000000000000": want at most 64 bits`},
	"access":         {"[[region]]\naccess=\"rw\"", `x.toml:2: region[0].access: "rw": want "read", "write" or "both"`},
	"backing":        {"[[region]]\nbacking=\"disk\"", `x.toml:2: region[0].backing: "disk": want "anonymous", "memfd", or the path`},
	"huge memfd":     {"interface=\"e\"\n[[region]]\nname=\"a\"\nsize=1\nbacking=\"memfd\"\nhuge=\"require\"", `x.toml:6: region[0].huge: "require": huge pages go with anonymous`},
	"unknown key":    {"interface=\"e\"\nqueus = 3", `x.toml:2: queus: unknown key; known are interface, queues`},
	"unknown table":  {"interface=\"e\"\n[log]\nlevel=\"info\"", `x.toml:2: log: unknown key`},
	"region key":     {"[[region]]\n# size\nsise = 3", `x.toml:3: region[0].sise: unknown key; known are name, size`},
	"region table":   {"\n[region]\nname=\"a\"", `x.toml:2: region: want tables`},
	"inline regions": {"\nregion=[{name=\"a\", size=\"z\"}]", `x.toml:2: region[0].size: "z": want bytes`},
	"region numbers": {"region=[1]", `x.toml:1: region: want tables`},
	"queues":         {"queues = 65", `x.toml:1: queues: "65": want a number from 0 to 64`},
	"queues text":    {"queues = \"2\"", `x.toml:1: queues: 2: want an integer`},
	"cores":          {"\"cores\" = [1, -2]", `x.toml:1: cores: "-2": want CPU numbers`},
	"cores text":     {"cores = [1, \"x\"]", `x.toml:1: cores: x: want an integer`},
	"generic":        {"generic = 1", `x.toml:1: generic: 1: want true or false`},
	"spin":           {"s = '''\n\n'''\nspin = \"50\"", `x.toml:4: spin: "50": want a time from 1ns to 1h0m0s`},
	"copy":           {"copy = \"zerocopy\"", `x.toml:1: copy: copy mode "zerocopy": want auto, copy or zero-copy`},
	"window":         {"window = 0", `x.toml:1: window: "0": want a number from 1 to 64`},
	"never again":    {"interface=\"e\"\nrto-min = \"10s\"\ngive-up = \"1s\"", `x.toml:2: rto-min: 10s: want less than the 1s of give-up`},
	"idle":           {"interface=\"e\"\nidle-retire = \"1s\"", `x.toml:2: idle-retire: idle retirement after 1s: want more than`},
	"interface":      {"queues = 1", `interface: missing: set it`},
	"interface name": {"interface = \"eth 0\"", `x.toml:1: interface: "eth 0": want the name of a network interface`},
	"long interface": {"interface = \"abcdefghijklmnop\"", `1 to 15 bytes`},
	"long control":   {"interface=\"e\"\ncontrol=\"/" + strings.Repeat("x", 107) + "\"", `x.toml:2: control: path of 108 bytes: want at most 107`},
	"zero byte":      {"control=\"a\\u0000b\"", `x.toml:1: control: "a\x00b": want UTF-8 text`},
	"no toml":        {"interface = \"e\"\nqueues = = 1", `x.toml:2: queues: `},
	"column":         {"queues = = 1", `x.toml:1: queues: unexpected character U+003D '=' at start of value (column 10)`},
	"no value":       {"cores = [1,\n2,\n=3]", `x.toml:3: unexpected character U+003D '=' at start of value (column 1)`},
	"twice":          {"queues = 1\nqueues = 2", `x.toml:2: queues`},
	"open string":    {"\ninterface = \"e", `x.toml:2: interface`},
}

func TestWrongFiles(t *testing.T) {
	for name, c := range wrongFiles {
		if _, err := check(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s:\n got %v\nwant %s", name, err, c.want)
		}
	}
}

// All that is wrong is said at once, in the order of the file.
func TestAllErrorsInOrder(t *testing.T) {
	_, err := check("window = 99\nqueues = -1\nbogus = 1\n[[region]]\nsize = \"x\"\nname = \"\"")
	var lines []string
	for l := range strings.Lines(err.Error()) {
		lines = append(lines, l[:len("x.toml:1")])
	}
	if got := strings.Join(lines, " "); got != "x.toml:1 x.toml:2 x.toml:3 x.toml:5 x.toml:6" {
		t.Errorf("order %s of\n%v", got, err)
	}
}

func TestLocate(t *testing.T) {
	got := locate("# c\na = \"\"\"\nb = 1\n\"\"\"\n\"q\\u0041\".x = '''''' # =\nlist = [ # [\n 1,\n]\n" +
		"[t . u]\nv = { w = 1,\n x = 2 }\n[[r]]\n[[r]]\n'k' = \"\\\"\\n\"\n[r.s]\nz=1\n[[r.n]]\r\ny=1\nend='a'")
	want := map[string]int{"a": 2, "qA.x": 5, "list": 6, "t.u": 9, "t.u.v": 10, "r[0]": 12, "r[1]": 13, "r[1].k": 14,
		"r[1].s": 15, "r[1].s.z": 16, "r[1].n[0]": 17, "r[1].n[0].y": 18, "r[1].n[0].end": 19}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

func TestExampleFile(t *testing.T) {
	text, err := os.ReadFile("xdpfabd.example.toml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := check(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Regions) != 3 || c.Regions[1].Size != 1<<20 || *c.Regions[1].Key != 0xc0ffee {
		t.Errorf("regions %+v", c.Regions)
	}
	c.Regions, c.Interface = nil, ""
	if !reflect.DeepEqual(c, defaultConfig()) {
		t.Errorf("the example says that it shows the defaults\n got %+v\nwant %+v", c, defaultConfig())
	}
	for _, o := range options {
		if !strings.Contains(string(text), "\n"+o.key+" = ") {
			t.Errorf("%s is missing in the example", o.key)
		}
	}
}

func TestParseRegion(t *testing.T) {
	base := defaultRegion()
	with := func(f func(*RegionConfig)) RegionConfig { r := base; f(&r); return r }
	for text, want := range map[string]RegionConfig{
		"counters=64KiB": with(func(r *RegionConfig) { r.Name, r.Size = "counters", 65536 }),
		"a=1:ro":         with(func(r *RegionConfig) { r.Name, r.Size, r.Access = "a", 1, mr.RemoteRead }),
		"a=1:wo,memfd":   with(func(r *RegionConfig) { r.Name, r.Size, r.Access, r.Backing = "a", 1, mr.RemoteWrite, "memfd" }),
		"a=2GiB:key=0x10,huge=require": with(func(r *RegionConfig) {
			r.Name, r.Size, r.Key, r.Huge = "a", 2<<30, ptr(uint64(16)), mr.HugeRequire
		}),
		"a=:backing=/x:y=z": with(func(r *RegionConfig) { r.Name, r.Backing = "a", "/x:y=z" }),
	} {
		if got, err := parseRegion(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %+v; want %+v", text, err, got, want)
		}
	}
	for text, want := range map[string]string{
		"":                            "want name=size",
		"a":                           "want name=size",
		"=1":                          "name: ",
		"a=1q":                        "size: ",
		"a=1:rx":                      `"rx": want ro, wo`,
		"a=1:ro,":                     `"": want ro, wo`,
		"a=1:key=zz":                  "key: ",
		"a=1:ro,wo":                   `access: given twice, as "ro" and "wo"`,
		"a=1:key=1,access=both,key=2": "key: given twice",
	} {
		if _, err := parseRegion(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", text, err, want)
		}
	}
}

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
	return c, code, errs.String()
}

func TestFlagsOverrideFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.toml")
	text := "interface = \"eth0\"\nqueues = 3\ngeneric = true\nwindow = 7\n[[region]]\nname = \"a\"\nsize = 1\nkey = 9\n[[region]]\nname=\"b\"\nsize=2\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, code, msg := load(t, "--config", path, "--queues=1", "--generic=false", "--udp", "--cores", "4,5", "--log-level", "warn",
		"--region", "b=64KiB:ro", "--region", "c=3")
	want := defaultConfig()
	want.Interface, want.Queues, want.Window, want.UDP, want.Cores, want.LogLevel = "eth0", 1, 7, true, []int{4, 5}, 4
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
		"nothing":       {nil, "interface: missing"},
		"unknown flag":  {[]string{"--queus=1"}, "unknown flag: --queus"},
		"argument":      {[]string{"eth0"}, "eth0"},
		"queues":        {[]string{"--queues=x"}, `"x": want a number from 0 to 64`},
		"no file":       {[]string{"--config=/nonexistent/x"}, "no such file"},
		"region":        {[]string{"--interface=e", "--region", "a=1x"}, `--region a=1x: size: "1x": want bytes`},
		"same name":     {[]string{"--interface=e", "--region=a=1", "--region=a=2"}, `region[1].name: "a": region[0] has this name`},
		"flag and file": {[]string{"--config", path, "--region=b=1:key=5"}, "region[1].key: 0x5: region[0] has"},
		"replaced":      {[]string{"--config", path, "--region=a="}, "xdpfabd: region[0].size: missing"},
	} {
		if _, code, msg := load(t, c.args...); code != exitUsage || !strings.HasPrefix(msg, "xdpfabd: ") || !strings.Contains(msg, c.want) {
			t.Errorf("%s: code %d, %q; want 2, %q", name, code, msg, c.want)
		}
	}
	var errs bytes.Buffer
	if code := run([]string{"--interface=e", "--cores=1000", "--check"}, &errs, &errs); code != exitUsage || !strings.Contains(errs.String(), "cores: ") {
		t.Errorf("a core that is not there: %d, %q", code, errs.String())
	}
}

func TestHelpAndCompletion(t *testing.T) {
	var out bytes.Buffer
	if code := run([]string{"--help"}, &out, &out); code != exitOK {
		t.Errorf("--help: %d", code)
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

// FuzzConfig: no text makes the parser panic or hang; each error names a line or
// a key; what is accepted prints as text that means the same.
func FuzzConfig(f *testing.F) {
	text, err := os.ReadFile("xdpfabd.example.toml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	for _, c := range wrongFiles {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		locate(text)
		c, err := check(text)
		if err != nil {
			for _, e := range flatten(err) {
				if !strings.Contains(e.Error(), ": ") {
					t.Errorf("error without a place: %v", e)
				}
			}
			return
		}
		var out bytes.Buffer
		if err := c.print(&out); err != nil {
			t.Fatalf("print: %v", err)
		}
		again, err := check(out.String())
		c.Control = c.controlPath()
		if err != nil || !reflect.DeepEqual(again, c) {
			t.Errorf("%v\nprinted %s\n got %+v\nwant %+v", err, out.String(), again, c)
		}
	})
}

func flatten(err error) []error {
	var many interface{ Unwrap() []error }
	if errors.As(err, &many) {
		return many.Unwrap()
	}
	return []error{err}
}
