// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"fmt"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/memory"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// The names of calls that only wait.
const (
	Watch = "watch" // for the end of a session
	Flush = "flush" // for the end of the operations that were begun before
)

// NameOf describes an operation for error texts.
func NameOf(s *engine.Submission) string {
	switch s.Verb {
	case engine.VerbConnect:
		return "connect"
	case engine.VerbWatch:
		return Watch
	case engine.VerbFlush:
		return Flush
	case wire.VerbLookup:
		return fmt.Sprintf("lookup of region %q", s.Name())
	case wire.VerbList:
		return fmt.Sprintf("listing of region %d", s.Count)
	}
	what := fmt.Sprintf("%v of %d bytes", s.Verb, s.Count)
	if s.Verb.Atomic() {
		what = fmt.Sprintf("%v %v %v[%d]", memory.FormOf(s.Verb), atomic.Op(s.Opcode),
			atomic.Datatype(s.Datatype), s.Count)
	}
	if s.Verb == wire.VerbWait {
		what = fmt.Sprintf("waiting %v %v", atomic.Op(s.Opcode), atomic.Datatype(s.Datatype))
	}
	switch {
	case s.Verb.TaggedAtomic():
		return fmt.Sprintf("%v %v %v[%d] at offset %#x of the receive with tag %#x", memory.FormOf(s.Verb.Form()),
			atomic.Op(s.Opcode), atomic.Datatype(s.Datatype), s.Count, s.Offset, s.Key)
	case s.Verb.Message(), s.Verb == wire.VerbCall:
		return what
	case s.Extents != nil:
		return fmt.Sprintf("%s in %d places", what, len(s.Extents))
	}
	return fmt.Sprintf("%s at %#x", what, s.Offset)
}
