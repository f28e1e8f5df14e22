// SPDX-License-Identifier: Apache-2.0

package mr_test

import (
	"errors"
	"fmt"
	"log"

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
