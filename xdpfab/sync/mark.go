// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"fmt"
	"strings"
	"time"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// version is that of the layout.
const version = 1

// kind is which part it is.
type kind uint8

const (
	kindMutex kind = 1 + iota
	kindSemaphore
	kindRWMutex
	kindSequencer
	kindQueue
	kindBarrier
	kindCountdown
	kindLimiter
	kindOnce
	kindElection
	kindCounter
	kindHistogram
	kindBoard
)

// kinds names the parts, with their articles, and the parameters that programs have to
// agree upon.
var kinds = [...]struct{ name, parameters string }{
	kindMutex:     {"a Mutex", "lease"},
	kindSemaphore: {"a Semaphore", "lease, permits"},
	kindRWMutex:   {"an RWMutex", "lease, readers"},
	kindSequencer: {"a Sequencer", ""},
	kindQueue:     {"a Queue", "room"},
	kindBarrier:   {"a Barrier", "parties"},
	kindCountdown: {"a Countdown", "tasks"},
	kindLimiter:   {"a Limiter", "counts, quota, period"},
	kindOnce:      {"a Once", "lease"},
	kindElection:  {"an Election", "lease"},
	kindCounter:   {"a Counter", ""},
	kindHistogram: {"a Histogram", "bounds"},
	kindBoard:     {"a Board", "players"},
}

// String names the part, with its article.
func (k kind) String() string {
	if k == 0 || int(k) >= len(kinds) {
		return fmt.Sprintf("a primitive of the unknown kind %d", uint8(k))
	}
	return kinds[k].name
}

// magic is the letters "xs", in the low 16 bits of a mark.
const magic = 's'<<8 | 'x'

// markOf returns a mark: the letters, the kind, the version of the layout (8 bits each),
// and a sum of the parameters (32 bits).
func markOf(k kind, sum uint32) uint64 {
	return uint64(sum)<<32 | version<<24 | uint64(k)<<16 | magic
}

// kindOf and versionOf are of a mark.
func kindOf(mark uint64) kind       { return kind(mark >> 16) }
func versionOf(mark uint64) uint8   { return uint8(mark >> 24) }
func isMark(word uint64) (yes bool) { return word&0xffff == magic }

// bare names the part without an article.
func (k kind) bare() string {
	_, name, _ := strings.Cut(k.String(), " ")
	return name
}

// name names the part and its place, but for the home.
func (p *part) name() string { return p.place.of(kindOf(p.mark).bare()) }

// of names something at the place, but for the home.
func (at Place) of(what string) string {
	return fmt.Sprintf("%s at offset %d of region %q", what, at.Offset, at.Region)
}

// otherPart says how a mark differs from that of the part.
func (p *part) otherPart(mark uint64) error {
	want, has := kindOf(p.mark), kindOf(mark)
	switch {
	case !isMark(mark):
		return errno.Refuse(ErrLayout, "data (%#x) is there: want memory that is all zero", mark)
	case has != want:
		return errno.Refuse(ErrLayout, "%v is there: want memory that is all zero", has)
	case versionOf(mark) != version:
		return errno.Refuse(ErrLayout, "%v of layout version %d is there: want version %d", has, versionOf(mark),
			version)
	}
	return errno.Refuse(ErrLayout, "%v with other parameters than %s is there; the memory does not tell them: want "+
		"those that the program which made it has named, or another offset", has, p.asked)
}

// with names parameters with their values.
func (k kind) with(parameters []uint64) string {
	var list []string
	for i, name := range strings.Split(kinds[k].parameters, ", ") {
		switch {
		case i >= len(parameters): // it has none
		case name == "bounds":
			list = append(list, fmt.Sprintf("these %d bounds", len(parameters)))
		case name == "lease", name == "period":
			list = append(list, fmt.Sprintf("%s %v", name, time.Duration(parameters[i])))
		default:
			list = append(list, fmt.Sprintf("%s %d", name, parameters[i]))
		}
	}
	return strings.Join(list, ", ")
}

// on names a home in an error; a cluster has no address of its own.
func on(h xdpfab.Home) string {
	if p, is := h.(*xdpfab.Peer); is && p != nil {
		return " on " + p.Addr()
	}
	return ""
}
