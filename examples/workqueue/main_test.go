// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/examples/try"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

func TestMain(m *testing.M) { os.Exit(try.Run(m)) }

func names(n int) (tasks []string) {
	for i := range n {
		tasks = append(tasks, fmt.Sprintf("task %03d", i))
	}
	return tasks
}

// answers returns the answers to all tasks, each once.
func (q *queue) answers() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := slices.Clone(q.done)
	slices.Sort(all)
	return slices.Compact(all)
}

// Every task is done, in a bad network, and though a worker takes one and dies.
func TestWorkQueue(t *testing.T) {
	n, ctx := try.New(t, "", 0), try.Context(t)
	tasks := names(60)
	q, err := newQueue(ctx, n.Home, slices.Clone(tasks))
	if err != nil {
		t.Fatal(err)
	}
	n.Faults(try.Bad)
	dying, err := n.Client.NewMailbox(xdpfab.MailboxAttr{Number: fi.AnyNumber})
	if err != nil {
		t.Fatal(err)
	}
	peer, err := dying.Dial(ctx, q.box.Name())
	if err == nil {
		err = peer.Send(ctx, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	if m, err := dying.Receive(ctx, make([]byte, 64)); err != nil || string(m.Bytes) != tasks[0] {
		t.Fatalf("%q, %v", m.Bytes, err)
	}
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if err := run(ctx, n.Client, q.box.Name()); err != nil {
				t.Error(err)
			}
		})
	}
	for len(q.answers()) < 30 && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	if err := dying.Close(); err != nil {
		t.Error(err)
	}
	all.Wait()
	for i := range tasks {
		tasks[i] = strings.ToUpper(tasks[i])
	}
	if got := q.answers(); !slices.Equal(got, tasks) {
		t.Errorf("the answers are %q", got)
	}
}

// A worker ends with its queue.
func TestQueueEnds(t *testing.T) {
	n, ctx := try.New(t, "", 0), try.Context(t)
	q, err := newQueue(ctx, n.Home, names(1))
	if err != nil {
		t.Fatal(err)
	}
	box, err := n.Client.NewMailbox(xdpfab.MailboxAttr{Number: fi.AnyNumber}) // has the only task
	if err != nil {
		t.Fatal(err)
	}
	peer, err := box.Dial(ctx, q.box.Name())
	if err == nil {
		err = peer.Send(ctx, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := box.Receive(ctx, make([]byte, 64)); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- run(ctx, n.Client, q.box.Name()) }()
	waits := func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return len(q.idle) == 1
	}
	try.Eventually(t, "a worker waits for a task", waits)
	if err := q.box.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; err == nil || ctx.Err() != nil {
		t.Errorf("the worker ends with %v", err)
	}
}

func TestHome(t *testing.T) {
	*tasks = 5
	n := try.New(t, "", 0)
	ctx, leave := context.WithCancel(try.Context(t))
	defer leave()
	addr, err := home(ctx, n.Home)
	if err == nil {
		err = run(ctx, n.Client, addr)
	}
	if err != nil {
		t.Error(err)
	}
}
