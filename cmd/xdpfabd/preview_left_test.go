// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// A check finds that what a former daemon has left would prevent the start, as the start
// does.
func TestCheckFindsWhatStartDoes(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{Queues: 2})
	pin := filepath.Join(testnet.BPFFS(t), "node")
	path := socketPath(t)
	p := launch(t, net.B, path, nil, "--pin", pin, "--region", "hot=4KiB:resident")
	p.ready(t)
	p.signal(t, syscall.SIGKILL)
	p.code(t)
	say := func(code int, want string, args ...string) {
		t.Helper()
		c := launch(t, net.B, path, nil, args...)
		if got := c.code(t); got != code || !strings.Contains(unfolded(c.out.String()), want) {
			t.Errorf("%v: code %d, want %d: %s; want %s", args, got, code, c.out.String(), want)
		}
	}
	both := func(inCheck, inStart string, args ...string) {
		t.Helper()
		say(exitUsage, inCheck, append(args, "--check")...)
		say(exitInterface, inStart, args...)
	}
	regions := []string{"--region", "hot=4KiB:resident", "--pin", pin}
	mac := "`ip link set dev veth0 address " + net.B.MAC.String() + "`"
	testnet.IP(t, net.B, "link set veth0 address 02:11:22:33:44:55")
	both(mac, mac, regions...)
	testnet.IP(t, net.B, "link set veth0 address "+net.B.MAC.String())
	both("of an interface with UDP", "of an interface with UDP", append(regions, "--udp=false")...)
	if tool, err := exec.LookPath("ethtool"); testnet.Borrowed(t) == nil && err == nil {
		set := func(side *testnet.Side, n string) {
			t.Helper()
			if out, err := side.Command(tool, "-L", side.IfName, "rx", n, "tx", n).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
		set(net.A, "1")
		set(net.B, "1")
		want := "veth0: the interface had 2 receive queues when the program was attached, and has 1 now; to go on, " +
			"`ethtool -L veth0 rx 2 tx 2`; to begin anew"
		both(want, want, regions...)
		set(net.B, "2")
	}
	p = launch(t, net.B, path, nil, regions...)
	if p.ready(t); !strings.Contains(p.out.String(), "contents=kept") {
		t.Error("the contents are lost")
	}
}

// foundByMount is a script that leaves resident regions where a mount shows them.
const foundByMount = `set -e
mount -t bpf bpf "$D"
"$X" --interface veth0 --control "$C" --pin "$D/node" --region hot=4KiB:resident >"$C.log" 2>&1 &
until grep -q msg=region "$C.log"; do kill -0 $!; sleep 0.05; done
kill -9 $!; wait $! || :
both() { for last in --check --log-level=info; do "$X" --control "$C" "$@" $last 2>&1 || echo "code $?"; done; }
both --interface veth0 --region hot=4KiB:resident --pin none
both --interface veth0 --region r=4KiB --transport udp
ip link set veth0 down; ip link set veth0 name lan0; ip link set lan0 up
both --interface veth0 --region hot=4KiB:resident --pin "$D/node"
both --interface lan0 --region hot=4KiB:resident --pin "$D/other"
"$X" --control "$C" --interface lan0 --region hot=4KiB:resident --pin "$D/node" --check`

// A check finds resident regions that a former daemon has left elsewhere, or on an
// interface that is named otherwise by now, where the start is refused for them.
func TestCheckFindsLeftElsewhere(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c := net.B.Command("unshare", "--mount", "--propagation=private", "sh", "-c", foundByMount)
	c.Env = append(os.Environ(), asDaemon+"=1", "NOTIFY_SOCKET=", "X="+self, "D="+dir, "C="+socketPath(t))
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	parts := strings.Split(string(out), "code ")
	elsewhere, renamed := "does not look there: to go on with them, --transport xdp --pin "+dir+"/node; to begin anew, end them",
		"its interface is named lan0 by now, not veth0; to go on, `ip link set dev lan0 name veth0`, or --interface lan0 --pin "+
			dir+"/node; to begin anew"
	for i, want := range []struct{ code, text string }{
		{"2", elsewhere}, {"5", "xdpfab resident remove " + dir + "/node"}, {"2", elsewhere}, {"5", "takes the packets to UDP port"},
		{"2", renamed}, {"5", "no such interface"}, {"2", elsewhere}, {"5", "is in use by resident regions, left in " + dir + "/node"},
	} {
		if i+1 >= len(parts) || !strings.HasPrefix(parts[i+1], want.code) || !strings.Contains(unfolded(parts[i]), want.text) {
			t.Fatalf("step %d: %s; want %s, and code %s", i, out, want.text, want.code)
		}
	}
	if want := `region "hot": goes on with what a former daemon has left in ` + dir; !strings.Contains(parts[len(parts)-1], want) {
		t.Errorf("%s; want %s", out, want)
	}
}

