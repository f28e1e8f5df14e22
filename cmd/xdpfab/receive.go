// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/xdpfab/xdpfab/cmd/xdpfab/show"
	"github.com/xdpfab/xdpfab/xdpfab"
)

type receiveFlags struct {
	link    linkFlags
	mailbox int
	tag     string
	count   int
	wait    time.Duration
	size    string
	raw     bool
}

// messageReport is a message that was received, as JSON.
type messageReport struct {
	Time   time.Time `json:"time"`
	From   string    `json:"from"`
	Tag    *uint64   `json:"tag,omitempty"`
	Length int       `json:"length"` // of the whole message, bytes
	// Text is the message, or Base64 if it is not UTF-8, or the beginning of it.
	Text      string `json:"text,omitempty"`
	Base64    string `json:"base64,omitempty"`
	Truncated bool   `json:"truncated,omitempty"`
}

func (a *app) receiveCmd() *cobra.Command {
	var f receiveFlags
	c := &cobra.Command{
		Use:   "receive",
		Short: "Receive messages, and print them",
		Long: `receive makes a mailbox, and prints the messages that ` + "`xdpfab send`" + ` or programs at
other nodes send to it, until it is interrupted or has received --count of them. Each
line has the time, the sender, the tag if there is one, and the message. Control
characters are quoted. --raw prints only the bytes of the messages, without separators.

receive waits for messages without end, unless --wait says how long. --timeout is for
a peer that falls silent, not for one that has not sent anything.

receive takes messages with and without tags, unless --tag names one. It cuts a message
that is longer than --size. Through a daemon, receive needs a rule of that daemon that
allows this user to attach. If the daemon ends, receive says so, and goes on with the
next one.`,
		Example: `  xdpfab receive
  xdpfab receive -i eth0 --mailbox 9 --tag 7 --count 1 --wait 10s
  xdpfab receive --json | jq .text
  xdpfab receive --raw --count 1 > message`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage(c, "unexpected argument %q: receive takes messages of all peers, at the number of "+
					"--mailbox", args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return a.receive(c, &f) },
	}
	f.link.register(c)
	a.jsonFlag(c)
	fs := c.Flags()
	fs.IntVar(&f.mailbox, "mailbox", mailbox, "number of the mailbox")
	fs.StringVar(&f.tag, "tag", "", "receive only messages with this tag: 64 bits, decimal or 0x…")
	fs.IntVar(&f.count, "count", 0, "messages to receive; 0: until interrupted")
	fs.DurationVar(&f.wait, "wait", 0, "give up, with exit code 1, after this time without a message; 0: never")
	fs.StringVar(&f.size, "size", "1MiB", "bytes to keep of each message")
	fs.BoolVar(&f.raw, "raw", false, "print only the bytes of the messages")
	return c
}

func (a *app) receive(c *cobra.Command, f *receiveFlags) (err error) {
	size, err := show.ParseSize(f.size)
	switch {
	case err != nil:
		return usage(c, "--size: %v", err)
	case size == 0:
		return usage(c, "--size %s: want 1 or more", f.size)
	case size > maxMessage:
		return usage(c, "--size %s: want at most %s", f.size, show.Size(maxMessage))
	case f.mailbox < 1 || f.mailbox >= math.MaxUint16:
		return usage(c, "--mailbox %d: want 1 to %d", f.mailbox, math.MaxUint16-1)
	case f.count < 0 || f.wait < 0:
		return negative(c, "count", "wait")
	case f.raw && a.json:
		return usage(c, "--raw with --json: want one of them")
	}
	tag := uint64(0)
	if f.tag != "" {
		if tag, err = number(c, "tag", f.tag); err != nil {
			return err
		}
	}
	defer a.whileRead()()
	dom, err := a.serve(c, &f.link)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll(c.Context(), dom)) }()
	box, err := dom.NewMailbox(xdpfab.MailboxAttr{Number: f.mailbox})
	if errors.Is(err, xdpfab.ErrBusy) {
		err = fmt.Errorf("another program of this node receives at mailbox %d: end it, or choose another one with "+
			"--mailbox", f.mailbox)
	}
	if err != nil {
		return err
	}
	daemon := dom.Interface().Daemon
	if !a.json {
		at := box.Name()
		fmt.Fprintf(a.err, "receiving at %s%s%s; Ctrl-C ends\n", at, ipAddresses(dom, at, f.mailbox), f.until())
	}
	ctx, stop := context.WithCancel(c.Context())
	defer stop()
	in := arrivals{came: make(chan arrival), taken: make(chan struct{})}
	in.begin(ctx, func(ctx context.Context, buf []byte) (xdpfab.Received, error) {
		if f.tag != "" {
			return box.ReceiveTagged(ctx, tag, 0, buf)
		}
		return box.ReceiveTagged(ctx, 0, math.MaxUint64, buf)
	}, size)
	if f.tag == "" {
		in.begin(ctx, box.Receive, size)
	}
	err = a.receiveAll(f, &in, stop)
	if gone := ended(daemon); gone != nil && errors.Is(err, errWait) {
		return fmt.Errorf("%w: no message came for %v: %w", errWait, f.wait, gone)
	}
	return err
}

