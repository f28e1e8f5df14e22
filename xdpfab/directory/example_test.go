// SPDX-License-Identifier: Apache-2.0

package directory_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/xdpfab/xdpfab/xdpfab/directory"
)

// A cluster of two nodes in a file. xdpfab.NewCluster dials the nodes of a directory.
func Example() {
	dir, err := os.MkdirTemp("", "nodes")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "nodes")
	entries := "node7 10.0.0.7,02:00:00:00:00:0b counters scores\nnode8 10.0.0.8 locks\n"
	if err := os.WriteFile(path, []byte(entries), 0o600); err != nil {
		log.Fatal(err)
	}

	names, err := directory.Open(context.Background(), directory.File(path))
	if err != nil {
		log.Fatal(err)
	}
	defer names.Close()
	node, err := names.Node("node7")
	fmt.Println(node.Addrs, node.Regions, err)
	home, err := names.Home("locks")
	fmt.Println(home.Name, err)
	_, err = names.Node("node9")
	fmt.Println(errors.Is(err, directory.ErrNoNode))
	// Output:
	// [10.0.0.7 02:00:00:00:00:0b] [counters scores] <nil>
	// node8 <nil>
	// true
}

// A source of one's own hands over nodes, which Parse reads from a line.
func ExampleParse() {
	node, err := directory.Parse("node7", "10.0.0.7,02:00:00:00:00:0b counters scores")
	fmt.Println(node.Name, node.Addrs, node.Regions, err)
	_, err = directory.Parse("node8", "")
	fmt.Println(err)
	// Output:
	// node7 [10.0.0.7 02:00:00:00:00:0b] [counters scores] <nil>
	// xdpfab: node node8 has no address: want a line such as: node8 10.0.0.7 counters
}
