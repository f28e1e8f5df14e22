// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bufio"
	"bytes"
	"fmt"
	"testing"

	"github.com/xdpfab/xdpfab/internal/wire"
)

var executor = []string{"operate.c", "regions.c", "memory.c", "kernels.c"}

// The executor of peers' operations checks keys, bounds, rights and operands, and comes
// back from holes in the address space.
func TestOperate(t *testing.T) {
	t.Parallel()
	program := build(t, sanitized, "operate_test", executor...)
	run(t, nil, program)
	numbers := map[string]string{}
	for s := range wire.Status(32) {
		numbers[s.String()] = fmt.Sprint(uint8(s))
	}
	lines := bufio.NewScanner(bytes.NewReader(run(t, nil, program, "statuses")))
	n := 0
	for ; lines.Scan(); n++ {
		at := bytes.LastIndexByte(lines.Bytes(), ' ')
		if name, number := lines.Text()[:at], lines.Text()[at+1:]; numbers[name] != number {
			t.Errorf("the status %q is %s, want %q", name, number, numbers[name])
		}
	}
	if n != 8 {
		t.Errorf("%d statuses, want 8", n)
	}
}

// Operations of peers and writes beside them exclude each other.
func TestOperateBesideOthers(t *testing.T) {
	t.Parallel()
	run(t, nil, build(t, threaded, "operate_test", executor...), "threads")
}
