// SPDX-License-Identifier: Apache-2.0

//go:build linux

package vm

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/test/vm/guest"
)

// node is one of two machines joined by a cable.
type node struct {
	*Machine
	t   *testing.T
	ctx context.Context
	mac string
	ip  string
}

// pair boots two machines with kernels of their own and joins them by a cable.
func pair(t *testing.T, clientKernel, serverKernel string, programs map[string]string) (client, server *node) {
	t.Helper()
	a, b, err := NewCable()
	if err != nil {
		t.Fatal(err)
	}
	nodes := [2]*node{}
	cables := [2]*os.File{a, b}
	for i, name := range []string{clientKernel, serverKernel} {
		n := &node{t: t, ctx: limited(t), mac: fmt.Sprintf("02:00:00:00:00:%02x", i+1), ip: fmt.Sprintf("10.9.0.%d", i+1)}
		k := kernel(t, name)
		n.Machine = boot(t, Config{Image: Image{Kernel: k, Files: programs}, Cable: cables[i], MAC: n.mac})
		n.run(0, "ip addr add "+n.ip+"/24 dev eth0; ip link set eth0 up; ethtool -i eth0 2>/dev/null | head -1")
		nodes[i] = n
	}
	return nodes[0], nodes[1]
}

// run runs a script, checks its exit code and returns its output.
func (n *node) run(code int, script string) (out, errs string) {
	n.t.Helper()
	got, out, errs, err := shell(n.ctx, n.Machine, "export PATH=$PATH:"+guestPrograms+"; "+script, 60)
	if err != nil || got != code {
		n.t.Fatalf("%s: code %d, want %d, %v: %s%s", script, got, code, err, out, errs)
	}
	return out, errs
}

// serve starts xdpfabd, with native XDP where the driver has it, and returns
// the mode.
func (n *node) serve() (mode string) {
	n.t.Helper()
	for _, generic := range []string{"", "--xdp any"} {
		var log console
		ended := make(chan int, 1)
		go func() {
			code, _ := n.Run(n.ctx, guest.Command{Args: []string{"sh", "-c", "exec " + guestPrograms +
				"/xdpfabd --interface eth0 --control /run/x.sock --region r=64KiB " + generic}}, &log, &log)
			ended <- code
		}()
		for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			if m := regexp.MustCompile(`msg=serving.* xdp=(\w+)`).FindStringSubmatch(log.String()); m != nil {
				return m[1]
			}
			if len(ended) > 0 {
				break
			}
		}
		if generic != "" || !strings.Contains(log.String(), "no native XDP") {
			n.t.Fatalf("xdpfabd on %s: %s", n.Hello.Release, log.String())
		}
	}
	return ""
}

// add adds to the first word of the peer's region and returns what is there then.
func (n *node) add(v uint64, addr, flags string) uint64 {
	n.t.Helper()
	out, _ := n.run(0, fmt.Sprintf("xdpfab atomic sum uint64 %d -i eth0 --peer %s --region r --json %s", v, addr, flags))
	var r struct{ After []string }
	if err := json.Unmarshal([]byte(out), &r); err != nil || len(r.After) != 1 {
		n.t.Fatalf("%v in %s", err, out)
	}
	after, err := strconv.ParseUint(r.After[0], 10, 64)
	if err != nil {
		n.t.Fatal(err)
	}
	return after
}

func (n *node) healthy() {
	n.t.Helper()
	log, err := n.Dmesg(n.ctx)
	if w := warnings(log); err != nil || len(w) > 0 {
		n.t.Errorf("%s: the kernel says %q, %v", n.Hello.Release, w, err)
	}
}

// programs builds the commands, with flags, for guests.
func programs(t *testing.T, at string, flags ...string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	if err := goBuild(AMD64, dir+"/", "./cmd/...", flags...); err != nil {
		t.Fatal(err)
	}
	return map[string]string{at: dir}
}

// Two machines with two kernels, and virtio-net between them: a second driver, and
// no memory in common.
func TestTwoMachines(t *testing.T) {
	for _, k := range [][2]string{{DefaultKernel, DefaultKernel}, {"6.1", "sid"}} {
		t.Run(k[0]+" to "+k[1], func(t *testing.T) {
			kernel(t, k[0]) // before the programs are built for nothing
			client, server := pair(t, k[0], k[1], programs(t, guestPrograms))
			mode := server.serve()
			flags := map[string]string{"native": "", "generic": "--xdp any"}[mode]
			for _, addr := range []string{server.mac, server.ip} {
				now := client.add(0, addr, flags)
				for i := range uint64(3) {
					if now += i + 1; client.add(i+1, addr, flags) != now {
						t.Errorf("%s: adding %d does not make it %d", addr, i+1, now)
					}
				}
				out, _ := client.run(0, fmt.Sprintf("xdpfab bench %s -i eth0 --region r --mode throughput --duration 1s --json %s", addr, flags))
				var b struct {
					Verified bool
					Ops      uint64
				}
				if err := json.Unmarshal([]byte(out), &b); err != nil || !b.Verified || b.Ops == 0 {
					t.Errorf("bench over %s: %+v, %v: %.300s", addr, b, err, out)
				}
			}
			t.Logf("Linux %s to Linux %s, virtio-net, %s XDP", client.Hello.Release, server.Hello.Release, mode)
			client.healthy()
			server.healthy()
		})
	}
}

// An upgrade node by node: a node with another version of the wire format is
// refused, executes nothing, and disturbs no other. See docs/wire-format.md: frames
// of other versions are dropped.
func TestRollingUpgrade(t *testing.T) {
	kernel(t, DefaultKernel)
	files := programs(t, guestPrograms)
	for at, dir := range programs(t, "/vm/next", "-overlay="+nextVersion(t)) {
		files[at] = dir
	}
	client, server := pair(t, DefaultKernel, DefaultKernel, files)
	flags := map[string]string{"native": "", "generic": "--xdp any"}[server.serve()]
	line := fmt.Sprintf("xdpfab atomic sum uint64 1 -i eth0 --peer %s --region r %s", server.mac, flags)
	before := client.add(1, server.mac, flags)
	if _, errs := client.run(4, "/vm/next/"+line); !strings.Contains(errs, "not executed") {
		t.Errorf("a client of the next version says %q, want that nothing was executed", errs)
	}
	if after := client.add(1, server.mac, flags); after != before+1 {
		t.Errorf("the word holds %d, want %d: one addition each time that the versions were the same", after, before+1)
	}
	out, _ := server.run(0, "xdpfab stat --control /run/x.sock --json")
	var s struct{ Counters map[string]uint64 }
	if err := json.Unmarshal([]byte(out), &s); err != nil || s.Counters["xdp_drop_version"] == 0 {
		t.Errorf("no frame of another version was dropped: %v, %v", s.Counters, err)
	}
}

// nextVersion is an overlay of go build in which the wire format's version is the
// next one.
func nextVersion(t *testing.T) string {
	t.Helper()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, "internal/wire/header.go")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^\tVersion +=.*$`)
	if len(version.FindAll(b, -1)) != 1 {
		t.Fatalf("%s has not one Version", path)
	}
	next := write(t, "header.go", string(version.ReplaceAll(b, []byte("\tVersion = 2"))))
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {path: next}})
	if err != nil {
		t.Fatal(err)
	}
	return write(t, "overlay.json", string(overlay))
}
