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

// A function there answers requests from here, each in one exchange.
func ExampleDomain_Handle() {
	client, server := nodes()
	defer server.CloseAll()
	defer client.CloseAll()
	ctx := context.Background()

	_, err := server.Handle(xdpfab.HandlerAttr{Number: 9},
		func(_ context.Context, _ xdpfab.Sender, request []byte) ([]byte, error) {
			if len(request) == 0 {
				return nil, errors.New("nothing to shout")
			}
			return bytes.ToUpper(request), nil
		})
	if err != nil {
		log.Fatal(err)
	}

	oracle, err := client.Dial(ctx, server.Name(9))
	if err != nil {
		log.Fatal(err)
	}
	reply := make([]byte, 64)
	n, err := oracle.Call(ctx, []byte("hello"), reply)
	fmt.Printf("%s %v\n", reply[:n], err)

	_, err = oracle.Call(ctx, nil, reply)
	var failed *xdpfab.FunctionError
	fmt.Println(errors.As(err, &failed), failed.Text)
	// Output:
	// HELLO <nil>
	// true nothing to shout
}
