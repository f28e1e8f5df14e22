// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// A peer adds to a file that a guest has mapped, and its daemon has not, while daemons
// take over from one another: every addition runs once. Then the guest is stopped, and
// the peer waits; it is killed, and of what was in flight each addition ran once or not
// at all.
func TestAttendedGuest(t *testing.T) {
	testnet.Require(t)
	net, dir := testnet.NewPair(t, testnet.Options{}), t.TempDir()
	file := filepath.Join(dir, "attended")
	h := host(t, net.A, "--region", "far=4KiB")
	flags := []string{"--guest", "allow"}
	d := launch(t, net.B, filepath.Join(dir, socketName), flags...)
	d.ready()
	hosts.Store(net.B, d)
	t.Cleanup(func() { hosts.Delete(net.B) })
	guest, serves := startAdding(t, net.B, h, "-region", "far", "-serve", "77", "-attend", file)
	guest.eventually("serving", func() bool { return serves() > 0 })
	p, added := startAdding(t, net.A, d, "-key", fmt.Sprint(attendKey), "-peer", d.addr()+"/77")
	for range 3 {
		was := added()
		p.eventually("adding", func() bool { return added() > was+1000 })
		next := launch(t, net.B, d.socket, append(flags, "--takeover")...)
		next.ready()
		d.wants(0)
		d = next
	}
	was := added()
	p.eventually("going on", func() bool { return added() > was+1000 })
	guest.halt()
	p.eventually("waiting", func() bool {
		was := added()
		time.Sleep(300 * time.Millisecond) // long enough for thousands
		return added() == was
	})
	guest.signal(unix.SIGKILL)
	<-guest.done
	a := fates(p)
	if sum := word(t, file); sum < a.Added || sum > a.Added+a.Unknown || a.Unknown == 0 || a.Added < 3000 {
		t.Errorf("the file holds %d; account %+v", sum, a)
	}
	t.Logf("the file holds %d; account %+v", word(t, file), a)
	d.end()
}
