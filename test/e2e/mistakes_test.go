// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"errors"
	"fmt"
	stdnet "net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/xdpfab/xdpfab/internal/tell"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

// mistake is a command line with a mistake in it, and what the message has to say.
type mistake struct {
	name    string
	line    string // $I: the interface, $P: the peer's MAC address, $OWN: this node's, $D: a folder of the test
	side    string // b, or side A
	code    int
	wrong   string // names what was wrong
	want    string // names what was expected
	remedy  string // says what to do
	options []option
}

const b = "b"

// internals are the names of packages and functions that a user does not know.
var internals = regexp.MustCompile(`\b(port|mr|wire|nic|bpf|xsk|veth|route|engine|control|share|toml|netlink|xdpfab: xdpfab): |` +
	`\b(strconv|syscall|netip|json)\.|Mode (Copy|Auto)|Attr\.|HugeAuto|TransportXDP`)

// dangerous is advice that may end a program which is at work.
var dangerous = regexp.MustCompile(`link detach|xdp(drv|generic)? off|kill -9`)

// judge checks a message by the rules of the house.
func (m *mistake) judge(t *testing.T, p *process) {
	t.Helper()
	code := p.code()
	text := p.err.String()
	t.Logf("%s\n   code %d: %s%s", p.name, code, text, p.out.String())
	if code != m.code {
		t.Errorf("exit code %d, want %d", code, m.code)
	}
	for what, part := range map[string]string{"what was wrong": m.wrong, "what was expected": m.want, "the remedy": m.remedy} {
		if part == "" || !strings.Contains(text, part) {
			t.Errorf("the message does not say %s: no %q", what, part)
		}
	}
	for line := range strings.Lines(p.err.buffer.String()) {
		if utf8.RuneCountInString(line) > tell.Longest+1 && strings.Count(line, "`") < 2 {
			t.Errorf("a line of %d characters: %s", utf8.RuneCountInString(line), line)
		}
	}
	if strings.Count(text, "\n") != 1 || internals.MatchString(text) || dangerous.MatchString(text) {
		t.Errorf("want one error, no internal names, no dangerous advice; found %q%q", internals.FindString(text),
			dangerous.FindString(text))
	}
}

