// SPDX-License-Identifier: Apache-2.0

//go:build linux

package share

import "slices"

// parked is what the guest has taken from the ring of arrivals for endpoints whose next
// event has no place in its completion queue, and all that came behind it for the same
// endpoint, so that the order stays. So such an endpoint does not hold up others. It is
// bounded by the size of the ring: beyond that the ring is held up after all, and with it
// the senders.
type parked struct {
	of    map[uint16][]parkedRecord // by endpoint, none of them empty; the oldest first
	bytes uint64                    // as in the ring
}

type parkedRecord struct {
	record
	part []byte
}

// takeOrPark takes a record, or has it wait; it returns false if there is no room for
// that.
func (c *GuestRing) takeOrPark(r *record, part []byte) bool {
	p := &c.in.parked
	if _, waits := p.of[r.Endpoint]; !waits && c.takeRecord(r, part) {
		return true
	}
	span := spanOf(len(part))
	if p.bytes+span > uint64(len(c.segment.arrivals)) {
		return false
	}
	if p.of == nil {
		p.of = map[uint16][]parkedRecord{}
	}
	p.of[r.Endpoint] = append(p.of[r.Endpoint], parkedRecord{*r, slices.Clone(part)})
	p.bytes += span
	return true
}

// unpark takes records that waited until there are no places, and returns their number.
func (c *GuestRing) unpark() (n int) {
	for endpoint, list := range c.in.parked.of {
		took := 0
		for took < len(list) && c.takeRecord(&list[took].record, list[took].part) {
			c.in.parked.bytes -= spanOf(len(list[took].part))
			took++
		}
		c.keepParked(endpoint, slices.Delete(list, 0, took))
		n += took
	}
	return n
}

func (c *GuestRing) keepParked(endpoint uint16, list []parkedRecord) {
	if len(list) == 0 {
		delete(c.in.parked.of, endpoint)
		return
	}
	c.in.parked.of[endpoint] = list
}

// overtake takes all that waits but events, since the sessions end now: their senders
// count on what has arrived. Events go on waiting. Operations that were not executed
// never will be: nobody waits for their answers.
func (c *GuestRing) overtake() {
	for endpoint, list := range c.in.parked.of {
		c.keepParked(endpoint, slices.DeleteFunc(list, func(r parkedRecord) bool {
			if r.Kind != kindOperate && (r.Kind == kindEvent || !c.takeRecord(&r.record, r.part)) {
				return false
			}
			c.in.parked.bytes -= spanOf(len(r.part))
			return true
		}))
	}
}
