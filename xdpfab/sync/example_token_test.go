// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/sync"
)

// A resource in memory of xdpfab refuses a late write by itself: the value stands beside
// the token of its writer, and a write changes both unless a later holder has written.
func ExampleHeld_Token() {
	ctx := context.Background()
	at, end := start(ctx)
	defer end()
	lock, err := sync.NewMutex(ctx, at, time.Second)
	if err != nil {
		log.Fatal(err)
	}
	resource, err := xdpfab.Word[xdpfab.U128](ctx, at.Home.(*xdpfab.Peer), at.Region, 2048)
	if err != nil {
		log.Fatal(err)
	}
	write := func(token, value uint64) (written bool, err error) {
		was, err := resource.Compare(ctx, atomic.CswapGT, xdpfab.U128{Hi: token + 1}, xdpfab.U128{Hi: token, Lo: value})
		return err == nil && was.Hi <= token, err
	}
	var tokens []uint64
	for range 2 {
		held, err := lock.Lock(ctx)
		if err != nil {
			log.Fatal(err)
		}
		tokens = append(tokens, held.Token())
		if err := held.Unlock(); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(write(tokens[0], 10))
	fmt.Println(write(tokens[1], 20))
	fmt.Println(write(tokens[1], 21)) // a holder writes as often as it likes
	fmt.Println(write(tokens[0], 11)) // late
	v, err := resource.Load(ctx)
	fmt.Println(v.Lo, err)
	// Output:
	// true <nil>
	// true <nil>
	// true <nil>
	// false <nil>
	// 21 <nil>
}
