// SPDX-License-Identifier: Apache-2.0

package mr

import "fmt"

// Resident wraps memory in a BPF map, on which the XDP program of a domain executes
// operations by itself. b is the whole map as it is mapped, and free, which Close calls,
// unmaps it. Programs get such memory from Domain.NewResidentMemory of package xdpfab,
// and from nowhere else. The error wraps ErrSize.
func Resident(b []byte, free func() error) (*Memory, error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("%w: an empty slice; want at least one byte", ErrSize)
	}
	return &Memory{kind: KindResident, fd: -1, data: b, free: free}, nil
}
