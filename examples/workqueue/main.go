// SPDX-License-Identifier: Apache-2.0

// Command workqueue divides tasks among programs on any number of nodes, by messages. A
// task of a program that dies is given to another one.
package main

import (
	"context"
	"flag"
	"fmt"
	"strings"

	"github.com/xdpfab/xdpfab/examples/internal/start"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

var tasks = flag.Int("n", 100, "how many tasks there are")

func main() { start.Main(home, run) }

// home has the queue.
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
	queue, err := box.Dial(ctx, home) // so that the queue knows where to answer
	if err != nil {
		return err
	}
	// A worker that waits for a task sends nothing, so a watch tells it that the queue
	// ends.
	ctx, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	go func() { lose(queue.Watch(ctx)) }()
	buf, answer, done := make([]byte, 4096), "", 0
	for {
		// The message arrives once, or the error says what is known. A worker whose
		// answer may be lost ends: then the queue gives the task to another one.
		if err := xdpfab.SettleError(ctx, queue.Send(ctx, []byte(answer))); err != nil {
			return err
		}
		m, err := box.Receive(ctx, buf)
		if err != nil {
			return err
		}
		if len(m.Bytes) == 0 { // there are no more
			fmt.Println("done:", done, "tasks")
			return nil
		}
		answer = work(string(m.Bytes))
		done++
	}
}

// work stands for what takes time. It may be done twice, if a worker dies after it.
func work(task string) string { return strings.ToUpper(task) }
