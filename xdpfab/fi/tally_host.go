// SPDX-License-Identifier: Apache-2.0

package fi

// A host counts what peers do for its guests: see share.Counted.

// Count implements share.Counted.
func (t *tally) Count(returning, silent, bytesRead, bytesWritten uint64) {
	if c := t[reads]; c != nil {
		c.value.Add(c.amount(returning, bytesRead))
	}
	if c := t[writes]; c != nil {
		c.value.Add(c.amount(silent, bytesWritten))
	}
}

// Tell implements share.Counted.
func (t *tally) Tell() {
	for i, c := range t {
		if c != nil && (i == 0 || c != t[0]) {
			c.tell()
		}
	}
}

// Count implements share.Counted.
func (t *regionTally) Count(returning, silent, bytesRead, bytesWritten uint64) {
	now := t.now()
	now.Count(returning, silent, bytesRead, bytesWritten)
}

// Tell implements share.Counted.
func (t *regionTally) Tell() {
	now := t.now()
	now.Tell()
}

// tell starts the work that waits for the value that the counter has, and wakes the
// sleepers whose wait is over.
func (c *Counter) tell() {
	if c.value.Load() >= c.due.Load() {
		c.dom.triggers.fire(c)
	}
	c.notify()
}

// tallyAtHost has the host count what peers do through an endpoint from the time on
// when it serves them, and returns the number of the tally, or 0.
func (ep *endpoint) tallyAtHost() (number int, err error) {
	if ep.remote == (tally{}) {
		return 0, nil
	}
	if ep.tally == nil {
		if ep.tally, err = ep.dom.node.Dev.NewTally(&ep.remote); err != nil {
			return 0, err
		}
	}
	return ep.tally.Number(), nil
}