func TestMistakes(t *testing.T) {
	testnet.Require(t)
	t.Parallel()
	net := testnet.NewPair(t, testnet.Options{})
	key, other := secretFile(t, "0123456789abcdefgh"), secretFile(t, "hgfedcba9876543210")
	noZeroCopy := "the driver cannot"
	if testnet.Borrowed(t) != nil { // a driver that can, but perhaps not for this device
		noZeroCopy = "the driver refuses it for this device"
	}
	dir, door := t.TempDir(), t.TempDir()
	open := filepath.Join(door, "open.sock") // for anybody
	for _, folder := range []string{door, filepath.Dir(door)} {
		if err := os.Chmod(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	n := serve(t, net.B, "--region", "counters=4KiB", "--region", "scores=64KiB:ro", "--region", "log=4KiB:wo",
		"--region", "safe=4KiB:auth-key="+key, "--socket", open+":mode=0666")
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "large"), make([]byte, 5000), 0o644), os.WriteFile(filepath.Join(dir, "huge"), make([]byte, 70000), 0o644), os.Mkdir(filepath.Join(dir, "xdpfab"), 0o755),
		os.WriteFile(filepath.Join(dir, "xdpfab", "config.toml"), []byte("# mine\n\ntimeout = \"5\"\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if err := net.A.Do(func() error { // a daemon whose socket somebody removes
		l, err := stdnet.Listen("unix", filepath.Join(dir, "gone.sock"))
		if err != nil {
			return err
		}
		t.Cleanup(func() { _ = l.Close() })
		return os.Remove(filepath.Join(dir, "gone.sock"))
	}); err != nil {
		t.Fatal(err)
	}
	for _, m := range []mistake{
		{name: "no such interface", line: "list $P -i eth9", code: 5, wrong: `"eth9"`, want: "no such interface in this network namespace", remedy: "`ip link` lists them"},
		{name: "no such interface to an IP", line: "list 10.77.0.2 -i eth9", code: 5, wrong: `xdpfab: "eth9"`, want: "no such interface in this network namespace", remedy: "`ip link` lists them"},
		{name: "no peer", line: "list -i $I", code: 2, wrong: "missing", want: "PEER", remedy: "`xdpfab list --help`"},
		{name: "IP nobody has", line: "list 10.77.0.99 -i $I --timeout 2s", code: 4, wrong: "10.77.0.99", want: "neighbour does not answer", remedy: "`xdpfab diagnose 10.77.0.99 -i veth0`"},
		{name: "interface of another network", line: "list 10.77.0.2 -i lo --transport udp", code: 4, wrong: "10.77.0.2: no route through this interface: lo has 127.0.0.1 and ::1", want: "the route to 10.77.0.2 is by veth0", remedy: "want -i veth0, or no -i"},
		{name: "peer given twice", line: "atomic sum uint64 1 -i $I --peer $P --peer $OWN --region counters", code: 2, wrong: "--peer is given twice, with", want: "want one of them", remedy: "--help"},
		{name: "no route", line: "list 192.0.2.1 -i $I", code: 4, wrong: "192.0.2.1", want: "no route through this interface", remedy: "add one with `ip route add`"},
		{name: "operation", line: "atomic summ uint64 1 -i $I --peer $P --region counters", code: 2, wrong: `unknown operation "summ"`, want: "want one of min, max, sum", remedy: "did you mean sum?"},
		{name: "datatype", line: "atomic sum uint65 1 -i $I --peer $P --region counters", code: 2, wrong: `unknown datatype "uint65"`, want: "want one of int8", remedy: "did you mean uint64?"},
		{name: "range", line: "atomic sum uint8 300 -i $I --peer $P --region counters", code: 2, wrong: `"300"`, want: "want 0 to 255", remedy: "--help"},
		{name: "value forgotten", line: "atomic sum uint64 -i $I --peer $P --region counters", code: 2, wrong: "missing VALUE", want: "want one uint64", remedy: "--help"},
		{name: "values for some", line: "atomic sum uint64 1 2 --count 3 -i $I --peer $P --region counters", code: 2, wrong: "VALUE: 2 values for 3 elements", want: "(--count is 3): want", remedy: "one uint64 for all elements, or one for each of 3"},
		{name: "compare forgotten", line: "atomic cswap uint64 1 -i $I --peer $P --region counters", code: 2, wrong: "missing --compare", want: "want one uint64", remedy: "--help"},
		{name: "negative offset", line: "atomic sum uint64 1 --offset -8 -i $I --peer $P --region counters", code: 2, wrong: `--offset "-8"`, want: "a whole number, 0 or more", remedy: "--help"},
		{name: "bad time", line: "list $P -i $I --timeout 5", code: 2, wrong: `--timeout "5"`, want: "a time such as 500ms, 5s", remedy: "--help"},
		{name: "failed cswap", line: "atomic cswap uint64 1 --compare 5 -i $I --peer $P --region counters", code: 6, wrong: "not swapped", want: "counters+0, which is 0", remedy: "give that to --compare"},
		{name: "region", line: "atomic sum uint64 1 -i $I --peer $P --region counter", code: 1, wrong: `"counter"`, want: "the peer has counters, log, safe, scores", remedy: "did you mean counters?"},
		{name: "past the end", line: "atomic sum uint64 1 --offset 4096 -i $I --peer $P --region counters", code: 1, wrong: "at 0x1000", want: `region "counters" has 4096 bytes`, remedy: "use --offset 4088 or less"},
		{name: "too many elements", line: "atomic sum uint64 1 --count 513 -i $I --peer $P --region counters", code: 1, wrong: "uint64[513]", want: `region "counters" has 4096 bytes, room for 512`, remedy: "use a lower --count"},
		{name: "misaligned", line: "atomic sum uint64 1 --offset 4 -i $I --peer $P --region counters", code: 1, wrong: "offset 4 is not", want: "uint64 is aligned to 8 bytes", remedy: "use --offset 0 or 8"},
		{name: "no write", line: "atomic sum uint64 1 -i $I --peer $P --region scores", code: 1, wrong: "does not grant this right", want: `region "scores" grants read, and sum takes read`, remedy: "have its owner grant that"},
		{name: "no read", line: "atomic read uint64 -i $I --peer $P --region log", code: 1, wrong: "does not grant this right", want: `region "log" grants write, and read takes read`, remedy: "have its owner grant that"},
		{name: "ping without the right", line: "ping $P -i $I --region log -c 5", code: 1, wrong: "xdpfab: Load of word 0 of region", want: `region "log" grants write, and ping takes read`, remedy: "have its owner grant that"},
		{name: "no authorization key", line: "atomic sum uint64 1 -i $I --peer $P --region safe", code: 1, wrong: "this command proves none", want: `region "safe" has an authorization key`, remedy: "name the file with the region's key by --auth-key-file"},
		{name: "no authorization key, get", line: "get $P $D/out -i $I --region safe", code: 1, wrong: "this command proves none", want: `region "safe" has an authorization key`, remedy: "name the file with the region's key by --auth-key-file"},
		{name: "no authorization key, put", line: "put $P - -i $I --region safe", code: 1, wrong: "this command proves none", want: `region "safe" has an authorization key`, remedy: "name the file with the region's key by --auth-key-file", options: []option{input("x")}},
		{name: "no authorization key, watch", line: "watch $P -i $I --region safe", code: 1, wrong: "this command proves none", want: `region "safe" has an authorization key`, remedy: "name the file with the region's key by --auth-key-file"},
		{name: "no authorization key, bench", line: "bench $P -i $I --region safe --op get --count 1", code: 1, wrong: "this command proves none", want: `region "safe" has an authorization key`, remedy: "name the file with the region's key by --auth-key-file"},
		{name: "another authorization key", line: "get $P $D/out -i $I --region safe --auth-key-file " + other, code: 1, wrong: "session: authorization key refused: the peer has nothing with the key in " + other, want: "name the file with the key that the region has there", remedy: "or leave out --auth-key-file"},
		{name: "authorization key of another region", line: "get $P $D/out -i $I --region counters --auth-key-file " + key, code: 1, wrong: `region "counters" has no authorization key, or another than the one in ` + key, want: "name the file with the region's key", remedy: "leave out --auth-key-file"},
		{name: "put without the right", line: "put $P - -i $I --region scores", code: 1, wrong: "does not grant this right", want: `region "scores" grants read, and put takes write`, remedy: "have its owner grant that", options: []option{input("x")}},
		{name: "key", line: "atomic sum uint64 1 -i $I --peer $P --key 5", code: 1, wrong: "no memory region with this key", want: "the keys that the peer publishes", remedy: "`xdpfab list`"},
		{name: "not defined", line: "atomic band double 1 -i $I --peer $P --region counters", code: 2, wrong: "band is not defined for double", want: "want one of min, max, sum, prod", remedy: "land, lxor, read, write, cswap"},
		{name: "port", line: "list 10.77.0.2:34997 -i $I", code: 2, wrong: `bad address "10.77.0.2:34997"`, want: "34997 on every node", remedy: "leave out the port"},
		{name: "socket in the environment", line: "list $P", code: 4, wrong: dir + "/none.sock", want: "no daemon serves the control socket", remedy: "XDPFAB_CONTROL names the socket: correct or unset it", options: []option{env("XDPFAB_CONTROL=" + dir + "/none.sock")}},
		{name: "socket in the environment, of stat", line: "stat", code: 4, wrong: dir + "/none.sock", want: "no daemon serves the control socket", remedy: "XDPFAB_CONTROL names the socket: correct or unset it", options: []option{env("XDPFAB_CONTROL=" + dir + "/none.sock")}},
		{name: "prefix length", line: "list 10.77.0.2/24 -i $I", code: 1, wrong: "24 behind the slash is the number of an endpoint", want: "not the length of a prefix", remedy: "give 10.77.0.2 for that of its daemon"},
		{name: "size of an offset", line: "atomic sum uint64 1 --offset 4KB -i $I --peer $P --region counters", code: 2, wrong: `--offset "4KB"`, want: "of bytes, KiB, MiB, GiB or TiB", remedy: "such as 4096 or 4KiB"},
		{name: "region without =", line: "region create a:1KiB --control " + n.socket, code: 2, wrong: `"a:1KiB"`, want: "NAME=SIZE[:OPTION,...]", remedy: "such as scores=1MiB"},
		{name: "region's option", line: "region create a=1KiB:residnt --control " + n.socket, code: 2, wrong: "xdpfab: daemon at " + n.socket + `: "residnt"`, want: "want ro, wo", remedy: "did you mean resident?"},
		{name: "no size of a region", line: "region create a=0 --control " + n.socket, code: 2, wrong: n.socket + `: size: "0"`, want: "want more than 0 bytes", remedy: "want more"},
		{name: "region's access", line: "region create a=1KiB:access=all --control " + n.socket, code: 2, wrong: n.socket + `: access: "all"`, want: `want "read"`, remedy: `or "both"`},
		{name: "region that is there", line: "region create counters=1KiB --control " + n.socket, code: 1, wrong: n.socket + `: region "counters" is there already`, want: "want another name", remedy: "or remove that one first"},
		{name: "region's pages", line: "region create a=1KiB:memfd,huge=require --control " + n.socket, code: 2, wrong: n.socket + `: huge: "require"`, want: "go with anonymous backing alone", remedy: `want "auto"`},
		{name: "region to remove", line: "region remove counter --control " + n.socket, code: 1, wrong: n.socket + `: no region "counter" of this daemon`, want: "lists those", remedy: "xdpfab stat"},
		{name: "unit of the snaplen", line: "capture -w $D/x --snaplen 4KB --control " + n.socket, code: 2, wrong: `--snaplen "4KB"`, want: "of bytes, KiB, MiB, GiB or TiB", remedy: "such as 4096 or 4KiB"},
		{name: "folder of a file", line: "get $P /nonexist/x -i $I --region counters", code: 2, wrong: "/nonexist/x", want: "a folder that is there", remedy: "--help"},
		{name: "put too large", line: "put $P $D/large -i $I --region counters", code: 1, wrong: "large has 5000 bytes", want: "region counters has 4096 from offset 0 on: nothing was written", remedy: "cut the file"},
		{name: "put too large, to read", line: "put $P $D/huge -i $I --region scores", code: 1, wrong: "huge has 70000 bytes", want: "region scores has 65536 from offset 0 on: nothing was written", remedy: "or have a larger region, to which peers may write: this one grants read"},
		{name: "input too large", line: "put $P - -i $I --region counters", code: 1, wrong: "the input has more bytes than region counters has", want: "which is 4096", remedy: "shorten the input", options: []option{input(strings.Repeat("x", 5000))}},
		{name: "no root", line: "list $P -i $I", code: 5, wrong: "missing CAP_NET_ADMIN", want: "CAP_BPF, CAP_PERFMON: run as root, or `setcap", remedy: "or have root start xdpfabd on", options: []option{unprivileged}},
		{name: "no daemon for stat", line: "stat --control $D/none.sock", code: 4, wrong: "none.sock", want: "no daemon serves the control socket", remedy: "start xdpfabd, or give its path"},
		{name: "socket missing", line: "list $P -i $I", side: b, code: 4, wrong: "no daemon answers at " + dir + "/none.sock", want: "which XDPFAB_CONTROL names", remedy: "start it there, or correct the path", options: []option{env("XDPFAB_CONTROL=" + dir + "/none.sock")}},
		{name: "socket missing, named by flag", line: "list $P -i $I --control $D/none.sock", code: 4, wrong: "no daemon answers at " + dir + "/none.sock", want: "which --control", remedy: "start it there, or correct the path"},
		{name: "socket of others", line: "list $P -i $I", side: b, code: 5, wrong: "connect: permission denied", want: "run it as a user or group that may write to the socket", remedy: "xdpfabd --socket-group, --socket-mode); without it: the interface is in use, as a rule by that daemon\n", options: []option{unprivileged, env("XDPFAB_CONTROL=" + n.socket)}},
		{name: "region of others' daemon", line: "region create a=1KiB --control " + open, code: 5, wrong: "user 65534", want: "only root and the daemon's own user, 0, may change its regions", remedy: "ask one of them", options: []option{unprivileged}},
		{name: "capture at a further socket", line: "capture -w /dev/null --control " + open, code: 5, wrong: "this is a further control socket of the daemon", want: "packets can be captured at its first alone", remedy: "give --control the path that the daemon's log has as control="},
		{name: "daemon of others", line: "stat --control " + n.socket, side: b, code: 5, wrong: "permission denied", want: "run as a user or group that may write to it", remedy: "or start the daemon with --socket-group and a group of this user", options: []option{unprivileged}},
		{name: "borrow without daemon", line: "list $P -i $I --borrow", code: 4, wrong: "a queue to borrow", want: "no daemon serves the interface", remedy: "start xdpfabd there with --lend"},
		{name: "zero-copy", line: "list $P -i $I --copy zero-copy", code: 5, wrong: "zero-copy not supported", want: noZeroCopy, remedy: "want the copy mode auto or copy"},
		{name: "own MAC", line: "list $OWN -i $I", code: 1, wrong: "is an address of this node", want: "give that of the peer", remedy: "`ip address` shows there"},
		{name: "MAC nobody has", line: "list 02:00:00:00:00:77 -i $I --timeout 2s", code: 4, wrong: "no host with 02:00:00:00:00:77 is known", want: "`ip link` at the peer", remedy: "`xdpfab diagnose 02:00:00:00:00:77 -i veth0`"},
		{name: "no daemon there", line: "list 10.77.0.1 -i $I --timeout 3s --control " + n.socket, side: b, code: 4, wrong: "peer does not answer", want: "the host 10.77.0.1 is up, but nothing there takes UDP port 34997", remedy: "start xdpfabd there"},
		{name: "removed socket of a live daemon", line: "stat --control $D/gone.sock", code: 4, wrong: dir + "/gone.sock has been removed", want: "still listens there", remedy: "restart that daemon, which makes the socket anew"},
		{name: "empty batch", line: "atomic --batch - -i $I --peer $P --region counters", code: 2, wrong: "--batch: nothing came on standard input", want: "want one JSON object", remedy: `such as {"op":"sum"`},
		{name: "directory beside an address", line: "list $P -i $I --directory $D/none", code: 2, wrong: "/none: no such file or directory", want: "want a file with lines such as", remedy: "or etcd://HOST:PORT"},
		{name: "skip beyond the file", line: "put $P $D/large -i $I --region counters --skip 6000", code: 2, wrong: "--skip 6000", want: "large has 5000 bytes", remedy: "want 5000 or less"},
		{name: "list of values", line: "atomic sum uint64 1,2 -i $I --peer $P --region counters", code: 2, wrong: `"1,2"`, want: "want an integer", remedy: "several values have spaces between them"},
		{name: "region by name and key", line: "get $P $D/out -i $I --region counters --key 5", code: 2, wrong: `--region "counters" and --key "5" each name a region`, want: "want one of them", remedy: "--help"},
		{name: "no region", line: "get $P $D/out -i $I", code: 2, wrong: "missing the region", want: "want --region NAME or --key KEY", remedy: "`xdpfab list PEER` shows those of a peer"},
		{name: "value that does not come", line: "watch $P -i $I --region counters --until 9 --wait 1s", code: 1, wrong: "gave up after 1s: ", want: "wait longer", remedy: "with --wait"},
		{name: "no such key file", line: "list $P -i $I --auth-key-file $D/none", code: 2, wrong: "none: no such file", want: "name the file with the region's key", remedy: "which its owner has"},
		{name: "configuration", line: "list $P", code: 2, wrong: filepath.Join(dir, "xdpfab", "config.toml") + `:3: timeout: "5"`, want: "want a time of more than 0", remedy: `such as "5s"`, options: []option{env("XDG_CONFIG_HOME=" + dir)}},
		{name: "UDP sockets beside a daemon", line: "list 10.77.0.1 -i $I --transport udp", side: b, code: 5, wrong: "another program has UDP port 34997 of 10.77.0.2", want: "one at a time can have it", remedy: fmt.Sprintf("process %d (xdpfabd): go through it by its control socket, %s", n.cmd.Process.Pid, n.socket)},
		{name: "UDP sockets beside a known daemon", line: "list 10.77.0.1 -i $I --transport udp", side: b, code: 5, wrong: fmt.Sprintf("xdpfab: xdpfabd, process %d, serves veth0", n.cmd.Process.Pid), want: "at " + n.socket, remedy: ": leave out --transport udp", options: []option{env("XDPFAB_CONTROL=" + n.socket)}},
		{name: "direct beside a known daemon", line: "list $P -i $I --direct", side: b, code: 5, wrong: fmt.Sprintf("xdpfab: xdpfabd, process %d, serves veth0", n.cmd.Process.Pid), want: "at " + open, remedy: ": leave out --direct", options: []option{unprivileged, env("XDPFAB_CONTROL=" + open)}},
		{name: "interface and socket of another", line: "list 127.0.0.1 -i lo --control " + n.socket, side: b, code: 2, wrong: "the daemon at " + n.socket + ", which --control names, serves veth0, not lo", want: "leave out one of", remedy: "-i and --control"},
		{name: "daemon of another interface", line: "list 127.0.0.1 --control " + n.socket, side: b, code: 4, wrong: "127.0.0.1 is lo's address on this node, and this daemon serves veth0", want: "give that of the peer", remedy: "or name the interface that has it: -i lo"},
		{name: "direct, without root", line: "list $P -i $I --direct", side: b, code: 5, wrong: "interface has another XDP program", want: "go through its daemon, by the control socket", remedy: "if not, stop its owner", options: []option{unprivileged}},
		{name: "mode of AF_XDP with UDP sockets", line: "list 10.77.0.2 -i $I --transport udp --copy copy", code: 2, wrong: "--copy copy is for AF_XDP", want: "want one of them", remedy: "or --transport xdp"}, // 2, as flags that contradict each other
		{name: "mode of XDP with UDP sockets", line: "list 10.77.0.2 -i $I --xdp native", code: 2, wrong: "--xdp native is for AF_XDP", want: "XDPFAB_TRANSPORT asks for UDP sockets", remedy: "or --transport xdp", options: []option{env("XDPFAB_TRANSPORT=udp")}},
		{name: "network", line: "list 10.77.0.128/25 -i $I --timeout 2s", code: 4, wrong: "10.77.0.128/25 is endpoint 25 of 10.77.0.128", want: "not a network", remedy: "give the address of one node"},
		{name: "no server of messages", line: "bench 10.77.0.2 -i $I --op send", code: 1, wrong: "connect on 10.77.0.2/7", want: "xdpfab: run", remedy: "`xdpfab bench serve` at 10.77.0.2: "},
		{name: "interface of a daemon", line: "stat -i vethO", code: 5, wrong: "no such interface \"vethO\"", want: "daemon", remedy: "serve"},
		{name: "doctor on a served interface", line: "doctor $I", side: b, code: 5, wrong: fmt.Sprintf("a daemon, process %d, serves veth0", n.cmd.Process.Pid), want: "doctor has to open the interface itself", remedy: "stop that daemon first"},
		{name: "peer of stat", line: "stat 10.77.0.2", code: 2, wrong: `"10.77.0.2": stat asks a daemon of this machine`, want: "want no peer", remedy: "`xdpfab list 10.77.0.2`"},
		{name: "ls", line: "ls 10.77.0.2", code: 2, wrong: `unknown command "ls"`, want: "that is `xdpfab list`", remedy: "--help"},
		{name: "URL", line: "list http://10.77.0.2/x -i $I", code: 2, wrong: `bad address "http://10.77.0.2/x"`, want: "want no URL", remedy: "but the address alone: 10.77.0.2;"},
		{name: "no folder of resident regions", line: "resident remove /sys/fs/bpf/xdpfab-none", code: 1, wrong: "xdpfab: /sys/fs/bpf/xdpfab-none: no such file or directory", want: "see", remedy: "`xdpfab resident list`"},
		{name: "folder of resident regions", line: "resident remove /sys/fs/bpf/xdpfab-none/7/veth0", code: 1, wrong: "/sys/fs/bpf/xdpfab-none/7/veth0: no such file or directory", want: "see", remedy: "`xdpfab resident list`"},
		{name: "in use", line: "list $P -i $I", side: b, code: 5, wrong: fmt.Sprintf("veth0 is in use by another xdpfab, process %d (xdpfabd)", n.cmd.Process.Pid), want: "one at a time can have it", remedy: "go through it by its control socket, " + n.socket},
	} {
		t.Run(m.name, func(t *testing.T) {
			if m.name == testnet.Granted(t).Copy {
				t.Skip("the driver has it")
			}
			side := net.A
			if m.side == b {
				side = net.B
			}
			m.judge(t, xdpfab(t, side, m.args(net, dir), m.options...))
		})
	}
}

