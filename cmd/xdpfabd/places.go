// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// placeWait is how long a program waits for a place. One that has just ended gives its
// place back within moments, and its successor shall not be refused for that. It is a
// variable for tests.
var placeWait = 2 * time.Second

// silence is how long a program that has not attached keeps a place that another one
// wants. It is a variable for tests.
var silence = time.Second

const placePoll = 20 * time.Millisecond

// places are those that a rule has for programs at a time. Each user may have as many as
// are left for all others, root, the daemon's own user, and the user that the rule is
// about alone, all that are left.
type places struct {
	most int
	name string // of the rule
	sole bool   // the rule is about one user

	mu  sync.Mutex
	all []*place // the oldest first
}

// place is that of one program.
type place struct {
	of    *places
	uid   uint32
	since time.Time

	// Under of.mu.
	conn     *net.UnixConn // nil before there is a conversation
	attached bool
	told     bool // to go
}

// enter takes a place. If there is none, programs that have not attached for a while give
// way, the first comer before others.
func (p *places) enter(ctx context.Context, uid uint32) (*place, error) {
	ctx, cancel := context.WithTimeout(ctx, placeWait)
	defer cancel()
	for {
		x, err := p.try(uid)
		if err == nil {
			return x, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(placePoll):
		}
	}
}

// try takes a place if there is one, or says why there is none.
func (p *places) try(uid uint32) (*place, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := 0
	for _, x := range p.all {
		if x.uid == uid {
			own++
		}
	}
	left := p.most - len(p.all)
	free := p.sole || uid == 0 || int(uid) == os.Geteuid()
	switch {
	case left > 0 && (free || own < left):
		x := &place{of: p, uid: uid, since: time.Now()}
		p.all = append(p.all, x)
		return x, nil
	case left > 0:
		p.evict(func(x *place) bool { return x.uid == uid })
		return nil,
			fmt.Errorf("user %d has %s attached, and %s left: %s leaves as many for other users"+
				" as one has; end one of them, or have the rule's guests raised", uid,
				counted(own, "program", "programs"), counted(left, "place is", "places are"), p.name)
	}
	p.evict(func(*place) bool { return true })
	return nil,
		fmt.Errorf(
			"%s attached: %s allows no more at a time; end one of them, or have the rule's guests raised",
			counted(len(p.all), "program is", "programs are"), p.name)
}

// counted returns a number with the words that go with it.
func counted(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// evict ends the connection of the oldest program, of those for which may is true, that
// has been silent for too long. mu is held.
func (p *places) evict(may func(*place) bool) {
	for _, x := range p.all {
		if may(x) && !x.attached && !x.told && x.conn != nil && time.Since(x.since) >= silence {
			x.told = true
			_ = x.conn.Close()
			return
		}
	}
}

// talks records by which connection the program of a place talks.
func (x *place) talks(conn *net.UnixConn) {
	x.of.mu.Lock()
	defer x.of.mu.Unlock()
	x.conn = conn
}

// settle records that the program has attached.
func (x *place) settle() {
	x.of.mu.Lock()
	defer x.of.mu.Unlock()
	x.attached = true
}

// leave gives the place back.
func (x *place) leave() {
	p := x.of
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, y := range p.all {
		if y == x {
			p.all = append(p.all[:i], p.all[i+1:]...)
			return
		}
	}
}
