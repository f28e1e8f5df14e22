// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// forms maps the atomic verbs of the wire to the forms of fi_atomic(3).
var forms = [wire.NumAtomicVerbs]atomic.Func{
	wire.VerbAtomic: atomic.Base, wire.VerbFetch: atomic.Fetch, wire.VerbCompare: atomic.Compare,
}

// FormOf returns the form of fi_atomic(3) that an atomic verb, or one that waits, asks
// for.
func FormOf(verb wire.Verb) atomic.Func {
	if verb == wire.VerbWait {
		return atomic.Compare
	}
	return forms[verb]
}
