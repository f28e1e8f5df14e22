// SPDX-License-Identifier: Apache-2.0

package session

// rttEstimator is the round-trip estimator of RFC 6298, in nanoseconds, with
// the floor and ceiling of the configuration. The floor stands above scheduling
// noise: on shared virtual machines a peer is off its core for milliseconds,
// and a shorter timeout would resend frames needlessly.
type rttEstimator struct {
	srtt, rttvar int64
	backoff      uint // doublings since the last progress
}

// sample takes the round trip of a frame that was sent once (Karn's rule).
func (r *rttEstimator) sample(rtt int64) {
	if rtt < 0 {
		return // the caller's clock stepped back
	}
	if r.srtt == 0 {
		r.srtt, r.rttvar = rtt, rtt/2
		return
	}
	diff := r.srtt - rtt
	if diff < 0 {
		diff = -diff
	}
	r.rttvar += (diff - r.rttvar) / 4
	r.srtt += (rtt - r.srtt) / 8
}

// rto returns the current retransmission timeout.
func (r *rttEstimator) rto(c *Config) int64 {
	t := max(r.srtt+4*r.rttvar, int64(c.RTOMin))
	if r.backoff > 0 {
		t <<= min(r.backoff, 16)
	}
	return min(t, max(int64(c.RTOMax), int64(c.RTOMin)))
}
