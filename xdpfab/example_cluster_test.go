// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/directory"
)

// A cluster finds the node that publishes a region, so the program names neither the node
// nor its address.
func ExampleNewCluster() {
	ctx := context.Background()
	near, far, err := xdpfab.Pipe()
	if err != nil {
		log.Fatal(err)
	}
	defer near.CloseAll()
	defer far.CloseAll()
	service, err := far.Serve("counters", 4096)
	if err != nil {
		log.Fatal(err)
	}

	// The directory is a file with a line for each node. Package directory/etcd has
	// another.
	dir, err := os.MkdirTemp("", "nodes")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "nodes")
	if err := os.WriteFile(path, []byte("node7 "+service.Name()+" counters\n"), 0o600); err != nil {
		log.Fatal(err)
	}
	names, err := directory.Open(ctx, directory.File(path))
	if err != nil {
		log.Fatal(err)
	}
	defer names.Close()

	cluster := xdpfab.NewCluster(near, names)
	defer cluster.Close()
	hits, err := xdpfab.Word[uint64](ctx, cluster, "counters", 3)
	if err != nil {
		log.Fatal(err)
	}
	n, err := hits.Add(ctx, 1)
	fmt.Println(n, err)
	// Output: 1 <nil>
}

// A node of the directory is dialled by its name.
func ExampleCluster_Dial() {
	ctx := context.Background()
	near, far, err := xdpfab.Pipe()
	if err != nil {
		log.Fatal(err)
	}
	defer near.CloseAll()
	defer far.CloseAll()
	service, err := far.Serve("counters", 4096)
	if err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "nodes")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "nodes")
	if err := os.WriteFile(path, []byte("node7 "+service.Name()+"\n"), 0o600); err != nil {
		log.Fatal(err)
	}
	names, err := directory.Open(ctx, directory.File(path))
	if err != nil {
		log.Fatal(err)
	}
	defer names.Close()

	cluster := xdpfab.NewCluster(near, names)
	defer cluster.Close() // closes the peer, too
	peer, err := cluster.Dial(ctx, "node7")
	if err != nil {
		log.Fatal(err)
	}
	regions, err := peer.Regions(ctx)
	fmt.Println(regions[0].Name, regions[0].Size, err)
	// Output: counters 4096 <nil>
}
