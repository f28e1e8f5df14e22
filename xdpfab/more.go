// SPDX-License-Identifier: Apache-2.0

package xdpfab

// defers leaves it to a later call to start what has been posted.
func (d *driver) defers() {
	if !d.more.Load() {
		d.more.Store(true)
	}
}

// start tells whoever steps of what was posted with FlagMore. Whoever posts while it
// takes the mark away is covered as well, since it looks at the rings afterwards.
func (d *driver) start() {
	if d.more.Load() {
		d.more.Store(false)
		d.notify()
	}
}
