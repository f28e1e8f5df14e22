// SPDX-License-Identifier: Apache-2.0

package session

// Places are the room that the owner of a target has for events. A frame that ends in a
// notice runs only after its target has taken a place. They may be used by targets on
// several threads.
type Places interface {
	// Take takes a place for one event, and reports whether there was one.
	Take() bool
	// Return gives back a place for which there is no event.
	Return()
}
