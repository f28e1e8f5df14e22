// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// A million fetch-adds of two nodes on one word, while a third one reads it: the
// sum is exact, every value was returned once, and the values read never
// decrease.
func TestMillionFetchAdds(t *testing.T) {
	testnet.Require(t)
	const each, reads = 500_000, 2000
	star := testnet.NewStar(t, 4, testnet.Options{})
	server, readers := star.Sides[0], star.Sides[3]
	file := filepath.Join(t.TempDir(), "memory")
	d := serve(t, server, "--region", "r=4KiB:backing="+file)
	var adders []*process
	var values []string
	for i, side := range star.Sides[1:3] {
		values = append(values, filepath.Join(t.TempDir(), fmt.Sprint("values", i)))
		adders = append(adders, startAdder(t, side, d, "-region", "r", "-count", fmt.Sprint(each), "-values", values[i]))
	}
	lines := strings.Repeat(`{"func":"fetch","op":"read","dt":"uint64"}`+"\n", reads)
	reader := start(t, readers, xdpfabPath, []string{"atomic", "-i", readers.IfName, "--peer", d.addr(), "--region", "r", "--batch", "-"}, input(lines))
	for _, a := range adders {
		if got := fates(a); got.Added != each || got.First != "" {
			t.Errorf("%s: %+v, want %d added", a.name, got, each)
		}
	}
	checkReads(t, reader, reads, 2*each)
	checkOnce(t, values, 2*each)
	read := answer[atomicReport](t, readers, "atomic", "read", "uint64", "-i", readers.IfName, "--peer", d.addr(), "--region", "r")
	if want := fmt.Sprint(2 * each); !slices.Equal(read.Before, []string{want}) {
		t.Errorf("read %q at the end, want %s", read.Before, want)
	}
	if n := word(t, file); n != 2*each {
		t.Errorf("the memory holds %d, want %d", n, 2*each)
	}
	d.end()
}

// checkReads checks that the reader's values never decrease and never exceed
// the sum.
func checkReads(t *testing.T, reader *process, count int, most uint64) {
	t.Helper()
	reader.wants(0)
	var last uint64
	n, distinct := 0, 0
	for dec := json.NewDecoder(strings.NewReader(reader.out.String())); dec.More(); n++ {
		var a batchAnswer
		if err := dec.Decode(&a); err != nil {
			t.Fatal(err)
		}
		v := littleEndian(t, a.Res)
		if v < last || v > most {
			t.Errorf("read %d after %d, of at most %d", v, last, most)
		}
		if v != last {
			distinct++
		}
		last = v
	}
	if n != count {
		t.Errorf("%d reads, want %d", n, count)
	}
	t.Logf("%d reads saw %d different values, the last %d", n, distinct, last)
}

// checkOnce checks that the files hold each value below n exactly once, and
// each file in order, since an initiator's operations run in the order posted.
func checkOnce(t *testing.T, files []string, n int) {
	t.Helper()
	var all []uint64
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		from := len(all)
		for w := range slices.Chunk(b, 8) {
			all = append(all, binary.LittleEndian.Uint64(w))
		}
		if !slices.IsSorted(all[from:]) {
			t.Errorf("%s: not in order", f)
		}
	}
	slices.Sort(all)
	if len(all) != n {
		t.Fatalf("%d values, want %d", len(all), n)
	}
	for i, v := range all {
		if v != uint64(i) {
			t.Fatalf("value %d was returned twice or %d never", v, i)
		}
	}
}

func littleEndian(t *testing.T, text string) uint64 {
	t.Helper()
	if len(text) != 16 {
		t.Fatalf("result %q, want 8 bytes", text)
	}
	v, err := strconv.ParseUint(text, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	return binary.BigEndian.Uint64(b[:])
}

// benchReport is the part of the output of `xdpfab bench --json` that is
// checked.
type benchReport struct {
	Op           string
	Endpoints    int
	Ops          uint64
	Acknowledged uint64 `json:"acknowledged_adds"`
	Growth       uint64
	Verified     bool
	Latency      percentiles
	OpsPerPacket float64 `json:"ops_per_packet"`
}

// Four queues, more endpoints than those, many words: bench verifies its sum, and
// the daemon's counters and a further read agree.
func TestMultiQueue(t *testing.T) {
	testnet.Require(t)
	net := testnet.NewPair(t, testnet.Options{Queues: 4})
	d := serve(t, net.B, "--region", "r=32KiB", "--region", "one=8")
	s, err := d.ask()
	if err != nil || s.Interface.Queues != 4 {
		t.Fatalf("the daemon uses %d queues, %v, want 4", s.Interface.Queues, err)
	}
	const count = 200_000
	sum := make(map[string]uint64)
	for _, c := range []struct{ op, region, spread string }{
		{"fetch_add", "one", "--spread=false"},
		{"add", "r", "--spread"},
	} {
		b := answer[benchReport](t, net.A, "bench", d.addr(), "-i", net.A.IfName, "--region", c.region, c.spread, "--op", c.op,
			"--mode", "throughput", "--endpoints", "6", "--warmup", "0", "--count", fmt.Sprint(count))
		// Some operations run before the measurement begins, even without a
		// warm-up.
		if !b.Verified || b.Endpoints != 6 || b.Ops != count || b.Acknowledged < count || b.Growth != b.Acknowledged {
			t.Errorf("%s: %+v, want %d verified", c.op, b, count)
		}
		sum[c.region] = b.Growth
		checkPercentiles(t, b.Latency, count)
	}
	read := answer[atomicReport](t, net.A, "atomic", "read", "uint64", "-i", net.A.IfName, "--peer", d.addr(), "--region", "one")
	if want := fmt.Sprint(sum["one"]); !slices.Equal(read.Before, []string{want}) {
		t.Errorf("read %q, want %s", read.Before, want)
	}
	if c := d.counters(); c["ops_executed"] < 2*count || c["requests_executed"] == 0 || c["requests_executed"] > count {
		t.Errorf("the daemon counts %d operations in %d frames, want %d or more, many to a frame", c["ops_executed"], c["requests_executed"], 2*count)
	}
	d.end()
}
