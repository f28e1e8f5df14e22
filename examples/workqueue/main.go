// SPDX-License-Identifier: Apache-2.0

// Command workqueue distributes tasks among programs on any number of nodes, by messages.
// If a program dies, another one gets its task.
package main

import (
	"context"
	"flag"
	"fmt"
	"strings"

	"github.com/xdpfab/xdpfab/examples/start"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

var tasks = flag.Int("n", 100, "number of tasks")

func main() { start.Main(home, run) }

// home owns the queue.
func home(ctx context.Context, dom *xdpfab.Domain) (addr string, err error) {
	var todo []string
	for i := range *tasks {
		todo = append(todo, fmt.Sprint("task ", i))
	}
	q, err := newQueue(ctx, dom, todo)
	if err != nil {
		return "", err
	}
	return q.box.Name(), nil
}

// run is a worker.
func run(ctx context.Context, dom *xdpfab.Domain, home string) error {
	box, err := dom.NewMailbox(xdpfab.MailboxAttr{Number: fi.AnyNumber})
	if err != nil {
		return err
	}
	defer box.Close()
	queue, err := box.Dial(ctx, home) // from the mailbox, so that the queue knows where to answer
	if err != nil {
		return err
	}
	// A worker that waits for a task sends nothing, so only a watch notices that the
	// queue has ended.
	ctx, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	go func() { lose(queue.Watch(ctx)) }()
	buf, answer, done := make([]byte, 4096), "", 0
	for {
		// The message arrives once, or the error says what is known. If the answer may be
		// lost, the worker ends, and the queue gives the task to another worker.
		if err := xdpfab.SettleError(ctx, queue.Send(ctx, []byte(answer))); err != nil {
			return err
		}
		m, err := box.Receive(ctx, buf)
		if err != nil {
			return err
		}
		if len(m.Bytes) == 0 { // no tasks are left
			fmt.Println("done:", done, "tasks")
			return nil
		}
		answer = work(string(m.Bytes))
		done++
	}
}

// work stands for the task itself. It may run twice, if a worker dies after it.
func work(task string) string { return strings.ToUpper(task) }