// A command that is interrupted while it connects lists no causes of the peer's silence.
func TestInterruptedConnect(t *testing.T) {
	testnet.Require(t)
	t.Parallel()
	net := testnet.NewPair(t, testnet.Options{})
	p := start(t, net.A, xdpfabPath, []string{"list", "02:00:00:00:00:77", "-i", net.A.IfName, "-v"})
	p.eventually("connecting", func() bool { return strings.Contains(p.err.String(), "interface "+net.A.IfName) })
	p.signal(os.Interrupt)
	p.wants(1, "not executed: interrupt signal received")
	if text := p.err.String(); strings.Contains(text, "likely causes") || strings.Contains(text, "xdpfab diagnose") {
		t.Errorf("advice to somebody who has interrupted: %s", text)
	}
}

// args fills a command line in.
func (m *mistake) args(net *testnet.Pair, dir string) []string {
	line := strings.NewReplacer("$I", net.A.IfName, "$P", net.B.MAC.String(), "$OWN", net.A.MAC.String(), "$D", dir).Replace(m.line)
	return strings.Fields(line)
}

func TestMistakesOfTheDaemon(t *testing.T) {
	testnet.Require(t)
	t.Parallel()
	net := testnet.NewPair(t, testnet.Options{})
	n := serve(t, net.B, "--region", "counters=4KiB", "--socket-mode", "0666")
	for _, folder := range []string{filepath.Dir(n.socket), filepath.Dir(filepath.Dir(n.socket))} {
		if err := os.Chmod(folder, 0o755); err != nil { // for the other user below
			t.Fatal(err)
		}
	}
	dir, pid := t.TempDir(), strconv.Itoa(n.cmd.Process.Pid)
	for name, text := range map[string]string{
		"regions.toml": "interface = \"veth0\"\n\n[[regions]]\nname = \"counters\"\nsize = \"4KiB\"\n",
		"size.toml":    "interface = \"veth0\"\n\n[[region]]\nname = \"counters\"\nsize = \"4KB\"\n",
		"bare.toml":    "interface = \"veth0\"\n\n[[region]]\nname = \"counters\"\nsize = 64KiB\n",
		"list.toml":    "interface = \"veth0\"\n\n[[region]]\nname = \"a\"\nsize = 8\naccess = [\"read\", \"write\"]\n",
		"open.toml":    "interface = \"veth0\nspin = \"50us\"\n",
		"spin.toml":    "interface = \"veth0\"\nspin = 50\n",
		"curly.toml":   "interface = “veth0”\n",
		"blank.toml":   "interface = \"veth0\"\n\n[[region]]\nname = \"a b\"\nsize = 8\n",
		"key.toml":     "interfaces = \"veth0\"\n",
		"backing.toml": "interface = \"veth0\"\n\n[[region]]\nname = \"counters\"\nsize = \"4KiB\"\nbackings = \"memfd\"\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range []mistake{
		{name: "4KB", line: "--interface $I --region counters=4KB", code: 2, wrong: `size: "4KB"`, want: "want bytes", remedy: "a number of KiB, MiB, GiB or TiB"},
		{name: "negative size", line: "--interface $I --region counters=-4", code: 2, wrong: `size: "-4"`, want: "want bytes", remedy: "e.g. 65536"},
		{name: "regions", line: "--config $D/regions.toml", code: 2, wrong: "regions.toml:3: regions: unknown key", want: "the tables [[region]]", remedy: "did you mean [[region]]?"},
		{name: "immense region", line: "--interface $I --region a=1EiB", code: 2, wrong: `--region a=1EiB: size: "1EiB"`, want: "want at most 64TiB", remedy: "64TiB"},
		{name: "option of a region", line: "--interface $I --region a=4KiB:acces=read", code: 2, wrong: `--region a=4KiB:acces=read: "acces=read"`, want: "want ro, wo, rw", remedy: "did you mean access?"},
		{name: "rule", line: "--interface $I --guest alow:kept=1MiB", code: 2, wrong: `"alow:kept=1MiB"`, want: "want allow or deny", remedy: "did you mean allow?"},
		{name: "less than a page kept", line: "--interface $I --guest allow:kept=100 --check", code: 2, wrong: `--guest allow:kept=100: kept: "100"`, want: "want at least a page", remedy: "regions take whole pages"},
		{name: "log level", line: "--interface $I --log-level debg", code: 2, wrong: `--log-level: "debg"`, want: `want "debug", "info"`, remedy: "did you mean debug?"},
		{name: "control socket that is a file", line: "--interface $I --control $D/key.toml", code: 5, wrong: "key.toml is there and is no socket", want: "want a path where nothing is", remedy: "choose another path (--control; clients then name it by --control or XDPFAB_CONTROL)"},
		{name: "size in file", line: "--config $D/size.toml", code: 2, wrong: `size.toml:5: region[0].size: "4KB"`, want: "want bytes", remedy: "a number of KiB, MiB, GiB or TiB"},
		{name: "size without quotes", line: "--config $D/bare.toml", code: 2, wrong: "bare.toml:5: size: 64KiB", want: "want quotes", remedy: `size = "64KiB"`},
		{name: "several rights", line: "--config $D/list.toml", code: 2, wrong: `list.toml:6: region[0].access: ["read", "write"]`, want: "want one of", remedy: `"read", "write" or "both"`},
		{name: "open quote", line: "--config $D/open.toml", code: 2, wrong: "open.toml:1: interface: basic strings cannot have new lines", want: "want a quotation mark at the end", remedy: "like the one at its beginning"},
		{name: "time without unit", line: "--config $D/spin.toml", code: 2, wrong: "spin.toml:2: spin: 50: ", want: "want a time from 1ns to 1h", remedy: `e.g. "50us", "10ms" or "5s", in quotes`},
		{name: "quotes of a word processor", line: "--config $D/curly.toml", code: 2, wrong: "curly.toml:1: interface: ", want: "want straight quotation marks", remedy: `" or '`},
		{name: "huge pages that are not there", line: "--interface $I --control $D/h.sock --region big=64GiB:huge=require", code: 1, wrong: "bytes of reserved huge pages: cannot allocate memory", want: "raise sysctl vm.nr_hugepages", remedy: "or use huge=auto"},
		{name: "key file of a region", line: "--interface $I --region a=4KiB:auth-key=/nonex", code: 2, wrong: "--region a: auth-key: open /nonex: no such file", want: "name the file with the key", remedy: "or make one: `(umask 077; head -c 32 /dev/urandom"},
		{name: "folder of a region", line: "--interface $I --control $D/f.sock --region a=4KiB:backing=$D/none/a", code: 1, wrong: `region "a": `, want: dir + "/none/a: no such file or directory", remedy: "make its folder, or name another file"},
		{name: "name with a space", line: "--config $D/blank.toml", code: 2, wrong: `blank.toml:4: region[0].name: "a b"`, want: "want a name of printable characters", remedy: "without spaces"},
		{name: "two of a name", line: "--interface $I --region a=4KiB --region a=8KiB", code: 2, wrong: `--region a: name: "a"`, want: "another region has this name", remedy: "want one of its own"},
		{name: "loopback", line: "--interface lo --control $D/lo.sock", code: 5, wrong: "lo is not an Ethernet interface", want: "want one with a MAC address", remedy: "or use UDP sockets, which are slower: --transport udp"},
		{name: "more queues than there are", line: "--interface $I --control $D/q.sock --queues 9", code: 5, wrong: "no such queue: veth0 has 1 queue, 9 were asked for", want: "want at most 1", remedy: "`ethtool -l veth0` shows how many it can have"},
		{name: "key in file", line: "--config $D/key.toml", code: 2, wrong: "key.toml:1: interfaces: unknown key", want: "known are interface", remedy: "did you mean interface?"},
		{name: "key of a region", line: "--config $D/backing.toml", code: 2, wrong: "region[0].backings: unknown key", want: "known are", remedy: "did you mean backing?"},
		{name: "same interface", side: b, line: "--interface $I --control " + n.socket, code: 5, wrong: "serves veth0 already", want: "control socket is in use: xdpfabd, process " + pid, remedy: "or stop it first"},
		{name: "same interface, other socket", side: b, line: "--interface $I --control $D/other.sock", code: 5, wrong: "xdpfabd, process " + pid + ", serves veth0 already", want: "one at a time can", remedy: "take its place with --takeover --control " + n.socket},
		{name: "other interface", side: b, line: "--interface lo --control " + n.socket, code: 5, wrong: "process " + pid + " serves another interface, veth0", want: "control socket is in use", remedy: "give this daemon a path of its own with --control"},
		{name: "other namespace", line: "--interface $I --control " + n.socket, code: 5, wrong: "serves the veth0 of another network namespace", want: "leave it alone", remedy: "give this daemon a path of its own with --control"},
		{name: "argument", line: "$I --region counters=4KiB", code: 2, wrong: `unexpected argument "veth0"`, want: "want flags alone", remedy: "such as --interface veth0"},
		{name: "verb", line: "start $I", code: 2, wrong: `unexpected argument "start"`, want: "want flags alone", remedy: "such as --interface veth0"},
		{name: "verb alone", line: "start", code: 2, wrong: `unexpected argument "start"`, want: "want flags alone", remedy: "such as --interface eth0"},
		{name: "flag", line: "--interfaces $I", code: 2, wrong: "unknown flag: --interfaces", want: "did you mean --interface?", remedy: "`xdpfabd --help`"},
		{name: "takeover of none", line: "--interface $I --control $D/none.sock --takeover", code: 1, wrong: "no daemon serves at " + dir + "/none.sock", want: "whose place this one could take", remedy: "start it without --takeover"},
		{name: "takeover with another size", side: b, line: "--interface $I --control " + n.socket + " --region counters=8KiB --takeover", code: 1, wrong: `region "counters" has 4096 bytes`, want: "8192 bytes in the one that is to take its place", remedy: "want the same, or another name"},
		{name: "takeover by another user", side: b, line: "--interface $I --control " + n.socket + " --takeover", code: 5, wrong: "user 65534 may not take this daemon's place", want: "only root may", remedy: "run this as root", options: []option{unprivileged}},
		{name: "control socket of a user", line: "--interface $I --transport udp --control $D/x/a.sock", code: 5, wrong: "/x: permission denied", want: "choose another path (--control; clients then name it by --control or XDPFAB_CONTROL)", remedy: "such as " + os.TempDir() + "/veth0.sock", options: []option{unprivileged}},
		{name: "no interface", line: "--region counters=4KiB", code: 2, wrong: "interface: missing", want: "set it in the configuration file", remedy: "--interface eth0"},
	} {
		t.Run(m.name, func(t *testing.T) {
			side := net.A
			if m.side == b {
				side = net.B
			}
			p := start(t, side, xdpfabdPath, m.args(net, dir), append(m.options, env("NOTIFY_SOCKET=", "XDG_RUNTIME_DIR=/run/user/7"))...)
			m.judge(t, p)
		})
	}
}
