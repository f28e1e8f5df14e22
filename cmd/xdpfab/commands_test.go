// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/xdpfab/xdpfab/cmd/xdpfab/bench"
	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/load"
	nodes "github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/route"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Every way to call a command wrongly, and the text of its error.
func TestRefusals(t *testing.T) {
	n := newNode(t)
	for _, c := range refusals {
		checkRefusal(t, c.args, n.run("", n.line(c.args)...), c.code, c.say)
	}
	for _, c := range refusalsAsTheyAre {
		checkRefusal(t, c.args, n.run("", strings.Fields(c.args)...), c.code, c.say)
	}
}

type refusal struct {
	args string
	code int
	say  string
}

// refusals have PEER replaced, and -i pipe0 added.
var refusals = []refusal{
	{"ping", exitUsage, "missing PEER: want for example `xdpfab ping 10.0.0.2"},
	{"get", exitUsage, "missing PEER and FILE: want for example `xdpfab get 10.0.0.2 counters.save"},
	{"send", exitUsage, "missing PEER: want for example `xdpfab send 10.0.0.2 hello"},
	{"ping PEER 10.0.0.3", exitUsage, "unexpected argument \"10.0.0.3\": want PEER alone"},
	{"get PEER r out", exitUsage, "unexpected argument \"out\": want PEER FILE alone; --region names a region; see"},
	{"get PEER out x --region r", exitUsage, "unexpected argument \"x\": want PEER FILE alone; see"},
	{"get 10.0.0.2:counters out", exitUsage, "missing the region: want --region NAME or --key KEY, as in 10.0.0.2 --region counters; `xdpfab list PEER`"},
	{"send hello..there 10.0.0.2", exitUsage, `"hello..there" names no peer, and "10.0.0.2" is an address: the order is PEER MESSAGE`},
	{"atomic sum uint64 --value 1", exitUsage, "unknown flag: --value: VALUE is an argument: `xdpfab atomic OP DATATYPE [VALUE...]`"},
	{"atomic read PEER uint64", exitUsage, "is an address and no datatype: a peer's is for --peer; the order is"},
	{"atomic sum float8 1", exitUsage, "here it is float8_e4m3, or float8_e5m2"},
	{"bench PEER --threads 2", exitUsage, "unknown flag: --threads: here it is --endpoints"},
	{"bench PEER --region r --warmup -1s", exitUsage, "--warmup -1s: want 0 or more"},
	{"ping PEER extra", exitUsage, "unexpected argument \"extra\": a region is named by --region extra; see"},
	{"bench PEER --region r --op put --datatype double", exitUsage, "--datatype is for atomic operations, which --op put is not: leave it out"},
	{"bench PEER --region r --op get --spread", exitUsage, "--spread is for atomic operations, which --op get is not: leave it out"},
	{"bench PEER --region r --count 5 --duration 1s", exitUsage, "--count with --duration: want one of them"},
	{"ping PEER --bogus", exitUsage, "unknown flag: --bogus: want --auth-key-file, --borrow"},
	{"ping PEER --cuont 3", exitUsage, "unknown flag: --cuont, did you mean --count?"},
	{"ping 10.0.0", exitUsage, "bad address"},
	{"ping ff:ff:ff:ff:ff:ff", exitUsage, "names no single node"},
	{"ping PEER -c -1", exitUsage, "want 0 or more"},
	{"ping PEER -c x", exitUsage, `--count "x": want a whole number`},
	{"list PEER counters", exitUsage, "unexpected argument \"counters\": it lists all regions of the peer; leave out the name"},
	{"list PEER --region counters", exitUsage, "unknown flag: --region: it lists all regions of the peer"},
	{"atomic sum uint64 --peer PEER --region r", exitUsage, "missing VALUE: want one uint64: `xdpfab atomic sum uint64 VALUE --peer " + peerAddr + " --region r`"},
	{"atomic sum uint64 1 10.0.0.2", exitUsage, "a peer's address is for --peer: --peer 10.0.0.2"},
	{"put PEER - --region r --skip 5", exitUsage, "--skip 5: stdin has 0 bytes: want 0 or less"},
	{"put PEER file --region", exitUsage, "--region needs a value"},
	{"ping PEER --interval 5", exitUsage, `--interval "5", did you mean 5s?: want a time such as 500ms, 5s or 1m`},
	{"ping PEER --progress slow", exitUsage, "want auto or manual"},
	{"ping PEER --copy none", exitUsage, "want auto, copy or zero-copy"},
	{"ping PEER --timeout 0s", exitUsage, "want at least 1ms"},
	{"ping PEER --timeout 1ns", exitUsage, "--timeout 1ns: want at least 1ms"},
	{"ping PEER --queues -2", exitUsage, "want 0 for at most 4"},
	{"ping PEER --region absent", exitFailed, "no memory region of this name"},
	{"watch PEER --region r --offset 4", exitFailed, "uint64 is aligned to 8 bytes, offset 4 is not: use --offset 0 or 8"},
	{"watch PEER --region r --offset 65536", exitFailed, `region "r" has 65536 bytes: use --offset 65528 or less`},
	{"watch 02:00:00:00:00:77 --wait 50ms", exitFailed, "gave up after 50ms: 02:00:00:00:00:77 has not answered by then: wait longer with --wait"},
	{"watch 02:00:00:00:00:77 --region r --wait 50ms", exitFailed, "gave up after 50ms: 02:00:00:00:00:77 has not answered by then: wait longer with --wait"},
	{"ping PEER/7", exitFailed, "no such endpoint"},
	{"ping 02:00:00:00:00:77 --timeout 100ms", exitUnreachable, "does not answer"},
	{"ping 02:00:00:00:00:77 --timeout 1ms", exitUnreachable, "does not answer"},
	{"list PEER/9", exitFailed, "9 behind the slash is the number of an endpoint: give " + peerAddr + " for that of its daemon"},
	{"atomic", exitUsage, "missing OP and DATATYPE, such as sum uint64: `xdpfab atomic sum uint64 VALUE --peer PEER --region NAME`"},
	{"atomic cswap 7 9", exitUsage, `"7" is a value, and no datatype: the order is OP DATATYPE VALUE: ` + "`xdpfab atomic cswap uint64 9 --compare 7 --peer PEER --region NAME`"},
	{"atomic cswap 7 --compare 9 --region r --peer PEER", exitUsage, "`xdpfab atomic cswap uint64 7 --compare 9 --peer " + peerAddr + " --region r`"},
	{"atomic sum 1 --key 5", exitUsage, "`xdpfab atomic sum uint64 1 --peer PEER --key 5`"},
	{"atomic cswap int32 7 9 --peer PEER --region r", exitUsage, "`xdpfab atomic cswap int32 9 --compare 7 --peer " + peerAddr + " --region r`"},
	{"atomic mswap uint8 1", exitUsage, "`xdpfab atomic mswap uint8 1 --compare MASK --peer PEER --region NAME`"},
	{"atomic sum_at_most uint8 1 9", exitUsage, "`xdpfab atomic sum_at_most uint8 1 --compare 9 --peer PEER --region NAME`"},
	{"atomic cswap uint8 1", exitUsage, "missing --compare: want one uint8: `xdpfab atomic cswap uint8 1 --compare OLD --peer PEER --region NAME`"},
	{"atomic read uint64 5 --peer PEER --region r", exitUsage, "leave it out; --offset says where to read, and --count how many elements: `xdpfab atomic read uint64 --peer " + peerAddr + " --region r`"},
	{"atomic sum uint64 1 --base", exitUsage, "unknown flag: --base: here it is --form base; VALUE is decimal, or hexadecimal with 0x"},
	{"atomic sum uint64 1 --fetch", exitUsage, "unknown flag: --fetch: here it is --form fetch"},
	{"atomic cswap uint64 1 --comp 5", exitUsage, "unknown flag: --comp, did you mean --compare?"},
	{"atomic fetch-sum uint64 1", exitUsage, "here it is sum, which prints the value from before"},
	{"receive --size 0", exitUsage, "--size 0: want 1 or more"},
	{"capture out.pcap", exitUsage, "the file is named by -w out.pcap"},
	{"get PEER - --key 0x99 --length 8", exitFailed, "`xdpfab list` shows the keys that the peer publishes"},
	{"atomic sum", exitUsage, "missing DATATYPE after sum, such as uint64"},
	{"atomic smu uint64 1", exitUsage, `unknown operation "smu", did you mean sum?: want one of min, max`},
	{"atomic sum uint46 1", exitUsage, `unknown datatype "uint46", did you mean uint64?`},
	{"watch PEER --region r --datatype uint46", exitUsage, "did you mean uint64?"},
	{"atomic sum uint64 1 --offset 4KB", exitUsage, `--offset "4KB", did you mean 4KiB?: want a whole number, 0 or more, of bytes, KiB, MiB, GiB or TiB`},
	{"get PEER /nonexist/x --region r", exitUsage, "want a file in a folder that is there"},
	{"atomic sum 1", exitUsage, "the order is OP DATATYPE VALUE"},
	{"atomic sum uint64 1 PEER", exitUsage, "a peer's address is for --peer"},
	{"put PEER /nonexist --region r", exitUsage, "want a file that this user may read, or - for stdin"},
	{"get PEER x", exitUsage, "`xdpfab list PEER` shows those of a peer"},
	{"atomic sum uint63 1", exitUsage, `unknown datatype "uint63", did you mean uint64?: want one of int8`},
	{"atomic bor double 1", exitUsage, "bor is not defined for double"},
	{"atomic sum uint64 1 --form compare", exitUsage, `want base or fetch`},
	{"atomic sum uint64 1 --form magic", exitUsage, `want base or fetch`},
	{"atomic read uint64 --form base", exitUsage, "want fetch"},
	{"atomic sum uint64", exitUsage, "missing VALUE: want one uint64"},
	{"atomic sum uint64 1 2 --count 3", exitUsage, "VALUE: 2 values for 3 elements (--count is 3): want one uint64 for all elements, or one for each of 3"},
	{"atomic sum uint64 x", exitUsage, "want an integer"},
	{"atomic sum uint8 256", exitUsage, "want 0 to 255"},
	{"atomic sum uint8 -1", exitUsage, "want 0 to 255"},
	{"atomic read uint8 1", exitUsage, `read takes no values, and "1" is one`},
	{"atomic sum uint8 1 --compare 2", exitUsage, "takes no compare values: leave out --compare"},
	{"atomic cswap uint8 1", exitUsage, "missing --compare: want one uint8"},
	{"atomic cswap uint8 1 --compare 300", exitUsage, "want 0 to 255"},
	{"atomic sum uint8 1 --count -1", exitUsage, "count -1"},
	{"atomic sum uint16 --hex 123", exitUsage, `VALUE "123": want little-endian bytes in hex, such as 0500000000000000`},
	{"atomic sum uint64 --hex zz", exitUsage, `VALUE "zz": want little-endian bytes in hex, such as 0500000000000000; see`},
	{"atomic cswap uint8 --hex 01 --compare zz", exitUsage, `--compare "zz": want little-endian bytes in hex`},
	{"atomic sum uint16 --hex 12", exitUsage, "VALUE: 1 byte in place of 2 (1 element of uint16): want one uint16"},
	{"atomic sum uint8 1 --offset -8", exitUsage, `--offset "-8": want a whole number, 0 or more`},
	{"atomic sum uint8 1", exitUsage, "missing the region: want --region NAME or --key KEY"},
	{"atomic sum uint8 1 --region r --key 5", exitUsage, `--region "r" and --key "5" each name a region: want one of them`},
	{"atomic sum uint8 1 --key zzz", exitUsage, "64-bit number"},
	{"atomic sum uint8 1 --region " + strings.Repeat("n", 65), exitUsage, "at most 64"},
	{"atomic sum uint8 1 --region r", exitUsage, "missing the peer's address: name it with --peer"},
	{"atomic sum uint8 1 --region r --peer ::x", exitUsage, "bad address"},
	{"atomic sum uint8 1 --region absent --peer PEER", exitFailed, "no memory region of this name"},
	{"atomic cswap uint8 7 --compare 0,0 --region r --peer PEER", exitUsage, "--compare: 2 values for 1 element"},
	{"atomic sum uint8 1 --region ro --peer PEER", exitFailed, "does not grant this right"},
	{"atomic sum uint8 1 --key 0x99 --peer PEER", exitFailed, "no memory region with this key"},
	{"atomic sum uint64 1 --offset 4 --region r --peer PEER", exitFailed, "alignment"},
	{"atomic sum uint64 1 --offset 65536 --region r --peer PEER", exitFailed, "beyond the end"},
	{"atomic --batch /absent/file --region r --peer PEER", exitUsage, "--batch: open /absent/file: no such file or directory: want a file that this user may read, or - for stdin"},
	{"atomic --batch - --form base", exitUsage, `--form with --batch: a line has "func"; leave it out`},
	{"atomic --batch - --count 5", exitUsage, `--count with --batch: a line has "n"; leave it out`},
	{"atomic --batch - --compare 5", exitUsage, `--compare with --batch: a line has "cmp"; leave it out`},
	{"atomic --batch - --hex", exitUsage, "--hex with --batch: bytes of lines are in hex always; leave it out"},
	{"atomic --batch - --quiet", exitUsage, "--quiet with --batch: each line gets its answer; leave it out"},
	{"atomic --batch - sum", exitUsage, "takes no OP"},
	{"atomic --batch / --region r --peer PEER", exitUsage, "--batch: / is a folder: want a file that this user may read"},
	{"atomic sum uint8 1,2", exitUsage, `bad value "1,2" for uint8: not a value of this datatype: want an integer, decimal or 0x…; several values have spaces between them`},
	{"atomic cswap uint8 1 --compare x", exitUsage, `--compare: bad value "x" for uint8`},
	{"put /dev/null 10.0.0.2:r", exitUsage, `"/dev/null" is no address, and "10.0.0.2:r" begins with one: the order is PEER FILE`},
	{"region create x=4KiB,ro", exitUsage, `"x=4KiB,ro": options stand behind a colon: x=4KiB:ro`},
	{"atomic sum float_complex 1+2", exitUsage, `bad value "1+2" for float_complex: not a value of this datatype: want a number such as 0.5, or parts such as 1+2i`},
	{"region delete x", exitUsage, `unknown command "delete": that is ` + "`xdpfab region remove`"},
	{"bench server", exitUsage, `unknown command "server", did you mean "serve"?`},
	{"put PEER x --resume --region r", exitUsage, "unknown flag: --resume: put goes on with --skip and the number of bytes"},
	{"get PEER x --skip 5 --region r", exitUsage, "unknown flag: --skip: get goes on with --resume"},
	{"atomic sum uint64 1", exitUsage, "as in `xdpfab atomic sum uint64 1 --peer PEER --region NAME`; `xdpfab list PEER`"},
	{"region create x 4KiB", exitUsage, `unexpected argument "4KiB": the size stands behind a =: want x=4KiB; see`},
	{"region create x=4KiB y=4KiB", exitUsage, `unexpected argument "y=4KiB": want one region, and another command for the next one`},
	{"region create x=4KiB resident", exitUsage, `unexpected argument "resident": options stand behind a colon: want x=4KiB:resident`},
	{"ping lo", exitUsage, `"lo" is an interface of this machine: want the address of a peer, and -i lo, as in`},
	{"list PEER --cores 0,9999", exitUsage, "--cores 0,9999: want CPUs of 0"},
	{"list --regions x", exitUsage, "unknown flag: --regions: it lists all regions of the peer; leave out the name"},
	{"get PEER x --length 8", exitUsage, "want --region NAME or --key KEY, as in `xdpfab get " + peerAddr + " x --region NAME`"},
	{"atomic --batch - --region r --peer PEER", exitUsage, "--batch: nothing came on standard input: want one JSON object"},
	{"atomic --batch /dev/null --region r --peer PEER", exitUsage, "--batch: /dev/null has no operation: want one JSON object"},
	{"atomic add uint64 1", exitUsage, `unknown operation "add": here it is sum`},
	{"watch PEER --region r --type uint64", exitUsage, "unknown flag: --type: here it is --datatype"},
	{"ping PEER -n 3", exitUsage, "here it is --count"},
	{"atomic sum uint64 1 --peer PEER counters", exitUsage, "decimal or 0x…; a region is named by --region counters"},
	{"send PEER hello --mailbox 9", exitUsage, "unknown flag: --mailbox: the mailbox stands behind the peer, as in `xdpfab send 10.0.0.2/9 hello`"},
	{"ping PEER --csv", exitUsage, "unknown flag: --csv: want --json; bench alone has --csv"},
	{"doctor --json", exitUsage, "unknown flag: --json: it prints JSON always"},
	{"get PEER /dev/null --region r --size 8", exitUsage, "unknown flag: --size: here it is --length"},
	{"list --peer PEER", exitUsage, "unknown flag: --peer: PEER is an argument: `xdpfab list "},
	{"bench --peer PEER --region r", exitUsage, "unknown flag: --peer: PEER is an argument"},
	{"atomic PEER sum uint64 1 --region r", exitUsage, "is an address: a peer's is for --peer, and the order is OP DATATYPE VALUE"},
	{"atomic sum float64 1", exitUsage, `unknown datatype "float64": here it is double; the order is`},
	{"atomic sum int 1", exitUsage, `unknown datatype "int": here it is int64, or int32;`},
	{"atomic sum UINT 1", exitUsage, `unknown datatype "UINT": here it is uint64, or uint32;`},
	{"watch PEER --region r --datatype i64", exitUsage, `unknown datatype "i64": here it is int64`},
	{"bench PEER --region r --datatype complex64", exitUsage, `unknown datatype "complex64": here it is float_complex`},
	{"bench PEER --region r --datatype uint46", exitUsage, `unknown datatype "uint46", did you mean uint64?`},
	{"atomic sum int64 1 -- -1 --peer PEER", exitUsage, `bad value "--peer" for int64`},
	{"atomic sum int64 -- -1 --peer=PEER", exitUsage, "and --peer=" + peerAddr + " looks like a flag: flags go before --"},
	{"list fe80::b%va", exitUsage, `peer "fe80::b%va": leave out the zone, and name the interface with -i va: fe80::b -i va`},
	{"list 10.0.0.2%va", exitUsage, `peer "10.0.0.2%va": leave out the zone, and name the interface with -i va: 10.0.0.2 -i va`},
	{"list [fd00::2]/5", exitUsage, `peer "[fd00::2]/5": leave out the brackets: fd00::2/5`},
	{"list fe80::b%va/5", exitUsage, "fe80::b/5 -i va"},
	{"list 10.0.0.2 --transport udp --xdp native", exitUsage, "--xdp native is for AF_XDP, and --transport udp asks for UDP sockets: want one of them"},
	{"list 10.0.0.2 --transport udp --copy copy", exitUsage, "--copy copy is for AF_XDP"},
	{"list 10.0.0.2 --transport udp --queues 2", exitUsage, "--queues 2 is for AF_XDP"},
	{"receive --transport udp --xdp generic", exitUsage, "--xdp generic is for AF_XDP"},
	{"atomic CAS uint64 1", exitUsage, `unknown operation "CAS": here it is cswap`},
	{"get PEER /dev/null --region r --length 1MiB", exitFailed, "--length 1048576 from offset 0 on: region r has 65536 bytes: want 65536 or less"},
	{"get PEER /dev/null --region r --offset 1MiB", exitFailed, "--offset 1048576: region r has 65536 bytes: want 65536 or less"},
	{"put PEER /tmp --region r", exitUsage, "/tmp is a folder: want a file that this user may read, or - for stdin"},
	{"list PEER --queues 99", exitUsage, "--queues 99: want 0 for at most 4, or 1 to 64"},
	{"ping PEER --interval -1s", exitUsage, "--interval -1s: want 0 or more"},
	{"stat peers --skip -1", exitUsage, "--skip -1: want 0 or more"},
	{"lst PEER", exitUsage, `unknown command "lst", did you mean "list"?`},
	{"completion fsh", exitUsage, `did you mean "fish"?`},
	{"bench PEER", exitUsage, "missing the region: want --region NAME or --key KEY"},
	{"bench PEER --region r --op mul", exitUsage, "want one of fetch_add, add, read, cswap, put, get"},
	{"bench PEER --region r --op ad", exitUsage, `unknown operation "ad", did you mean add?: want one of fetch_add`},
	{"bench PEER --region r --op fetchadd", exitUsage, "did you mean fetch_add?"},
	{"bench PEER --region r --op fetch_ad", exitUsage, "did you mean fetch_add?"},
	{"bench PEER --region r --mode fast", exitUsage, "want latency or throughput"},
	{"bench PEER --region r --window 2", exitUsage, "--mode throughput"},
	{"bench PEER --region r --mode throughput --window 99999", exitUsage, "want 1 to 65536"},
	{"bench PEER --region r --endpoints 0", exitUsage, "--endpoints 0: want 1 to 1024"},
	{"bench PEER --region r --count 1 --endpoints 2", exitUsage, "at least one operation"},
	{"bench PEER --region r --duration 0s", exitUsage, "want more than 0"},
	{"bench PEER --region r --csv --json", exitUsage, "--csv with --json: want one of them"},
	{"bench PEER --region r --size 4KB", exitUsage, "or of KiB, MiB, GiB or TiB"},
	{"bench PEER --region r --size 12", exitUsage, "want a multiple of 8"},
	{"bench PEER --region r --op put --size 128KiB", exitFailed, "region r has 65536 bytes: want 131072 or more"},
	{"bench PEER --region r --words 0", exitUsage, "want 1 to 4096"},
	{"bench PEER --region r --words 2 --op get", exitUsage, "want an atomic operation"},
	{"bench PEER --region r --op add --datatype uint63", exitUsage, "want one of int8"},
	{"bench PEER --region r --percentiles 50,101", exitUsage, "want a list of numbers from 0 to 100"},
	{"bench PEER --region r --both", exitUsage, "want put or get"},
	{"bench PEER --region r --op send", exitUsage, "want no --region"},
	{"bench PEER --op send", exitFailed, "xdpfab: run `xdpfab bench serve` at " + peerAddr + ": connect on " + peerAddr + "/7: "},
	{"bench serve --memory 1MB", exitUsage, "or of KiB, MiB, GiB or TiB"},
	{"bench --region r", exitUsage, "missing PEER"},
	{"bench PEER --region r --count 0", exitUsage, "--count 0: want 1 or more, or --duration in its place"},
	{"bench serve --mailbox 0", exitUsage, "--mailbox 0: want 1 to 65534"},
	{"atomic band double 1 --peer PEER --region r", exitUsage, "band is not defined for double: want one of min, max, sum, prod, lor, land, lxor, read, write, cswap"},
	{"atomic write uint64 bits:5 --peer PEER --region r", exitUsage, "want bits:0x5"},
	{"bench PEER PEER --region r", exitUsage, peerAddr + " is named twice: want each node once; --endpoints 2 has more sessions"},
	{"bench PEER PEER/0 --key 0x51", exitUsage, peerAddr + " is named twice"},
	{"bench PEER --key 0x51 --spread", exitFailed, "--spread wants --region"},
	{"bench PEER --region absent", exitFailed, "no memory region of this name"},
	{"bench PEER --region ro --count 10", exitFailed, "does not grant this right"},
	{"work dance PEER", exitUsage, "want one of counter, lock"},
	{"work counter PEER --clients 0", exitUsage, "want 1 to 256"},
}

