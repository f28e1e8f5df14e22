// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
)

// takeovers has processes ask for this one's place. end ends their conversations.
func (s *Service) takeovers(mux *http.ServeMux) (end func()) {
	next := &attachments{admit: s.succeed()}
	mux.Handle("POST "+pathTakeover, next)
	return next.end
}

// succeed admits processes that want to take this one's place: of root, or of the same
// user, which could end this process as well.
func (s *Service) succeed() Admit {
	if s.Takeover == nil {
		return nil
	}
	return func(_ context.Context, p Program) (Place, error) {
		if p.UID != 0 && p.UID != uint32(os.Geteuid()) {
			return nil, mayNotSucceed(p.UID, os.Geteuid())
		}
		return successor(s.Takeover), nil
	}
}

// mayNotSucceed is the refusal of a user by a daemon of another one.
func mayNotSucceed(user uint32, own int) error {
	who := "root"
	if own != 0 {
		who = fmt.Sprintf("root and user %d", own)
	}
	return Denied("user %d may not take this daemon's place: only %s may: run this as root", user, who)
}

// successor is the place of a process that wants to take over.
type successor func(*net.UnixConn)

// Host implements Place.
func (f successor) Host(conn *net.UnixConn) { f(conn) }

// Leave implements Place.
func (successor) Leave() {}

// AskToTakeOver connects to the daemon whose place this process wants to take. The error
// wraps ErrNoDaemon if there is none.
func AskToTakeOver(ctx context.Context, path string) (*net.UnixConn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, explain(path, err)
	}
	conn := c.(*net.UnixConn)
	of, _ := ProgramAt(conn) // it is for the message
	asking, end := context.WithTimeout(ctx, AskLimit)
	defer end()
	err = leaveHTTP(asking, conn, pathTakeover)
	if err != nil && asking.Err() != nil && ctx.Err() == nil { // which has closed the connection
		return nil, silent(path, of.PID, AskLimit)
	}
	if errors.Is(err, errOlder) {
		err = errors.New("the daemon is of an older release, which cannot be taken over: restart it")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("control socket %s: takeover: %w", path, err), conn.Close())
	}
	return conn, nil
}
