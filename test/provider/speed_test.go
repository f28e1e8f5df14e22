// SPDX-License-Identifier: Apache-2.0

//go:build linux

package provider

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/bench/measure"
)

// speedEnv says how many rounds TestSpeed has: make bench-provider sets it.
const speedEnv = "XDPFAB_PROVIDER_SPEED"

// least is the least ratio of a program in C to one in Go, each in the best of its
// rounds: that is the one which other programs have disturbed least.
const least = 0.8

// contest is a program in C and one in Go that do the same on one region.
type contest struct {
	name       string
	clients    [2]func(window int) *running
	rates      [2][]float64 // of C and Go, of a window
	comparison []float64    // C to Go, of the same
}

// rate runs a client, and returns its operations a second.
func (w *world) rate(p *running) float64 {
	w.t.Helper()
	p.in.Close()
	for {
		text := w.line(p)
		if !strings.HasPrefix(text, "{") {
			continue
		}
		var r measure.Result
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			w.t.Fatalf("%q: %v", text, err)
		}
		w.end(p)
		return r.OpsPerSecond()
	}
}

func median(of []float64) float64 {
	of = slices.Sorted(slices.Values(of))
	return of[len(of)/2]
}

// A program in C, by the provider, adds to words as often as one in Go does, as guests of
// the same daemons, in turn: in a region of the other daemon, and in memory of a program
// that executes the operations itself.
func TestSpeed(t *testing.T) {
	rounds, err := strconv.Atoi(os.Getenv(speedEnv))
	if err != nil || rounds < 1 {
		t.Skip("a benchmark: make bench-provider")
	}
	w := newWorld(t)
	inC, inGo := filepath.Join(w.dir, "fabric"), filepath.Join(w.dir, "worker")
	for _, build := range []*exec.Cmd{
		exec.Command("gcc", "-O2", "-D_GNU_SOURCE", "-pthread", "-o", inC, "../../bench/peers/fabric/fabric.c", "-lfabric"),
		exec.Command("go", "build", "-o", inGo, "../../bench/worker"),
	} {
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", build, err, out)
		}
	}
	ip := w.net.B.IP4.String()
	between := func(name, port, key string) *contest {
		return &contest{name: name, clients: [2]func(int) *running{
			func(window int) *running {
				return w.start(0, inC, "client", "xdpfab", ip, port, "0", key, "fetch", fmt.Sprint(window), "0.3", "0.1")
			},
			func(window int) *running {
				return w.start(0, inGo, "initiator", "-i", w.net.A.IfName, "-control", w.sockets[0], "-threading", "domain",
					"-peer", ip+"/"+port, "-key", key, "-words", "4096", "-window", fmt.Sprint(window),
					"-duration", "300ms", "-warmup", "100ms")
			},
		}}
	}
	key, err := strconv.ParseUint(w.key(1), 0, 64)
	if err != nil {
		t.Fatal(err)
	}
	server := w.start(1, inC, "server", "xdpfab", ip, "7471")
	served := strings.Fields(w.line(server))
	contests := []*contest{between("daemon's", "0", fmt.Sprint(key)), between("program's", "7471", served[2])}
	var table strings.Builder
	for _, window := range []int{1, 16, 64, 256} {
		for _, c := range contests {
			c.rates, c.comparison = [2][]float64{}, nil
		}
		for range rounds {
			for _, c := range contests {
				var got [2]float64
				for i, client := range c.clients {
					got[i] = w.rate(client(window))
					c.rates[i] = append(c.rates[i], got[i])
				}
				c.comparison = append(c.comparison, got[0]/got[1])
			}
		}
		for _, c := range contests {
			best := [2]float64{slices.Max(c.rates[0]), slices.Max(c.rates[1])}
			ratio := best[0] / best[1]
			fmt.Fprintf(&table, "%-9s  window %3d  best: C %5.0f k/s  Go %5.0f k/s  C/Go %.2f; of each round, median %.2f\n",
				c.name, window, best[0]/1000, best[1]/1000, ratio, median(c.comparison))
			if ratio < least {
				t.Errorf("%s memory, window %d: C reaches %.2f of Go, want %.1f", c.name, window, ratio, least)
			}
		}
	}
	load, _ := os.ReadFile("/proc/loadavg")
	t.Logf("at a load of %s\n%s", load, table.String())
}
