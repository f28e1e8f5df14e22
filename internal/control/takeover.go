// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
			return nil, fmt.Errorf("user %d may not take this daemon's place: only root and user %d may", p.UID,
				os.Geteuid())
		}
		return successor(s.Takeover), nil
	}
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
	err = leaveHTTP(ctx, conn, pathTakeover)
	if errors.Is(err, errOlder) {
		err = errors.New("the daemon is of an older release, which cannot be taken over: restart it")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("control socket %s: takeover: %w", path, err), conn.Close())
	}
	return conn, nil
}

// errOlder means that a daemon does not know a request.
var errOlder = errors.New("the daemon is of an older release")

// leaveHTTP has a connection leave HTTP by a request.
func leaveHTTP(ctx context.Context, conn *net.UnixConn, path string) error {
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if _, err := io.WriteString(conn,
		"POST "+path+" HTTP/1.1\r\nHost: xdpfabd\r\nConnection: Upgrade\r\n"+
			"Upgrade: xdpfab\r\nContent-Length: 0\r\n\r\n"); err != nil {
		return err
	}
	r, err := http.ReadResponse(bufio.NewReaderSize(oneByte{conn}, 16), nil)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	switch r.StatusCode {
	case http.StatusSwitchingProtocols:
		return nil
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return errOlder
	}
	text, _ := io.ReadAll(io.LimitReader(r.Body, 4096))
	return errors.New(string(bytes.TrimSpace(text)))
}

// oneByte reads single bytes, so that nothing is read of what follows an answer.
type oneByte struct{ r io.Reader }

func (o oneByte) Read(b []byte) (int, error) { return o.r.Read(b[:min(len(b), 1)]) }

// Tell sends a value over the connection of a takeover, as JSON behind its length.
func Tell(conn net.Conn, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = conn.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(text))), text...))
	return err
}

// Hear receives what Tell has sent, and nothing behind it.
func Hear(conn net.Conn, v any) error {
	var head [4]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > maxRequest {
		return fmt.Errorf("text of %d bytes: want at most %d", n, maxRequest)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(conn, text); err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}
