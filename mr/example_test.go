// SPDX-License-Identifier: Apache-2.0

package mr_test

import (
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
	fmt.Println(err)
	// Output: 42 mr: beyond the end of the region: word 512 of region "counters", key
	// 0x1; it has 512 words of 8 bytes
}
