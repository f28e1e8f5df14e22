// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// The owner of a word sleeps until four parts of a work are done elsewhere.
func ExampleWait() {
	client, server, err := xdpfab.Pipe()
	if err != nil {
		log.Fatal(err)
	}
	defer client.CloseAll()
	defer server.CloseAll()
	ctx := context.Background()
	service, err := server.Serve("done", 4096)
	if err != nil {
		log.Fatal(err)
	}

	var elsewhere sync.WaitGroup
	elsewhere.Go(func() {
		peer, err := client.Dial(ctx, service.Name())
		if err != nil {
			log.Fatal(err)
		}
		done, err := xdpfab.Word[uint64](ctx, peer, "done", 0)
		if err != nil {
			log.Fatal(err)
		}
		for range 4 {
			if _, err := done.Add(ctx, 1); err != nil {
				log.Fatal(err)
			}
		}
	})

	n, err := xdpfab.Wait(ctx, server, service.Region, 0, xdpfab.AtLeast[uint64](4))
	if err != nil {
		log.Fatal(err)
	}
	elsewhere.Wait()
	fmt.Println(n, "parts are done")
	// Output: 4 parts are done
}
