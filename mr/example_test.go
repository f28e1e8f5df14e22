// SPDX-License-Identifier: Apache-2.0

package mr_test

import (
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/xdpfab/xdpfab/mr"
)

// The owner of a region counts in the same word as its peers do. A table of its own, as
// here, has no peers; xdpfab.Domain.Register and NewRegion return regions that have.
func ExampleRegion_Uint64() {
	memory, err := mr.Alloc(4096, mr.AllocOptions{})
	if err != nil {
		log.Fatal(err)
	}
	key := uint64(1)
	region, err := mr.NewTable().Register(memory, mr.Options{Key: &key, Access: mr.RemoteRead | mr.RemoteWrite, Name: "counters"})
	if err != nil {
		log.Fatal(err)
	}
	hits, err := region.Uint64(3)
	if err != nil {
		log.Fatal(err)
	}
	hits.Add(41)
	fmt.Println(hits.Add(1))
	_, err = region.Uint64(512)
	fmt.Println(errors.Is(err, mr.ErrOutOfBounds))
	// Output:
	// 42
	// true
}

// Memory in a file keeps its contents when the program has ended. Domain.Register of
// package xdpfab gives it to peers.
func ExampleFile() {
	dir, err := os.MkdirTemp("", "ledger")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "ledger")
	for range 2 {
		ledger, err := mr.File(path, 4096)
		if err != nil {
			log.Fatal(err)
		}
		ledger.Bytes()[0]++
		fmt.Println(ledger.Kind(), len(ledger.Bytes()), ledger.Bytes()[0])
		if err := ledger.Close(); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// file 4096 1
	// file 4096 2
}

// A program gives a peer memory that has no name: it sends the description of the region
// in a message, and the peer uses the region that it describes.
func ExampleRegion_Remote() {
	memory, err := mr.Alloc(4096, mr.AllocOptions{})
	if err != nil {
		log.Fatal(err)
	}
	key := uint64(7)
	region, err := mr.NewTable().Register(memory, mr.Options{Key: &key, Access: mr.RemoteRead})
	if err != nil {
		log.Fatal(err)
	}
	message, err := region.Remote().MarshalBinary()
	if err != nil {
		log.Fatal(err)
	}
	var there mr.RemoteRegion // at the peer
	err = there.UnmarshalBinary(message)
	fmt.Println(there.Key, there.Size, there.Access&mr.RemoteWrite != 0, err)
	// Output:
	// 7 4096 false <nil>
}

// Memory of the Go heap can be registered as well.
func ExampleAdopt() {
	scores := make([]byte, 4096)
	memory, err := mr.Adopt(scores)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(memory.Kind(), len(memory.Bytes()))
	// Output:
	// adopted 4096
}
