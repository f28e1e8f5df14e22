// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync"

	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// queue gives each task to a worker that asks. If the worker ends before it has answered,
// the queue gives the task to another worker.
type queue struct {
	box *xdpfab.Mailbox

	mu   sync.Mutex
	todo []string
	open map[xdpfab.Sender]given
	idle []xdpfab.Sender // workers that wait for a task
	done []string        // answers
}

// given is a task that a worker has. end ends the watch of the worker.
type given struct {
	task string
	end  context.CancelFunc
}

// newQueue returns a queue of tasks, with a mailbox to which the workers write.
func newQueue(ctx context.Context, dom *xdpfab.Domain, tasks []string) (*queue, error) {
	box, err := dom.NewMailbox(xdpfab.MailboxAttr{Number: fi.AnyNumber})
	if err != nil {
		return nil, err
	}
	q := &queue{box: box, todo: tasks, open: map[xdpfab.Sender]given{}}
	go q.serve(ctx)
	return q, nil
}

// serve receives messages of workers until the mailbox closes. The first message of a
// worker is empty. The following ones contain the answers to its tasks.
func (q *queue) serve(ctx context.Context) {
	buf := make([]byte, 4096)
	for m, err := range q.box.All(ctx, buf) {
		if err != nil {
			return
		}
		q.mu.Lock()
		if g, has := q.open[m.From]; has {
			g.end()
			delete(q.open, m.From)
			if m.Length > 0 {
				q.done = append(q.done, string(m.Bytes))
			} else { // another worker at the address of one that has died
				q.todo = append(q.todo, g.task)
			}
		}
		q.idle = append(q.idle, m.From)
		q.deal(ctx)
		q.mu.Unlock()
	}
}

// deal gives tasks to idle workers. If no tasks are left, it sends the workers an empty
// message. The caller holds mu.
func (q *queue) deal(ctx context.Context) {
	for len(q.idle) > 0 && (len(q.todo) > 0 || len(q.open) == 0) {
		worker := q.idle[0]
		q.idle = q.idle[1:]
		if len(q.todo) == 0 {
			go q.send(ctx, worker, "")
			continue
		}
		task := q.todo[0]
		q.todo = q.todo[1:]
		watch, end := context.WithCancel(ctx)
		q.open[worker] = given{task, end}
		go q.follow(watch, worker, task)
	}
}

// follow sends a task, and takes it back if the worker ends.
func (q *queue) follow(ctx context.Context, worker xdpfab.Sender, task string) {
	q.send(ctx, worker, task)
	q.mu.Lock()
	defer q.mu.Unlock()
	if ctx.Err() == nil { // there was no answer
		delete(q.open, worker)
		q.todo = append(q.todo, task)
		q.deal(ctx)
	}
}

// send sends a message, and returns when the worker has ended or ctx ends. An unknown
// outcome needs no action, because a worker that cannot be reached ends.
func (q *queue) send(ctx context.Context, worker xdpfab.Sender, text string) {
	peer, err := q.box.Dial(ctx, worker.String())
	if err != nil {
		return
	}
	defer peer.Close()
	if err := xdpfab.SettleError(ctx, peer.Send(ctx, []byte(text))); err == nil {
		_ = peer.Watch(ctx)
	}
}