// The contents of resident regions whose interface is gone are lost, and a check, the
// start and the list of what was left say so.
func TestLeftOfInterfaceThatIsGone(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	pin := filepath.Join(testnet.BPFFS(t), "node")
	path := socketPath(t)
	p := launch(t, net.B, path, nil, "--pin", pin, "--region", "hot=4KiB:resident")
	p.ready(t)
	p.signal(t, syscall.SIGKILL)
	p.code(t)
	testnet.IP(t, net.B, "link del veth0", "link add veth0 type veth peer name veth1", "link set veth0 up", "link set veth1 up")
	regions := []string{"--pin", pin, "--region", "hot=8KiB:resident"} // another size is as good
	c := launch(t, net.B, path, nil, append(regions, "--check")...)
	want := fmt.Sprintf(`region "hot": what a former daemon has left of it in %s is lost: it was of an interface that is gone`, pin)
	if code := c.code(t); code != exitOK || !strings.Contains(c.out.String(), want) {
		t.Errorf("code %d: %s", code, c.out.String())
	}
	if left := leftIn(pin, 0); left.Whole {
		t.Errorf("%+v", left)
	}
	p = launch(t, net.B, path, nil, regions...)
	p.ready(t)
	p.said(t, "resident regions that a former process left are lost: they were of an interface that is gone")
	p.said(t, "regions=[hot]")
	p.said(t, "contents=new")
}

// A resident region whose memory somebody has taken out of the folder is not said to have
// another size.
func TestLeftMemoryMissing(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	pin := filepath.Join(testnet.BPFFS(t), "node")
	flags := []string{"--pin", pin, "--region", "hot=4KiB:resident"}
	path := socketPath(t)
	p := launch(t, net.B, path, nil, flags...)
	p.ready(t)
	p.signal(t, syscall.SIGKILL)
	p.code(t)
	memories, err := filepath.Glob(filepath.Join(pin, "v*", "memory-*"))
	if err != nil || len(memories) != 1 {
		t.Fatalf("%v: %v", memories, err)
	}
	if err := os.Remove(memories[0]); err != nil {
		t.Fatal(err)
	}
	p = launch(t, net.B, path, nil, flags...)
	p.said(t, "and its contents are lost: its memory is missing in the folder\" region=hot size=4096 folder="+pin)
	p.said(t, "contents=new")
}

// A daemon that is to leave its resident regions, and has no folder for them, does not
// start; without --leave it warns. A check says both.
func TestLeaveWithoutFolder(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// An empty /sys/fs hides any BPF file system.
	script := `set -e
mount -t tmpfs none /sys/fs
x() { "$X" --interface veth0 --control "$C" --region hot=4KiB:resident "$@" 2>&1 || echo "code $?"; }
x --leave --check; x --leave; x --check`
	c := net.B.Command("unshare", "--mount", "--propagation=private", "sh", "-c", script)
	c.Env = append(os.Environ(), asDaemon+"=1", "NOTIFY_SOCKET=", "X="+self, "C="+socketPath(t))
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	parts := strings.Split(unfolded(string(out)), "code 2")
	want := "leave = true, and there is no folder in which resident regions could outlive this daemon: /sys/fs/bpf: no such file or " +
		"directory; name one with --pin, or want leave = false"
	if len(parts) != 3 || !strings.Contains(parts[0], want) || !strings.Contains(parts[1], want) ||
		!strings.Contains(parts[2], endsWithDaemon+": /sys/fs/bpf: no such file") {
		t.Errorf("%s; want %s", out, want)
	}
}
