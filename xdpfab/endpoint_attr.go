// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"fmt"
	"math/bits"

	"github.com/xdpfab/xdpfab/internal/engine"
)

// EndpointAttr are the attributes of an endpoint. The zero value of a field means
// its default.
type EndpointAttr struct {
	// Number is what peers address, together with the node; 0 is the one they
	// address by default. AnyNumber picks a free one.
	Number int
	// Size is how many operations may be outstanding. It is rounded up to a power of two;
	// 1024. An operation makes room a moment after its completion shows.
	Size int
	// InjectSize is how many bytes of operands an operation must be able to take along, so
	// that its buffers are free when the call returns (inject_size). Asking for more than
	// there are is an error; Endpoint.Attr tells how many there are.
	InjectSize int
	// InitiateOnly makes an endpoint that peers cannot address.
	InitiateOnly bool

	dials bool // it is the domain's own, for Dial
}

// AnyNumber asks for an endpoint number that is free.
const AnyNumber = -1

// injectSize is how many bytes of operands an operation can take along.
const injectSize = engine.InlineLen

// Queues of either kind have a default size, and a greatest.
const (
	defaultQueue = 1024
	maxQueue     = 1 << 20
)

// withDefaults checks the attributes, all but the number, and fills in the true values.
func (a EndpointAttr) withDefaults() (_ EndpointAttr, err error) {
	if a.InjectSize < 0 || a.InjectSize > injectSize {
		return a, fmt.Errorf("xdpfab: endpoint: %d bytes to inject: want 0..%d: %w", a.InjectSize, injectSize, ErrTooBig)
	}
	a.InjectSize = injectSize
	a.Size, err = queueSize("endpoint", a.Size)
	return a, err
}

// queueSize is the size of a queue for which size is asked: a power of two.
func queueSize(of string, size int) (int, error) {
	switch {
	case size < 0 || size > maxQueue:
		return 0, fmt.Errorf("xdpfab: %s of size %d: want 1..%d, or 0 for %d: %w", of, size, maxQueue, defaultQueue, ErrCount)
	case size == 0:
		return defaultQueue, nil
	}
	return max(2, 1<<bits.Len(uint(size-1))), nil
}
