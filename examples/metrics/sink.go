// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"time"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// sink is used by one goroutine.
type sink struct {
	sums   xdpfab.RemoteVector[uint64]
	deltas [words]uint64 // not sent yet
}

// observe counts a request. It sends nothing.
func (s *sink) observe(took time.Duration) {
	s.deltas[total]++
	s.deltas[buckets+bits.Len64(uint64(took))]++
}

// flush adds the counts in one frame. If the node cannot be reached, it returns an error.
// Then nothing is lost, and the next flush adds the counts.
func (s *sink) flush(ctx context.Context) error {
	sent := s.deltas
	call, cancel := context.WithTimeout(ctx, time.Second)
	err := s.sums.AddRange(call, 0, sent[:], nil)
	cancel()
	switch err = xdpfab.SettleError(ctx, err); {
	case err == nil:
		s.deltas = [words]uint64{}
	case errors.Is(err, xdpfab.ErrNotExecuted):
		return err
	default:
		// The counts may have been added, or are lost with the memory. Another attempt
		// might count twice, so the next flush only adds the number in doubt.
		s.deltas = [words]uint64{unsure: sent[total] + sent[unsure]}
	}
	return nil
}

// print writes the sums in the text format of Prometheus.
func (s *sink) print(ctx context.Context, w io.Writer) error {
	var sums [words]uint64
	if err := s.sums.LoadRange(ctx, 0, sums[:]); err != nil {
		return err
	}
	upTo := uint64(0)
	for i, n := range sums[buckets:] {
		if upTo += n; n > 0 {
			fmt.Fprintf(w, "request_seconds_bucket{le=\"%g\"} %d\n", float64(uint64(1)<<min(i, 63))/1e9, upTo)
		}
	}
	_, err := fmt.Fprintf(w, "request_seconds_bucket{le=\"+Inf\"} %d\nrequests_total %d\nrequests_unsure_total %d\n",
		upTo, sums[total], sums[unsure])
	return err
}
