// SPDX-License-Identifier: Apache-2.0

package sim

// finding is how a rule of the simulator finds a bug.
type finding struct {
	seed uint64 // of a run that finds it; the search begins there
	says string // part of what the rule says
}

const (
	flushRule  = "a flush completed before"
	signalRule = "when the signal of"
	sumRule    = "successes make"
)

// findings are of the bugs that have to be found by a rule of their own, by their names.
// Any failure finds the others.
var findings = map[string]finding{
	"outcomes are asked for no longer than a silent target has, though it answers hellos": {2017, "is so for good"},
	"a flush does not wait for the frames in flight":                                      {1, flushRule},
	"a flush does not wait for a session in doubt":                                        {702, flushRule},
	"a flush does not wait for what is in the frame that is being filled":                 {1, flushRule},
	"a flush waits for the frames of like answers alone":                                  {1, flushRule},
	"a flush does not wait for what goes over to the next session":                        {4567, flushRule},
	"a flush of a peer waits for another peer":                                            {4, flushRule},
	"a flush of all peers passes those without a session":                                 {25, flushRule},
	"every part of a write applies its signal":                                            {4, signalRule},
	"a signal is checked with the last part of its write alone":                           {5, "which cannot have written it"},
	"a signal overtakes the parts of its write":                                           {125, signalRule},
	"a signal passes what is in a former session":                                         {5251, signalRule},
	"a signal comes without the last part of its write":                                   {4, signalRule},
	"a signal comes though its write is refused":                                          {21, signalRule},
	"a session that has ended keeps the buffers of what a guest has that died":            {53, "which has died"},
	"a signal comes twice":                                                                {4, sumRule},
}
