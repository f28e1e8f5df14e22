// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// ofRedis are Redis's INCR, depth at a time in one packet, and the lock that its
// documentation describes: a key with a time to live, deleted by a script. Its protocol
// is spoken here as it is least work: requests are made once.
func ofRedis(ctx context.Context, s *settings, test string) (loop, func(uint64) error, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", s.peer)
	if err != nil {
		return nil, nil, err
	}
	r := &redis{Conn: conn, answers: bufio.NewReader(conn)}
	switch test {
	case "adds":
		incr := bytes.Repeat(request("INCR", "bench"), s.depth)
		last := uint64(0)
		return each(s.depth, func(context.Context) (err error) { last, err = r.add(incr, s.depth); return err }),
			func(ops uint64) error {
				if last != ops {
					return errors.Join(fmt.Errorf("the key is %d after %d INCR", last, ops), conn.Close())
				}
				return conn.Close()
			}, nil
	case "locks":
		return lockLoop(r.locker()), func(uint64) error { return conn.Close() }, nil
	}
	return nil, nil, errors.Join(unknown("redis", test), conn.Close())
}

type redis struct {
	net.Conn
	answers *bufio.Reader
}

// request is a command with its arguments.
func request(words ...string) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, w := range words {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(w), w)
	}
	return b
}

// answer returns the next answer, without its end of line.
func (r *redis) answer() (string, error) {
	line, err := r.answers.ReadSlice('\n')
	if err == nil && line[0] == '-' {
		err = fmt.Errorf("redis: %s", line)
	}
	return strings.TrimRight(string(line), "\r\n"), err
}

// add sends n requests that are together in b, and returns the number of the last answer.
func (r *redis) add(b []byte, n int) (last uint64, err error) {
	if _, err := r.Write(b); err != nil {
		return 0, err
	}
	var line []byte
	for range n {
		if line, err = r.answers.ReadSlice('\n'); err != nil {
			return 0, err
		}
	}
	return strconv.ParseUint(strings.Trim(string(line), ":\r\n"), 10, 64)
}

const unlockScript = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end"

func (r *redis) locker() locker {
	set := request("SET", "lock", "me", "NX", "PX", strconv.FormatInt(lease.Milliseconds(), 10))
	free := request("EVAL", unlockScript, "1", "lock", "me")
	call := func(b []byte, want string) error {
		if _, err := r.Write(b); err != nil {
			return err
		}
		got, err := r.answer()
		if err == nil && got != want {
			err = fmt.Errorf("redis answers %q, want %q", got, want)
		}
		return err
	}
	return func(context.Context) (func() error, error) {
		return func() error { return call(free, ":1") }, call(set, "+OK")
	}
}
