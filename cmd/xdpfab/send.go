// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/xdpfab/xdpfab/cmd/xdpfab/show"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

const (
	// mailbox is the number at which receive receives, and to which send sends, unless
	// they are told otherwise.
	mailbox = 5
	// maxMessage bounds a message of these commands, since it has to fit into memory. The
	// library has no such limit.
	maxMessage = 64 << 20
)

type sendFlags struct {
	link  linkFlags
	tag   string
	lines bool
}

// sendReport is the JSON output of send.
type sendReport struct {
	Peer     string  `json:"peer"`
	Tag      *uint64 `json:"tag,omitempty"`
	Messages int     `json:"messages"`
	Bytes    uint64  `json:"bytes"`
	Seconds  float64 `json:"seconds"`
}

func (a *app) sendCmd() *cobra.Command {
	var f sendFlags
	c := &cobra.Command{
		Use:   "send PEER [MESSAGE]",
		Short: "Send a message to a mailbox of a peer",
		Long: `send sends MESSAGE, or all of stdin without one or with "-", to a mailbox: that of
` + "`xdpfab receive`" + ` or of a program. PEER has the number of the mailbox behind a "/",
or it is 5. With --lines, each line of stdin is a message.

If send succeeds, the message has arrived exactly once. If the mailbox has no room for
it, send waits. The messages of one send arrive in order.`,
		Example: `  xdpfab send 10.0.0.2 hello
  xdpfab send 02:00:00:00:00:0b/9 "job 1" -i eth0 --tag 7
  tail -f events | xdpfab send 10.0.0.2 --lines`,
		Args: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return missingArgs(c, "PEER")
			case len(args) > 2:
				return usage(c, "unexpected argument %q: quote a message of several words", args[2])
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			return a.send(c, &f, args[0], append(args, "-")[1])
		},
	}
	f.link.register(c)
	a.jsonFlag(c)
	c.Flags().StringVar(&f.tag, "tag", "", "send it with this tag: 64 bits, decimal or 0x…")
	c.Flags().BoolVar(&f.lines, "lines", false, "send each line of stdin as a message")
	return c
}

// number parses the number of a flag.
func number(c *cobra.Command, flag, text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		return 0, usage(c, "--%s %q: want a 64-bit number, decimal or 0x…", flag, text)
	}
	return n, nil
}

// withMailbox completes an address that has no endpoint's number.
func withMailbox(addr string) string {
	if strings.Contains(addr, "/") {
		return addr
	}
	return fmt.Sprintf("%s/%d", addr, mailbox)
}

// atMailbox is the flag of receive for the mailbox of an address, unless it is the usual
// one.
func atMailbox(addr string) string {
	if _, number, _ := strings.Cut(addr, "/"); number != strconv.Itoa(mailbox) {
		return " --mailbox " + number
	}
	return ""
}

func (a *app) send(c *cobra.Command, f *sendFlags, addr, message string) (err error) {
	r := sendReport{Peer: withMailbox(addr)}
	if f.tag != "" {
		tag, err := number(c, "tag", f.tag)
		if err != nil {
			return err
		}
		r.Tag = &tag
	}
	if f.lines && message != "-" {
		return usage(c, "--lines sends the lines of stdin: want no MESSAGE")
	}
	f.link.mailbox = true
	cl, err := a.connect(c, &f.link, r.Peer)
	if errors.Is(err, xdpfab.ErrRefused) && !errors.Is(err, fi.ErrAuthKey) {
		err = fmt.Errorf("nobody receives at %s: run `xdpfab receive%s` there, or name the number of another mailbox: "+
			"%w", r.Peer, atMailbox(r.Peer), noEndpoint(err))
	}
	unknown := exitCode(err) == exitUsage || errors.As(err, new(*net.DNSError))
	if unknown && !isAddress(addr) && isAddress(message) {
		err = usage(c, "%q names no peer, and %q is an address: the order is PEER MESSAGE", addr, message)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cl.close()) }()
	begin := time.Now()
	one := func(b []byte) error {
		wait := f.link.giveUp + time.Second // a silent peer has been given up by then
		defer time.AfterFunc(wait, func() {
			fmt.Fprintf(a.err, "xdpfab: %s has not taken the message for %v: its receiver is slow, or stopped; Ctrl-C "+
				"gives up\n", r.Peer, wait)
		}).Stop()
		if err := send(c.Context(), cl.peer, r.Tag, b); err != nil {
			return err
		}
		a.ran = true
		r.Messages++
		r.Bytes += uint64(len(b))
		return nil
	}
	switch {
	case message != "-":
		err = one([]byte(message))
	case f.lines:
		err = sendLines(a.input(c.Context()), one)
	default:
		b, err := io.ReadAll(io.LimitReader(a.input(c.Context()), maxMessage+1))
		if err != nil {
			return fmt.Errorf("reading the message from stdin: %w; nothing was sent", err)
		}
		if len(b) > maxMessage {
			return usage(c, "more than %s on stdin: want at most that in one message; put copies more, and --lines "+
				"sends many messages", show.Size(maxMessage))
		}
		if err := one(b); err != nil {
			return err
		}
	}
	if err != nil && f.lines {
		return fmt.Errorf("%w; %s before it arrived", err, plural(r.Messages, "message"))
	}
	if err != nil {
		return err
	}
	r.Seconds = time.Since(begin).Seconds()
	return a.print(&r, func(w io.Writer) {
		fmt.Fprintf(w, "%s with %s arrived at %s in %s\n", plural(r.Messages, "message"), show.Size(r.Bytes), r.Peer,
			show.Duration(time.Since(begin).Nanoseconds()))
	})
}

func send(ctx context.Context, p *xdpfab.Peer, tag *uint64, b []byte) error {
	if tag != nil {
		return p.SendTagged(ctx, *tag, b)
	}
	return p.Send(ctx, b)
}

func sendLines(in io.Reader, one func([]byte) error) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxMessage)
	for lines.Scan() {
		if err := one(lines.Bytes()); err != nil {
			return err
		}
	}
	return lines.Err()
}

func plural(n int, what string) string { return show.Plural(n, what) }
