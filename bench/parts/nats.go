// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
)

// ofNATS is a lock as a key of NATS's key-value store, in memory. Getting it is a message
// on the key's subject that is stored only if the last one there is the deletion known
// of; releasing it is a deletion that is stored only if the last one is the own. The
// protocol is spoken here as it is least work.
func ofNATS(ctx context.Context, s *settings, test string) (loop, func(uint64) error, error) {
	if test != "locks" {
		return nil, nil, unknown("nats", test)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", s.peer)
	if err != nil {
		return nil, nil, err
	}
	n := &nats{Conn: conn, lines: bufio.NewReader(conn)}
	if err := n.begin(); err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	return lockLoop(n.lock), func(uint64) error { return conn.Close() }, nil
}

type nats struct {
	net.Conn
	lines *bufio.Reader
	last  uint64 // the number of the key's last message
}

const (
	inbox  = "_INBOX.bench"
	bucket = `{"name":"KV_bench","subjects":["$KV.bench.>"],"storage":"memory","max_msgs_per_subject":1,` +
		`"discard":"new","allow_rollup_hdrs":true,"deny_delete":true,"num_replicas":1}`
)

// begin introduces the client, and makes the store.
func (n *nats) begin() error {
	if _, err := n.lines.ReadString('\n'); err != nil { // INFO
		return err
	}
	_, err := fmt.Fprintf(n, `CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true}`+"\r\n"+
		"SUB %s 1\r\nPUB $JS.API.STREAM.CREATE.KV_bench %s %d\r\n%s\r\n", inbox, inbox, len(bucket), bucket)
	if err != nil {
		return err
	}
	_, err = n.answer()
	return err
}

// answer returns the next message for the inbox.
func (n *nats) answer() ([]byte, error) {
	for {
		line, err := n.lines.ReadString('\n')
		if err != nil {
			return nil, err
		}
		f := strings.Fields(line)
		switch {
		case len(f) == 0:
			return nil, errors.New("nats: an empty line")
		case f[0] == "PING":
			if _, err := io.WriteString(n, "PONG\r\n"); err != nil {
				return nil, err
			}
		case f[0] == "MSG":
			size, err := strconv.Atoi(f[len(f)-1])
			if err != nil {
				return nil, err
			}
			b := make([]byte, size+2)
			_, err = io.ReadFull(n.lines, b)
			return b[:size], err
		default:
			return nil, fmt.Errorf("nats: %s", line)
		}
	}
}

// store stores a message on the key's subject if the last one is the one known of.
func (n *nats) store(header string) error {
	head := fmt.Sprintf("NATS/1.0\r\nNats-Expected-Last-Subject-Sequence: %d\r\n%s\r\n", n.last, header)
	_, err := fmt.Fprintf(n, "HPUB $KV.bench.lock %s %d %d\r\n%s\r\n", inbox, len(head), len(head), head)
	if err != nil {
		return err
	}
	b, err := n.answer()
	if err != nil {
		return err
	}
	var ack struct {
		Seq   uint64
		Error *struct{ Description string }
	}
	switch err := json.Unmarshal(b, &ack); {
	case err != nil:
		return fmt.Errorf("nats: %q: %w", b, err)
	case ack.Error != nil || ack.Seq <= n.last:
		return fmt.Errorf("nats: %s", b)
	}
	n.last = ack.Seq
	return nil
}

func (n *nats) lock(context.Context) (func() error, error) {
	return func() error { return n.store("KV-Operation: DEL\r\n") }, n.store("")
}