var refusalsAsTheyAre = []refusal{
	{"info nope --fabric", exitInterface, "xdpfab: \"nope\": no such interface in this network namespace; `ip link` lists them"},
	{"info 10.9.9.9", exitUsage, `"10.9.9.9" is an address: want an interface of this machine; ` + "`xdpfab diagnose 10.9.9.9`"},
	{"info 127.0.0.1", exitUsage, `"127.0.0.1" is an address: want the interface that has it: ` + "`xdpfab info lo`"},
	{"ping " + peerAddr + " -i eth99", exitInterface, "no such interface"},
	{"nope", exitUsage, `unknown command "nope"; see`},
	{"bogus", exitUsage, `unknown command "bogus"`},
	{"pink", exitUsage, `did you mean "ping"?`},
	{"bnech 10.0.0.2 --region counters", exitUsage, `unknown command "bnech", did you mean "bench"?; see`},
	{"region crate a=1KiB --interface eth0", exitUsage, `unknown command "crate", did you mean "create"?`},
	{"stat lo", exitUsage, `unknown command "lo": an interface is named by -i, as in ` + "`xdpfab stat -i lo`"},
	{"stat pears --limit 3", exitUsage, `unknown command "pears", did you mean "peers"?`},
	{"--regoin counters", exitUsage, "unknown flag: --regoin: a command's flags stand behind it"},
	{"--json ping 10.0.0.2", exitUsage, "a command's flags stand behind it, as in `xdpfab list 10.0.0.2 --json`"},
	{"stat peer", exitUsage, `unknown command "peer", did you mean "peers"?`},
	{"info a b", exitUsage, `unexpected argument "b"`},
	{"info absent0", exitInterface, "no such interface"},
	{"info --fabric absent0", exitInterface, "no such interface"},
	{"info --fabric --advise", exitUsage, "want one of"},
	{"info --probe", exitUsage, "--probe: want an interface to probe, as in `xdpfab info --probe eth0`"},
	{"info --probe --fabric lo", exitUsage, "--fabric with --probe: want one of them"},
	{"info --probe --operations lo", exitUsage, "--operations with --probe: want one of them"},
	{"resident list /nodir", exitFailed, "/nodir: no such file or directory: want a folder, or none for all"},
	{"info --probe absent0", exitInterface, "no such interface"},
	{"info --probe --advise absent0", exitInterface, "no such interface"},
	{"info --probe --control /absent/x.sock lo", exitUnreachable, "leave --control out"},
	{"info --control /absent", exitUnreachable, "no daemon serves the control socket: /absent: no such file"},
	{"info --advise --control /absent/x.sock lo", exitUsage, "asks no daemon"},
	{"kept list", exitUsage, "unknown command \"list\": that is `xdpfab kept` alone"},
	{"kept removee", exitUsage, `unknown command "removee", did you mean "remove"?`},
	{"region list", exitUsage, "unknown command \"list\": that is `xdpfab region` alone"},
	{"region make a=1KiB -i eth0", exitUsage, `unknown command "make": want create or remove`},
	{"get saved 10.0.0.2 --region r", exitUsage, `"saved" is no address, and "10.0.0.2" is one: the order is PEER FILE`},
	{"put saved 02:00:00:00:00:0b --region r", exitUsage, "the order is PEER FILE"},
	{"resident lsit", exitUsage, `unknown command "lsit", did you mean "list"?`},
	{"region create a:1KiB", exitUsage, `"a:1KiB": want NAME=SIZE[:OPTION,...], such as scores=1MiB`},
	{"region create a=1KB", exitUsage, `size "1KB", did you mean 1KiB?: want a number of bytes, or of KiB, MiB, GiB or TiB`},
	{"config foo", exitUsage, "unexpected argument \"foo\": want none; see `xdpfab config --help`"},
	{"help foo", exitUsage, "unknown command \"foo\"; see `xdpfab --help`"},
	{"add 1", exitUsage, "unknown command \"add\": that is `xdpfab atomic sum`"},
	{"sum uint64 1", exitUsage, "unknown command \"sum\": that is `xdpfab atomic sum`"},
	{"xchg", exitUsage, "unknown command \"xchg\": that is `xdpfab atomic write`"},
	{"min --help", exitUsage, "unknown command \"min\": that is `xdpfab atomic min`"},
	{"serve", exitUsage, "unknown command \"serve\": that is the daemon, `xdpfabd`"},
	{"frobnicate --help", exitUsage, "unknown command \"frobnicate\"; see `xdpfab --help`"},
	{"pign --help", exitUsage, `unknown command "pign", did you mean "ping"?`},
	{"pign PEER -h", exitUsage, `unknown command "pign", did you mean "ping"?`},
	{"stat pears --help", exitUsage, `unknown command "pears", did you mean "peers"?`},
	{"resident remove nosuch", exitUsage, "xdpfab: \"nosuch\" is no absolute path: want the folder as `xdpfab resident list` shows it"},
	{"stat --interface absent0", exitInterface, `xdpfab: no such interface "absent0": `},
	{"region create a=1KiB -i absent0", exitInterface, `xdpfab: no such interface "absent0": `},
	{"help pign", exitUsage, `unknown command "pign", did you mean "ping"?`},
	{"help sum", exitUsage, "unknown command \"sum\": that is `xdpfab atomic sum`"},
	{"help ping foo", exitUsage, `unexpected argument "foo"`},
	{"completion foo", exitUsage, `unknown command "foo": want bash or fish`},
	{"completion bash foo", exitUsage, `unexpected argument "foo"`},
	{"config set timeout 5s", exitUsage, "that is for an editor, on one of the files"},
	{"stat peers --sort resnt", exitUsage, `unknown order "resnt", did you mean resent?: want one of peer`},
	{"stat regions --sort byts", exitUsage, `unknown order "byts", did you mean bytes?: want one of name`},
	{"doctor", exitUsage, "want one INTERFACE: `ip link` lists them"},
	{"stat --timeout -1s", exitUsage, "want 0 or more"},
	{"stat --watch", exitUsage, "--watch needs a value: want a time such as 500ms, 5s or 1m; see"},
	{"list PEER -i", exitUsage, "--interface needs a value: want network interface to use; see"},
	{"atomic sum uint64 1 --peer 10.0.0.2 --peer 10.0.0.3 --region r", exitUsage, `--peer is given twice, with "10.0.0.2" and with "10.0.0.3": want one of them`},
	{"list 10.0.0.2 -i va --interface vb", exitUsage, `--interface is given twice, with "va" and with "vb": want one of them`},
	{"stat --all --all=false", exitUsage, `--all is given twice, with "true" and with "false"`},
	{"stat --control /absent/x.sock --control /absent/x.sock", exitUnreachable, "no daemon"},
	{"atomic sum uint64 1 --peer --region r", exitUsage, "--peer needs a value, and --region behind it is a flag: want the peer"},
	{"list 10.0.0.2 -i -v", exitUsage, "--interface needs a value, and -v behind it is a flag"},
	{"list 10.0.0.2 --timeout --json=true", exitUsage, "--timeout needs a value, and --json=true behind it is a flag: want a time such as 500ms"},
	{"stat --watch -1s", exitUsage, "want 0 or more"},
	{"stat -i a --control b", exitUsage, "--control with --interface: want one of them"},
	{"stat extra", exitUsage, "want guests or peers or regions or sessions"},
	{"stat --control /absent/x.sock", exitUnreachable, "no daemon"},
	{"demo extra", exitUsage, "unexpected argument \"extra\": want none"},
	{"demo --daemon /absent/xdpfabd", exitUsage, "no daemon"},
}

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

