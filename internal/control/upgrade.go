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
)

// A connection leaves HTTP for a takeover or a capture: from then on both sides send
// values with their lengths, or whatever the request is for.

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
	return kind(r.Header.Get(kindHeader)).mark(errors.New(string(bytes.TrimSpace(text))))
}

// kindHeader is the header with the kind of a refusal to leave HTTP.
const kindHeader = "Xdpfab-Kind"

// oneByte reads single bytes, so that nothing is read of what follows an answer.
type oneByte struct{ r io.Reader }

func (o oneByte) Read(b []byte) (int, error) { return o.r.Read(b[:min(len(b), 1)]) }

// Tell sends a value over a connection that has left HTTP, as JSON behind its length.
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
