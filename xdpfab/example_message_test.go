// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// A message there, and an answer.
func ExampleMailbox() {
	client, server := nodes()
	defer server.CloseAll()
	defer client.CloseAll()
	ctx := context.Background()

	questions, err := server.NewMailbox(xdpfab.MailboxAttr{Number: 5})
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		for q, err := range questions.All(ctx, make([]byte, 64)) {
			if errors.Is(err, xdpfab.ErrClosed) {
				return
			}
			asker, err := questions.Dial(ctx, q.From.String())
			if err == nil {
				err = errors.Join(asker.Send(ctx, bytes.ToUpper(q.Bytes)), asker.Close())
			}
			if err != nil {
				log.Print(err)
			}
		}
	}()

	answers, err := client.NewMailbox(xdpfab.MailboxAttr{Number: xdpfab.AnyNumber})
	if err != nil {
		log.Fatal(err)
	}
	oracle, err := answers.Dial(ctx, server.Name(5))
	if err != nil {
		log.Fatal(err)
	}
	if err := oracle.Send(ctx, []byte("hello")); err != nil {
		log.Fatal(err)
	}
	a, err := answers.Receive(ctx, make([]byte, 64))
	fmt.Printf("%s %v\n", a.Bytes, err)
	// Output: HELLO <nil>
}

// Numbers into another node's memory, and back.
func ExampleWriteSlice() {
	client, server := nodes()
	defer server.CloseAll()
	defer client.CloseAll()
	ctx := context.Background()

	peer, err := client.Dial(ctx, server.Name(0))
	if err != nil {
		log.Fatal(err)
	}
	region, err := peer.Lookup(ctx, "counters")
	if err != nil {
		log.Fatal(err)
	}
	if err := xdpfab.WriteSlice(ctx, peer, region, 200, []float64{1.5, 2.5}); err != nil {
		log.Fatal(err)
	}
	sums := make([]float64, 2)
	err = xdpfab.ReadSlice(ctx, peer, region, 200, sums)
	fmt.Println(sums, err)
	// Output: [1.5 2.5] <nil>
}