// Help has examples everywhere, and completion scripts come out.
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

func TestList(t *testing.T) {
	n := newNode(t)
	got := mustRun[[]regionEntry](n, "list PEER")
	if len(got) != 2 || !reflect.DeepEqual(got[0], regionEntry{Name: "r", Key: "0x0000000000000051", Size: 64 << 10, Access: []string{"read", "write"}}) || !slices.Equal(got[1].Access, []string{"read"}) {
		t.Errorf("%+v", got)
	}
	r := n.run("", n.line("list PEER")...)
	if lines := strings.Split(r.out, "\n"); r.code != 0 || len(lines) != 4 || strings.Index(lines[0], "BYTES") != strings.Index(lines[1], "65536") {
		t.Errorf("%d %s", r.code, r.out)
	}
}

func TestPing(t *testing.T) {
	n := newNode(t)
	for _, args := range []string{"ping PEER -c 50", "ping PEER -c 50 --region r --progress manual", "ping PEER -c 3 --interval 1ms"} {
		got := mustRun[pingReport](n, args)
		p := got.RoundTrip
		if got.Sent != got.Answered || got.Lost != 0 || int64(got.Sent) != p.Count || p.Min <= 0 || p.Min > p.P50 || p.P50 > p.P99 || p.P99 > p.Max {
			t.Errorf("%s: %+v", args, got)
		}
	}
	if r := n.run("", n.line("ping PEER -c 5")...); r.code != 0 || !strings.Contains(r.out, "5 round trips") || !strings.Contains(r.out, "p99.9") {
		t.Errorf("%+v", r)
	}
	if r := n.run("", n.line("ping PEER -c 3 --interval 10ms")...); r.code != 0 || strings.Count(r.out, "\nround trip ") != 3 || strings.Count(r.out, "ping "+peerAddr) != 1 {
		t.Errorf("%+v", r)
	}
	if r := n.run("", n.line("ping PEER -c 3 --interval 10ms -q")...); r.code != 0 || strings.Contains(r.out, "round trip ") || strings.Count(r.out, "ping "+peerAddr) != 1 {
		t.Errorf("%+v", r)
	}
	// An interrupted run prints the figures that it has.
	if r := n.interrupt("ping PEER -c 0", func() {}); r.code != 0 || !strings.Contains(r.out, " 0 lost") {
		t.Errorf("interrupted: %+v", r)
	}
}

