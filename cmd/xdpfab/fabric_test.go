// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// The list of what GetInfo finds: in short, with every attribute, and as JSON.
func TestInfoFabric(t *testing.T) {
	testnet.Require(t)
	pair := testnet.NewPair(t, testnet.Options{})
	run := func(args ...string) string {
		var out, errs bytes.Buffer
		code := 0
		err := pair.A.Do(func() error {
			code = (&app{in: strings.NewReader(""), out: &out, err: &errs}).run(context.Background(), append([]string{"info", "--fabric"}, args...))
			return nil
		})
		if err != nil || code != 0 {
			t.Fatalf("%v: code %d, %v, %s", args, code, err, errs.String())
		}
		return out.String()
	}
	short, full := run(), run(pair.A.IfName)
	if n := strings.Count(short, "provider: xdpfab\n"); n != 6 || !strings.Contains(short, "    domain: "+pair.A.IfName+"\n    version: ") {
		t.Errorf("%d entries:\n%s", n, short)
	}
	if n := strings.Count(full, "fi_info:\n"); n != 6 || !strings.Contains(full, "        max_order_atomic:\n") {
		t.Errorf("%d entries:\n%s", n, full)
	}
	var list []struct {
		Source string `json:"src_addr"`
		Domain struct {
			Name string `json:"name"`
		} `json:"domain_attr"`
	}
	if err := json.Unmarshal([]byte(run("--json")), &list); err != nil || len(list) != 6 || list[0].Source != pair.A.MAC.String() || list[2].Domain.Name != pair.A.IfName {
		t.Errorf("%+v, %v", list, err)
	}
}
