// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"encoding/json"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// Between the programs of two nodes, through their daemons: messages arrive at a receive,
// a watch sees a word change, and bench measures messages, copies and many words a post,
// over Ethernet and over UDP, and checks each.
func TestVerbs(t *testing.T) {
	testnet.Require(t)
	net := testnet.NewPair(t, testnet.Options{})
	d := host(t, net.B, "--region", "r=64KiB")
	host(t, net.A)
	at := func(side *testnet.Side, line string) []string {
		line = strings.NewReplacer("MAC", d.addr(), "IP", net.B.IP4.String()).Replace(line)
		return append(strings.Fields(line), "-i", side.IfName)
	}
	client := func(line string) *process { return start(t, net.A, xdpfabPath, at(net.A, line)) }

	receive := start(t, net.B, xdpfabPath, at(net.B, "receive --count 2 --json"))
	receive.eventually("a message arrives", func() bool { return client("send MAC first").code() == 0 })
	client("send IP second --tag 7").wants(0)
	receive.wants(0)
	var texts []string
	for line := range strings.Lines(receive.out.String()) {
		var m struct {
			Text string
			Tag  *uint64
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if m.Tag != nil {
			m.Text += " with tag " + strconv.FormatUint(*m.Tag, 10)
		}
		texts = append(texts, m.Text)
	}
	if got := strings.Join(texts, ", "); got != "first, second with tag 7" {
		t.Errorf("received %s", receive.out.String())
	}
	client("send MAC late").wants(1, "nobody receives at "+d.addr()+"/5")

	watch := client("watch MAC --region r --offset 8 --until 3 --interval 1ms")
	watch.eventually("it sees the word", func() bool { return strings.HasSuffix(watch.out.String(), "  0\n") })
	client("atomic sum uint64 3 --peer IP --region r --offset 8").wants(0)
	if watch.wants(0); !strings.HasSuffix(watch.out.String(), "  0 -> 3\n") {
		t.Errorf("watch: %s", watch.out.String())
	}

	served := start(t, net.B, xdpfabPath, at(net.B, "bench serve"))
	served.eventually("it serves", func() bool { return strings.Contains(served.out.String(), "serving at "+d.addr()+"/7") })
	type report struct {
		Verification string
		Verified     bool
		Ops          uint64
		OpsPerPacket float64 `json:"ops_per_packet"`
	}
	const count = 2000
	for line, want := range map[string]string{
		"bench MAC --op tagged": "messages",
		"bench IP --op send --size 3000 --mode throughput --endpoints 2":                      "messages",
		"bench MAC/7 --region bench --op put --size 4KiB --mode throughput":                   "bytes",
		"bench IP --region r --op get --size 8":                                               "bytes",
		"bench MAC --region r --mode throughput --spread --words 182 --progress manual":       "sum",
		"bench IP --region r --mode throughput --op fetch_max --datatype double --window 100": "none",
	} {
		r := answer[report](t, net.A, at(net.A, line+" --warmup 1ms --count "+strconv.Itoa(count))...)
		if r.Verification != want || r.Verified != (want != "none") || r.Ops < count || r.OpsPerPacket != 0 {
			t.Errorf("%s: %+v, want it checked by its %s, and no packets, which are the daemon's", line, r, want)
		}
	}
	served.signal(syscall.SIGINT)
	served.wants(0)
}
