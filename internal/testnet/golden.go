// SPDX-License-Identifier: Apache-2.0

package testnet

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"testing"
)

// Golden returns the JSON values in a compressed file.
func Golden[V any](t testing.TB, path string) (all []V) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	for dec := json.NewDecoder(z); dec.More(); {
		var v V
		if err := dec.Decode(&v); err != nil {
			t.Fatalf("%s, value %d: %v", path, len(all)+1, err)
		}
		all = append(all, v)
	}
	return all
}
