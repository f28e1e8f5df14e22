// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

// forgetful are the drivers that forget their XDP program when the interface is set down:
// vmxnet3, up to Linux 7.2 at least. The kernel still shows it as attached, but when the
// interface is up again all packets go to the kernel, and the driver never frees its part
// of the program.
var forgetful = []string{"vmxnet3"}

// remind attaches the program anew, since the driver may have forgotten it.
func (w *watcher) remind() {
	w.fell = false
	err := w.i.netns.do(func() error { return w.i.program.Renew(w.i.index) })
	if err != nil {
		w.end(Event{Kind: Detached, From: w.seen.Name},
			"interface %s was set down, and up again, and its driver, %s, has forgotten the XDP program; "+
				"attaching it anew: %v; open it again", w.seen.Name, w.i.driver, err)
	}
}