// until says when receive ends by itself.
func (f *receiveFlags) until() string {
	var all []string
	if f.count > 0 {
		all = append(all, plural(f.count, "message")+" came")
	}
	if f.wait > 0 {
		all = append(all, fmt.Sprintf("none came for %v", f.wait))
	}
	if len(all) == 0 {
		return ", without end: --wait or --count sets one"
	}
	return ", until " + strings.Join(all, ", or ")
}

// arrival is a message that a loop has received, or why it ended.
type arrival struct {
	xdpfab.Received
	err error
}

// arrivals are the loops that receive, and what they have received. Each waits until its
// message is taken.
type arrivals struct {
	came  chan arrival
	taken chan struct{}
	loops int
}

// begin begins a loop, which ends with the context or with an error.
func (in *arrivals) begin(ctx context.Context, receive func(context.Context, []byte) (xdpfab.Received, error),
	size uint64) {
	in.loops++
	go func() {
		buf := make([]byte, size)
		for {
			m, err := receive(ctx, buf)
			if errors.Is(err, xdpfab.ErrTruncated) {
				err = nil
			}
			in.came <- arrival{m, err}
			if err != nil {
				return
			}
			<-in.taken
		}
	}()
}

// receiveAll prints messages until there are enough, and then those that have been
// received meanwhile: their senders know that they have arrived.
func (a *app) receiveAll(f *receiveFlags, in *arrivals, stop func()) (failed error) {
	patience := time.NewTimer(math.MaxInt64)
	if f.wait > 0 {
		patience.Reset(f.wait)
	}
	n := 0
	for in.loops > 0 {
		select {
		case <-patience.C:
			failed = fmt.Errorf("%w: no message came for %v, after %s: `xdpfab send` at a peer sends one to "+
				"PEER/%d; wait longer with --wait", errWait, f.wait, plural(n, "message"), f.mailbox)
			stop()
		case m := <-in.came:
			if m.err != nil {
				in.loops--
				if failed == nil && !errors.Is(m.err, context.Canceled) {
					failed = m.err // which both loops may have
				}
				stop()
				continue
			}
			n++
			a.ran = true // the sender knows that the message has arrived
			err := joinOnce(a.printMessage(f, &m.Received), a.flush())
			if f.wait > 0 {
				patience.Reset(f.wait)
			}
			if failed = errors.Join(failed, err); err != nil || n == f.count {
				stop()
			}
			in.taken <- struct{}{}
		}
	}
	if failed == nil && n < f.count {
		return fmt.Errorf("%w after %d of %s", errInterrupted, n, plural(f.count, "message"))
	}
	return failed
}

func (a *app) printMessage(f *receiveFlags, m *xdpfab.Received) error {
	if f.raw {
		_, err := a.out.Write(m.Bytes)
		return err
	}
	r := messageReport{Time: time.Now(), From: m.From.String(), Length: m.Length, Truncated: m.Length > len(m.Bytes)}
	if m.Tagged {
		r.Tag = &m.Tag
	}
	if utf8.Valid(m.Bytes) {
		r.Text = string(m.Bytes)
	} else {
		r.Base64 = base64.StdEncoding.EncodeToString(m.Bytes)
	}
	return a.print(&r, func(w io.Writer) { // no tabs: each line is a table of its own
		fmt.Fprintf(w, "%s  %s  ", r.Time.Format("15:04:05.000000"), r.From)
		if m.Tagged {
			fmt.Fprintf(w, "tag %d  ", m.Tag)
		}
		if r.Truncated {
			fmt.Fprintf(w, "%d of %d bytes  ", len(m.Bytes), m.Length)
		}
		fmt.Fprintln(w, printable(string(m.Bytes)))
	})
}

// ipAddresses says at which IP addresses peers reach a mailbox, besides its name.
func ipAddresses(dom *xdpfab.Domain, name string, number int) string {
	in := dom.Interface()
	if !in.UDP {
		return ""
	}
	var all []string
	for _, text := range strings.Fields(in.Served) {
		p, err := netip.ParsePrefix(text)
		if err == nil && !p.Addr().IsLinkLocalUnicast() && fmt.Sprintf("%v/%d", p.Addr(), number) != name {
			all = append(all, fmt.Sprintf("%v/%d", p.Addr(), number))
		}
	}
	if len(all) == 0 {
		return ""
	}
	return ", and over UDP at " + strings.Join(all, " and ")
}