// A peer that falls silent costs three time limits, not as many as there are round trips
// to go.
func TestPingGivesUp(t *testing.T) {
	tried := 0
	var r pingReport
	var out strings.Builder
	err := r.run(context.Background(), &pingFlags{count: 100}, &pingLines{out: &out, each: true}, func(context.Context) error {
		if tried++; tried > 5 {
			return fmt.Errorf("%w: likely causes: (1) it has ended", xdpfab.ErrPeerSilent)
		}
		return nil
	})
	if !errors.Is(err, xdpfab.ErrPeerSilent) || r.Answered != 5 || r.Lost != goneAfter || tried != r.Sent {
		t.Errorf("%+v, %v after %d", r, err, tried)
	}
	if text := out.String(); strings.Count(text, "µs\n") != 5 || strings.Count(text, "lost after") != goneAfter ||
		!strings.Contains(text, "round trip 6: lost") || strings.Contains(text, "likely causes") || !strings.Contains(err.Error(), "likely causes") {
		t.Error(text)
	}
}

// Without a pause each second has a line.
func TestPingLines(t *testing.T) {
	var out strings.Builder
	l := &pingLines{out: &out}
	for i := range 25 {
		l.add(i, time.Microsecond, time.Duration(i)*100*time.Millisecond, nil)
	}
	want := "1 s: 11 round trips, p50 1.00 µs, p99 1.00 µs, max 1.00 µs\n2 s: 10 round trips, p50 1.00 µs, p99 1.00 µs, max 1.00 µs\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

func TestFlagsReachTheDomain(t *testing.T) {
	n := newNode(t)
	n.run("", n.line("ping PEER -c 1 --progress manual --xdp any --copy zero-copy --timeout 9s --queues 1 --cores 0,1")...)
	want := xdpfab.DomainAttr{Progress: fi.ProgressManual, XDP: fi.XDPAny, Copy: fi.ZeroCopyForce, GiveUp: 9 * time.Second, Queues: 1, Cores: []int{0, 1}, EthernetOnly: true}
	if fmt.Sprint(n.attr) != fmt.Sprint(want) {
		t.Errorf("%+v, want %+v", n.attr, want)
	}
	n.run("", n.line("ping 10.0.0.1 -c 1")...)
	if n.attr.EthernetOnly {
		t.Error("an IP address leaves UDP off")
	}
}

func TestBench(t *testing.T) {
	n := newNode(t)
	for _, c := range []struct {
		args  string
		adds  bool
		words int
	}{
		{"--count 200", true, 1},
		{"--count 200 --op add --progress manual", true, 1},
		{"--count 100 --op read", false, 1},
		{"--count 100 --op cswap", false, 1},
		{"--count 5000 --mode throughput", true, 1},
		{"--count 5000 --mode throughput --op add --window 64 --endpoints 3 --spread", true, 4096},
		{"--duration 50ms --mode throughput --progress manual --endpoints 2 --spread", true, 4096},
	} {
		got := mustRun[bench.Report](n, "bench PEER --region r --warmup 5ms "+c.args)
		if !got.Verified || got.Growth != got.Acknowledged || (got.Growth >= got.Ops) != c.adds || got.Words != c.words || got.Ops == 0 {
			t.Errorf("%s: %+v", c.args, got)
		}
		if f := strings.Fields(c.args); f[0] == "--count" && fmt.Sprint(got.Ops) != f[1] {
			t.Errorf("%s: %d operations measured", c.args, got.Ops)
		}
	}
	r := n.run("", n.line("bench PEER --region r --count 10 --op put --size all --mode throughput --csv --percentiles 75")...)
	if lines := strings.Split(strings.TrimSpace(r.out), "\n"); r.code != 0 || len(lines) != 1+14 || !strings.Contains(lines[0], ",p75_ns,") ||
		!strings.Contains(lines[14], ",put,,65536,") {
		t.Errorf("%+v", r)
	}
	r = n.run("", n.line("bench PEER --region r --count 10 --op get --size 8,4KiB")...)
	if lines := strings.Split(strings.TrimSpace(r.out), "\n"); r.code != 0 || len(lines) != 4 || !strings.HasPrefix(lines[3], "4 KiB") {
		t.Errorf("%+v", r)
	}
	if r := n.run("", n.line("bench PEER --region r --count 10 --warmup 0s")...); r.code != 0 || !strings.Contains(r.out, "verified") {
		t.Errorf("%+v", r)
	}
	if r := n.interrupt("bench PEER --region r --duration 1h --mode throughput", func() {}); r.code != 0 || !strings.Contains(r.out, "verified") || !strings.Contains(r.out, " s, then interrupted: ") {
		t.Errorf("interrupted: %+v", r)
	}
	if r := n.interrupt("bench PEER --region r --duration 1h --json", func() {}); r.code != 0 || !strings.Contains(r.out, `"interrupted":true`) {
		t.Errorf("interrupted: %+v", r)
	}
	if r := n.interrupt("bench PEER --region r --duration 1h --csv", func() {}); r.code != 0 || r.err != "xdpfab: interrupted: the last row is of a part of its run\n" {
		t.Errorf("interrupted: %+v", r)
	}
}

// Another program that writes the words makes the verification fail.
func TestBenchNoticesForeignWrites(t *testing.T) {
	n := newNode(t)
	r := n.interrupt("bench PEER --region r --duration 1h", func() { binary.LittleEndian.PutUint64(n.mem.Bytes(), 1<<40) })
	checkRefusal(t, "bench", r, exitFailed, "verification failed: the words of r grew by")
}

// A run whose region is withdrawn says that, though its operations know the key alone.
func TestBenchNoticesAnEndedRegion(t *testing.T) {
	n := newNode(t)
	r := n.interrupt("bench PEER --region r --duration 1h", func() {
		if err := n.region.Close(); err != nil {
			t.Error(err)
		}
	})
	checkRefusal(t, "bench", r, exitUnknown, "region r has been withdrawn or registered anew during the run: peer restarted")
}

func TestWork(t *testing.T) {
	n := newNode(t)
	for _, w := range workloads {
		for range 2 { // the second time on top of the first
			got := mustRun[workReport](n, "work "+w.name+" PEER --region r --clients 4 --rounds 50")
			if !got.Exact || got.Got != got.Want {
				t.Errorf("%+v", got)
			}
		}
	}
	if n := binary.LittleEndian.Uint64(n.mem.Bytes()[wordCounter*load.WordSize:]); n != 400 {
		t.Errorf("counter %d, want 400", n)
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

func TestInfo(t *testing.T) {
	n := newNode(t)
	r := n.run("", "info", "lo")
	for _, say := range []string{"interface", "kernel", "CAP_NET_RAW", "OPERATION", "not an Ethernet interface", "bfloat16", "inject"} {
		if r.code != 0 || !strings.Contains(r.out, say) {
			t.Errorf("info lo: %d, no %q in\n%s%s", r.code, say, r.out, r.err)
		}
	}
	if r := n.run("", "info"); r.code != 0 || !strings.Contains(r.out, "INTERFACE") || strings.Contains(r.out, "OPERATION") {
		t.Errorf("info: %+v", r)
	}
	rep, err := report(context.Background(), nil, "")
	if err != nil || len(rep.Interfaces) == 0 || rep.Limits.Window != 64 || len(rep.Operations) == 0 {
		t.Errorf("%+v, %v", rep, err)
	}
	ops := map[string]string{}
	for _, o := range rep.Operations {
		ops[o.Op+" "+o.Datatype] = strings.Join(o.Forms, " ")
	}
	for k, want := range map[string]string{"sum uint64": "base fetch", "read int128": "fetch", "mswap int8": "compare", "bor double": ""} {
		if ops[k] != want {
			t.Errorf("%s: %q, want %q", k, ops[k], want)
		}
	}
	r = n.run("", "info", "--operations")
	if r.code != 0 || !strings.HasPrefix(r.out, "OPERATION ") || strings.Contains(r.out, "kernel") || !strings.Contains(r.out, "float16") {
		t.Errorf("the table of operations alone: %+v", r)
	}
}

func TestStat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.sock")
	var ops uint64
	source := func() (control.Status, error) {
		ops += 1000
		return control.Status{
			Version: "1", PID: 7, UptimeSeconds: float64(ops) / 1000, Address: peerAddr,
			Regions:  []control.Region{{Name: "r", Key: "0x01", Size: 8, Access: []string{"read"}}},
			Guests:   []control.Guest{{AttachedGuest: host.AttachedGuest{GuestInfo: host.GuestInfo{PID: 4711, UID: 77, Endpoints: 3, Serving: 2, Taken: 12345}}, User: "alice"}},
			Counters: map[string]uint64{"ops_executed": ops, "hellos": 0},
		}, nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error)
	l, err := control.Listen(t.Context(), path, control.Access{})
	if err != nil {
		t.Fatal(err)
	}
	go func() { served <- control.ServeListener(ctx, l, control.Service{Source: source}) }()
	n := newNode(t)
	r := n.run("", "stat", "--control", path)
	if r.code != 0 || !strings.Contains(r.out, "ops_executed  1000") || strings.Contains(r.out, "hellos") || !strings.Contains(r.out, peerAddr) ||
		!strings.Contains(strings.Join(strings.Fields(r.out), " "), "4711 alice 3 2 0 0 0 12345 0") {
		t.Errorf("%+v", r)
	}
	if r := n.run("", "stat", "--control", path, "--all"); !strings.Contains(r.out, "hellos") {
		t.Errorf("%+v", r)
	}
	r = n.run("", "stat", "--control", path, "--watch", "1ms", "--count", "2", "--json")
	if lines := strings.Split(strings.TrimSpace(r.out), "\n"); r.code != 0 || len(lines) != 2 || !strings.Contains(lines[1], `"rates":{"hellos":0,"ops_executed":1000}`) {
		t.Errorf("%+v", r)
	}
	r = n.run("", "stat", "--control", path, "--watch", "1ms", "--count", "3")
	if text := strings.Join(strings.Fields(r.out), " "); r.code != 0 || strings.Count(text, "COUNTER TOTAL") != 1 || strings.Count(text, "ops_executed") != 3 ||
		strings.Count(text, " 1000/s") != 2 || strings.Contains(text, "hellos") {
		t.Errorf("%+v", r)
	}
	var out bytes.Buffer
	a := &app{out: &out, err: &out, rows: func() int { return 12 }}
	code := a.run(ctx, []string{"stat", "--control", path, "--watch", "1ms", "--count", "2"})
	if pages := strings.Split(out.String(), "\x1b[H"); code != 0 || len(pages) != 3 || !strings.Contains(pages[1], "every 1ms; Ctrl-C ends\x1b[K\n") ||
		strings.Count(pages[2], "\n") != 11 || !strings.Contains(pages[2], "lines more") || !strings.HasSuffix(pages[2], "\x1b[?25h") {
		t.Errorf("%d, %q", code, out.String())
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// The client goes through a daemon of another network namespace only if the user named
// its socket, and not if the user named an interface.
func TestDaemonOfAnotherNamespace(t *testing.T) {
	for _, c := range []struct {
		line, env string
		named     bool
		path      string
	}{
		{"--control /d/x.sock", "", true, "/d/x.sock"},
		{"", "XDPFAB_CONTROL=/d/y.sock", true, "/d/y.sock"},
		{"-i eth7", "XDPFAB_CONTROL=/d/y.sock", false, control.DefaultPath("eth7")},
		{"", "XDPFAB_INTERFACE=eth8", false, control.DefaultPath("eth8")},
	} {
		name, value, _ := strings.Cut(c.env, "=")
		a := &app{env: func(asked string) string { return ifThen(asked == name, value) }}
		var f daemonFlags
		command := &cobra.Command{}
		f.register(command)
		if err := command.ParseFlags(strings.Fields(c.line)); err != nil {
			t.Fatal(err)
		}
		if named, _, err := f.find(a, command); err != nil || named != c.named || f.path != c.path {
			t.Errorf("%s %s: %v, %s, %v", c.env, c.line, named, f.path, err)
		}
	}
	for ns, refused := range map[uint64]bool{0: false, control.Namespace(): false, control.Namespace() + 1: true} {
		path := filepath.Join(t.TempDir(), "x.sock")
		ctx, cancel := context.WithCancel(context.Background())
		l, err := control.Listen(ctx, path, control.Access{})
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error)
		go func() {
			served <- control.ServeListener(ctx, l, control.Service{Source: func() (control.Status, error) { return control.Status{PID: 4711, NetNS: ns}, nil }})
		}()
		d, err := control.Dial(path)
		if err != nil {
			t.Fatal(err)
		}
		err = nearby(ctx, d, &daemonFlags{path: path})
		if (err != nil) != refused || refused && (exitCode(err) != exitUnreachable || !strings.Contains(err.Error(), "process 4711") || !strings.Contains(err.Error(), "start one here, as in `xdpfabd -i ") || !strings.Contains(err.Error(), "--control "+path)) {
			t.Errorf("namespace %d: %v", ns, err)
		}
		cancel()
		if err := errors.Join(d.Close(), <-served); err != nil {
			t.Error(err)
		}
	}
}

func TestCarrier(t *testing.T) {
	for want, i := range map[string]nodes.InterfaceInfo{
		"UDP sockets":                     {Transport: "udp", Queues: 1},
		"1 queue, generic XDP, copy":      {Transport: "xdp", Queues: 1, XDP: "generic", Copy: "copy"},
		"2 queues, native XDP, zero-copy": {Transport: "xdp", Queues: 2, XDP: "native", Copy: "zero-copy"},
	} {
		if got := carrier(&i); got != want {
			t.Errorf("%+v: %q, want %q", i, got, want)
		}
	}
}

func TestOnlyDaemon(t *testing.T) {
	dir := t.TempDir()
	if _, err := onlyDaemon(dir); !errors.Is(err, control.ErrNoDaemon) {
		t.Error(err)
	}
	for i, name := range []string{"a.sock", "b.sock"} {
		l, err := net.Listen("unix", filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		path, err := onlyDaemon(dir)
		if i == 0 && (err != nil || filepath.Base(path) != name) || i == 1 && exitCode(err) != exitUsage {
			t.Errorf("%d sockets: %q, %v", i+1, path, err)
		}
	}
	dir = t.TempDir()
	for _, name := range []string{"dead.sock", "live.sock"} {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, name)})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if name == "dead.sock" { // as a daemon that was killed leaves it
			l.SetUnlinkOnClose(false)
			l.Close()
		}
	}
	if path, err := onlyDaemon(dir); err != nil || filepath.Base(path) != "live.sock" {
		t.Errorf("one of two is dead: %q, %v", path, err)
	}
	if err := os.Rename(filepath.Join(dir, "dead.sock"), filepath.Join(dir, "live.sock")); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(dir, "live.sock"), filepath.Join(dir, "other.sock")); err != nil {
		t.Fatal(err)
	}
	_, err := onlyDaemon(dir)
	if !errors.Is(err, control.ErrNoDaemon) || !strings.Contains(err.Error(), "the daemons that made the 2 sockets in "+dir+" have ended: start xdpfabd") {
		t.Errorf("both are dead: %v", err)
	}
}

// Root may make namespaces: for it, see the end-to-end tests.
func TestUnprivilegedDemo(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("needs to be another user than root")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	checkRefusal(t, "demo", newNode(t).run("", "demo", "--daemon", exe), exitInterface, "needs root")
}
