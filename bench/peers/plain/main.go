// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command plain is a server as people write it themselves: a counter behind TCP or UDP,
// with Go's net package. A request has eight bytes, the number to add, and so has its
// answer, the value from before.
//
//	plain server tcp|udp IP
//	plain client tcp|udp ADDRESS CONNECTIONS DURATION WARMUP
package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xdpfab/xdpfab/bench/measure"
	"github.com/xdpfab/xdpfab/internal/histogram"
)

func main() {
	err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "plain:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 3 && args[0] == "server" && args[1] == "tcp":
		return serveTCP(args[2])
	case len(args) == 3 && args[0] == "server" && args[1] == "udp":
		return serveUDP(args[2])
	case len(args) == 6 && args[0] == "client":
		n, err := strconv.Atoi(args[3])
		duration, err2 := time.ParseDuration(args[4])
		warmup, err3 := time.ParseDuration(args[5])
		if err := errors.Join(err, err2, err3); err != nil {
			return err
		}
		return drive(args[1], args[2], n, duration, warmup)
	}
	return errors.New("usage: plain server tcp|udp IP\n       plain client tcp|udp ADDRESS CONNECTIONS DURATION WARMUP")
}

// counter is the number that requests add to.
var counter atomic.Uint64

// answer turns a request into its answer, in place.
func answer(b []byte) {
	delta := binary.LittleEndian.Uint64(b)
	binary.LittleEndian.PutUint64(b, counter.Add(delta)-delta)
}

func serveTCP(ip string) error {
	l, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		return err
	}
	fmt.Println(measure.Ready, l.Addr())
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			b := make([]byte, 8)
			for {
				if _, err := io.ReadFull(c, b); err != nil {
					return
				}
				answer(b)
				if _, err := c.Write(b); err != nil {
					return
				}
			}
		}()
	}
}

func serveUDP(ip string) error {
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(ip)})
	if err != nil {
		return err
	}
	fmt.Println(measure.Ready, c.LocalAddr())
	b := make([]byte, 64)
	for {
		n, from, err := c.ReadFromUDPAddrPort(b)
		if err != nil {
			return err
		}
		if n != 8 {
			continue
		}
		answer(b[:8])
		if _, err := c.WriteToUDPAddrPort(b[:8], from); err != nil {
			return err
		}
	}
}

// drive keeps a request in flight on each of n connections.
func drive(network, address string, n int, duration, warmup time.Duration) error {
	if n < 1 || n > 1024 || duration <= 0 || warmup < 0 {
		return fmt.Errorf("%d connections, %v after %v: want 1 to 1024, and more than no time", n, duration, warmup)
	}
	var conns []net.Conn
	for range n {
		c, err := net.Dial(network, address)
		if err != nil {
			return err
		}
		defer c.Close()
		conns = append(conns, c)
	}
	if _, _, err := requests(conns, time.Now().Add(warmup)); err != nil {
		return err
	}
	run := measure.BeginRun(os.Stdout)
	h, lost, err := requests(conns, run.Start().Add(duration))
	if err != nil {
		return err
	}
	p := h.Percentiles()
	return run.End(&measure.Result{Ops: uint64(p.Count), Lost: lost, Latency: p})
}

// requests sends requests on one connection until the end.
func requests(conns []net.Conn, end time.Time) (all histogram.Histogram, lost uint64, err error) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	all = histogram.New()
	for _, c := range conns {
		wg.Go(func() {
			h, n, e := requestsOn(c, end)
			mu.Lock()
			defer mu.Unlock()
			all.Merge(h)
			lost += n
			err = errors.Join(err, e)
		})
	}
	wg.Wait()
	return all, lost, err
}

// patience is how long a client waits for an answer over UDP.
const patience = 200 * time.Millisecond

func requestsOn(c net.Conn, end time.Time) (h histogram.Histogram, lost uint64, err error) {
	h = histogram.New()
	_, udp := c.(*net.UDPConn)
	b := make([]byte, 8)
	for now := time.Now(); now.Before(end); {
		if udp { // a deadline costs a timer: one for many requests
			if h.Count()%1024 == 0 {
				if err := c.SetReadDeadline(now.Add(patience)); err != nil {
					return h, lost, err
				}
			}
		}
		binary.LittleEndian.PutUint64(b, 1)
		if _, err := c.Write(b); err != nil {
			return h, lost, err
		}
		_, err := io.ReadFull(c, b)
		before := now
		now = time.Now()
		switch {
		case err == nil:
			h.Record(now.Sub(before), 1)
		case udp && errors.Is(err, os.ErrDeadlineExceeded):
			lost++
			if err := c.SetReadDeadline(now.Add(patience)); err != nil {
				return h, lost, err
			}
		default:
			return h, lost, err
		}
	}
	return h, lost, nil
}
