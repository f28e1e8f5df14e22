// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/death"
)

// takeoverHelp is what --help says of takeovers.
const takeoverHelp = `With --takeover the daemon takes the place of the one that runs on the same
interface, and the old one ends. Its sessions and guests continue after a pause; nothing
is lost or done twice. Regions that both daemons name keep their contents. Resident
regions, and programs that borrowed a queue, continue without a pause. If the new
daemon cannot start, the old one continues. If the new daemon is asked to end before the
takeover is complete, it exits with code 0, and the old one continues. No exit code says
that a takeover succeeded: see the readiness (sd_notify) and the status at the control
socket. The new daemon keeps the XDP mode of the old one, and refuses --xdp native or
generic if the mode differs.`

// succession is what a daemon knows of takeovers. Its zero value is that of one that
// neither leaves nor takes another's place.
type succession struct {
	leaves   atomic.Bool  // another daemon takes this one's place
	former   *death.Death // of the daemon whose place this one takes; nil if it does not tell
	ended    []string     // regions of that daemon, by name, that this one does not serve
	progress progress     // of the guests that move
}

// succeeded returns a function that has the service of a control socket take part in
// takeovers: another daemon asks at the first one, and all of them end before this daemon
// leaves.
func (s *server) succeeded(ctx context.Context, end context.CancelCauseFunc,
	doors []door) func(door, *control.Service) {
	leave := together(ctx, len(doors), func() { s.leave(ctx) })
	return func(d door, service *control.Service) {
		service.Leave = leave
		if d.path == doors[0].path {
			service.Takeover = func(conn *net.UnixConn) { s.claimed(ctx, conn, doors, end) }
		}
	}
}

// together returns a function for each of n control sockets to call when it takes no more
// requests. The function returns when all have called theirs and last has run. It returns
// at once if the daemon stays: then one socket has failed, and the others learn of it
// that way.
func together(ctx context.Context, n int, last func()) func() {
	var open sync.WaitGroup
	var once sync.Once
	open.Add(n)
	return func() {
		if open.Done(); ctx.Err() != nil {
			open.Wait()
			once.Do(last)
		}
	}
}
