// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"strings"
	"testing"
)

// wrongFiles are texts, and the error that each must give, with line and key.
var wrongFiles = map[string]struct{ text, want string }{
	"size":           {"interface=\"e\"\n[[region]]\nname=\"a\"\nsize=1\n[[region]]\nname=\"b\"\nsize = \"12q\"", `x.toml:7: region[1].size: "12q": want bytes, e.g. 65536, or a number of KiB, MiB, GiB or TiB (powers of 1024), e.g. "64KiB"`},
	"negative size":  {"[[region]]\nsize = -1", `x.toml:2: region[0].size: "-1": want bytes`},
	"huge size":      {"[[region]]\nsize = \"99999999GiB\"", `x.toml:2: region[0].size: "99999999GiB": want at most 64TiB`},
	"float size":     {"[[region]]\nsize = 1.5", `x.toml:2: region[0].size: "1.5": want bytes`},
	"no size":        {"interface=\"e\"\n\n[[region]]\nname=\"a\"", `x.toml:3: region[0].size: missing`},
	"no name":        {"interface=\"e\"\n[[region]]\nsize=1", `x.toml:2: region[0].name: missing`},
	"empty name":     {"[[region]]\nname=\"\"", `x.toml:2: region[0].name: "": want a name of 1 to 64 bytes`},
	"same name":      {"interface=\"e\"\n[[region]]\nname=\"a\"\nsize=1\n[[region]]\nsize=1\nname=\"a\"", `x.toml:7: region[1].name: "a": another region has this name; want one of its own`},
	"same key":       {"interface=\"e\"\n[[region]]\nname=\"a\"\nsize=1\nkey=5\n[[region]]\nname=\"b\"\nsize=1\nkey=\"0x5\"", `x.toml:9: region[1].key: 0x5: region "a" has this key`},
	"key":            {"[[region]]\nkey=\"c0ffee\"", `x.toml:2: region[0].key: "c0ffee": want a key`},
	"long key":       {"[[region]]\nkey=\"0x10000000000000000\"", `x.toml:2: region[0].key: "0x10000000000000000": want at most 64 bits`},
	"access":         {"[[region]]\naccess=\"rw\"", `x.toml:2: region[0].access: "rw", did you mean both?: want "read", "write" or "both"`},
	"top key below":  {"interface=\"e\"\n[[region]]\nname=\"a\"\nsize=8\nwindow=3", `x.toml:5: region[0].window: unknown key: it is a key of the daemon; want it above the first [[region]]; known are`},
	"below a rule":   {"[[guest]]\nlog-level=\"debug\"", `guest[0].log-level: unknown key: it is a key of the daemon; want it above the first [[guest]]`},
	"read-only":      {"[[region]]\nread-only=true", `region[0].read-only: unknown key, did you mean access, such as access = "read"?; known are`},
	"resident":       {"[[region]]\nresident=true", `region[0].resident: unknown key, did you mean backing = "resident"?; known are`},
	"action":         {"[[guest]]\naction=\"allow\"", `guest[0].action: unknown key: a rule allows unless it has deny = true; known are`},
	"short key":      {"[[guest]]\nmem=\"1GiB\"", `guest[0].mem: unknown key, did you mean memory?; known are`},
	"part of a key":  {"metrics = \":1\"", `x.toml:1: metrics: unknown key, did you mean metrics-address?; known are`},
	"mode above":     {"mode = \"0666\"", "x.toml:1: mode: unknown key: it is a key of [[socket]]; did you mean socket-mode?; known are"},
	"mtu":            {"mtu = 9000", "x.toml:1: mtu: unknown key: the MTU is the interface's: `ip link set dev eth0 mtu 9000`; known are"},
	"port":           {"metrics-address = \"127.0.0.1:99999\"", `"127.0.0.1:99999": want HOST:PORT to listen at, with a port up to 65535`},
	"range of cores": {"\ncores = [0-1]", `x.toml:2: cores: "0-1": want the number of each CPU, with commas, e.g. 0,1`},
	"range as text":  {"cores = 0-1", `x.toml:1: cores: "0-1": want the number of each CPU, with commas, e.g. 0,1`},
	"shut socket":    {"socket-mode = \"0000\"", `socket-mode: "0000": want permissions that let somebody write to it, e.g. "0600"`},
	"backing":        {"[[region]]\nbacking=\"disk\"", `x.toml:2: region[0].backing: "disk": want "anonymous", "memfd", "resident", or the path`},
	"huge memfd":     {"interface=\"e\"\n[[region]]\nname=\"a\"\nsize=1\nbacking=\"memfd\"\nhuge=\"require\"", `x.toml:6: region[0].huge: "require": huge pages go with anonymous`},
	"interfaces":     {"interface=\"e,f\"", `x.toml:1: interface: "e,f": one daemon serves one interface`},
	"huge resident":  {"interface=\"e\"\n[[region]]\nname=\"a\"\nsize=\"16GiB\"\nbacking=\"resident\"", `x.toml:4: region[0].size: 17179869184 bytes: a resident region has at most 8589934592 (8GiB)`},
	"unknown key":    {"interface=\"e\"\nqueus = 3", `x.toml:2: queus: unknown key, did you mean queues?; known are interface, queues`},
	"unknown table":  {"interface=\"e\"\n[log]\nlevel=\"info\"", `x.toml:2: log: unknown key`},
	"region key":     {"[[region]]\n# size\nsise = 3", `x.toml:3: region[0].sise: unknown key, did you mean size?; known are name, size`},
	"region table":   {"\n[region]\nname=\"a\"", `x.toml:2: region: want tables`},
	"inline regions": {"\nregion=[{name=\"a\", size=\"z\"}]", `x.toml:2: region[0].size: "z": want bytes`},
	"region numbers": {"region=[1]", `x.toml:1: region: want tables`},
	"queues":         {"queues = 65", `x.toml:1: queues: "65": want a number from 0 to 64`},
	"queues text":    {"queues = \"2\"", `x.toml:1: queues: "2": want no quotes: 2`},
	"bare word":      {"interface = veth0", `x.toml:1: interface: veth0: want quotes: interface = "veth0"`},
	"bare size":      {"[[region]]\nname = \"a\"\nsize = 64KiB # room", `x.toml:3: size: 64KiB: want quotes: size = "64KiB"`},
	"bare unit":      {"[[region]]\nsize = 64KB", `x.toml:2: size: "64KB", did you mean 64KiB?: want bytes, e.g. 65536, or a number of KiB, MiB, GiB or TiB`},
	"bare time":      {"spin = 50us", `x.toml:1: spin: 50us: want quotes: spin = "50us"`},
	"curly quotes":   {"interface = “veth0”", `x.toml:1: interface: unexpected character U+00E2`},
	"bare list":      {"cores = 2, 3", `x.toml:1: cores: 2, 3: want brackets: cores = [2, 3]`},
	"bare yes":       {"udp = yes", `x.toml:1: udp: "yes": want true or false`},
	"bare guest":     {"[[guest]]\nallow = \"all\"\nmemory = 1GiB", `x.toml:3: memory: 1GiB: want quotes: memory = "1GiB"`},
	"mode":           {"socket-mode = 666", `x.toml:1: socket-mode: 666: want quotes: "666"`},
	"no unit":        {"give-up = 5", `x.toml:1: give-up: 5: want a time from 1ms to 1h, e.g. "50us", "10ms" or "5s", in quotes`},
	"accesses":       {"[[region]]\naccess = [\"read\", \"write\"]", `x.toml:2: region[0].access: ["read", "write"]: want one of "read", "write" or "both", in quotes`},
	"cores":          {"\"cores\" = [1, -2]", `x.toml:1: cores: "-2": want CPU numbers`},
	"cores text":     {"cores = [1, \"x\"]", `x.toml:1: cores: x: want an integer`},
	"spread":         {"spread = 1", `x.toml:1: spread: 1: want true or false`},
	"spin":           {"s = '''\n\n'''\nspin = \"50\"", `x.toml:4: spin: "50": want a time from 1ns to 1h`},
	"copy":           {"copy = \"zerocopy\"", `x.toml:1: copy: "zerocopy", did you mean zero-copy?: want "auto", "copy" or "zero-copy"`},
	"window":         {"window = 0", `x.toml:1: window: "0": want a number from 1 to 64`},
	"never again":    {"interface=\"e\"\nrto-min = \"10s\"\ngive-up = \"1s\"", `x.toml:2: rto-min: 10s: want less than the 1s of give-up`},
	"idle":           {"interface=\"e\"\nidle-retire = \"1s\"", `x.toml:2: idle-retire: 1s: want more than`},
	"interface":      {"queues = 1", `interface: missing: set it`},
	"interface name": {"interface = \"eth 0\"", `x.toml:1: interface: "eth 0": want the name of a network interface`},
	"long interface": {"interface = \"abcdefghijklmnop\"", `1 to 15 bytes`},
	"long control":   {"interface=\"e\"\ncontrol=\"/" + strings.Repeat("x", 107) + "\"", `x.toml:2: control: path of 108 bytes: want at most 107`},
	"zero byte":      {"control=\"a\\u0000b\"", `x.toml:1: control: "a\x00b": want UTF-8 text`},
	"no toml":        {"interface = \"e\"\nqueues = = 1", `x.toml:2: queues: `},
	"a flag":         {"takeover = true", "x.toml:1: takeover: unknown key: it is a flag alone, --takeover; known are interface"},
	"JSON":           {"{\"interface\": \"e\"}", "x.toml:1: invalid character at start of key: U+007B '{' (column 1): want TOML, of lines such as key = \"value\""},
	"column":         {"queues = = 1", `x.toml:1: queues: unexpected character U+003D '=' at start of value (column 10)`},
	"no value":       {"cores = [1,\n2,\n=3]", `x.toml:3: unexpected character U+003D '=' at start of value (column 1)`},
	"twice":          {"queues = 1\nqueues = 2", `x.toml:2: queues`},
	"open string":    {"\ninterface = \"e", `x.toml:2: interface: unterminated basic string (column 14): want a quotation mark at the end`},
}

func TestWrongFiles(t *testing.T) {
	for name, c := range wrongFiles {
		if _, err := check(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s:\n got %v\nwant %s", name, err, c.want)
		}
	}
}

// All problems are reported at once, in the order of the file.
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

// The keys that are known are listed once, however many keys are not.
func TestKnownKeysOnce(t *testing.T) {
	_, err := check("interfce = \"e\"\nwindw = 9\n[[region]]\nnme = \"a\"\n[[region]]\nsze = 1")
	text := err.Error()
	if strings.Count(text, "unknown key") != 4 || strings.Count(text, "known are interface, queues") != 1 ||
		strings.Count(text, "known are name, size") != 1 || !strings.Contains(text, "windw: unknown key, did you mean window?\n") {
		t.Error(text)
	}
}
