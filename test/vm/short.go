// SPDX-License-Identifier: Apache-2.0

//go:build linux

package vm

import "strings"

// Choice is a package of the short set, and which of its tests are in it: those whose
// names Only matches, or all if it is empty, without those that Except matches. Both
// are regular expressions of whole names.
type Choice struct {
	Dir          string // below the module's root
	Only, Except []string
}

// ShortSet is tested, with -short, when no packages are named: what may differ from
// kernel to kernel, once. A test is not in it if it needs no kernel (in-memory pipes,
// the parsing of values), or repeats another of the set only for longer, in another
// shape, or until a give-up time has passed; all these run on the host, in make test.
// Under QEMU's translator a guest is some ten times slower than its host. The longest
// come first, so that machines that share them end at about the same time.
var ShortSet = []Choice{
	{Dir: "internal/resident", Except: []string{"TestTightRoom", "TestGenerated", "TestExactlyOnceInOrder", "Fuzz.*",
		"TestReplaceIsStopped", "TestEstateMemory", "TestEstateRefused", "TestDamagedState", ".*DoesNotAllocate"}},
	// What the protocol does with frames is the same on every kernel.
	{Dir: "xdpfab/fi", Only: []string{"TestVeth.*"}, Except: []string{"TestVethManyNodes", "TestVethInsertAsync",
		"TestVethAuthKey", "TestVethSharedAV", "TestVethForgedFrames", "TestVethLocal", "TestVethMailbox",
		"TestVethMessages", "TestVethUnordered", "TestVethRemoteCQData", "TestVethRMA", "TestVethLongArray"}},
	{Dir: "test/e2e", Only: []string{"TestAtomicInterface", "TestKernelTraffic", "TestKillAndRestartUnderLoad",
		"TestStat", "TestInfo", "TestVLANBeside", "TestVLANServedBelow", "TestVLANRemoved", "TestTranscript"}},
	{Dir: "internal/port", Except: []string{"TestParsersAgree", "FuzzParsersAgree", "TestReopenLeavesNothing",
		"TestQueueTaken", ".*DoesNotAllocate"}},
	{Dir: "test/vm/topology"},
	{Dir: "bpf", Except: []string{"TestAgainstReference", "TestAgreesWithCodec", "Fuzz.*"}},
	{Dir: "test/soak", Only: []string{"TestMoves", "TestShortPartitions"}},
	{Dir: "xsk", Except: []string{"TestNothingLeaks", "TestBothDirectionsManyLaps", "TestRing.*", "TestFramePool.*",
		".*DoesNotAllocate"}},
	{Dir: "test/vm/feature"},
	{Dir: "internal/testnet/faultwire", Except: []string{"TestEachFault", "TestDelayQueueIsBounded"}},
	{Dir: "internal/route", Except: []string{"TestSilentNeighbour", "TestDoubtfulNeighbour"}},
	{Dir: "internal/testnet/veth"},
	{Dir: "internal/testnet"},
	{Dir: "internal/nic"},
	{Dir: "internal/testnet/census"},
}

// NICSet is tested on NICs when no packages are named.
var NICSet = []Choice{{Dir: "test/e2e", Only: []string{"TestNIC.*"}}}

// ArgsOf returns the arguments of a package's test binary that restrict it to its tests
// of a set.
func ArgsOf(set []Choice, dir string) []string {
	args := []string{"-test.short=true"}
	for _, c := range set {
		if c.Dir != dir {
			continue
		}
		if len(c.Only) > 0 {
			args = append(args, "-test.run="+whole(c.Only))
		}
		if len(c.Except) > 0 {
			args = append(args, "-test.skip="+whole(c.Except))
		}
	}
	return args
}

// whole matches the names that any of the regular expressions matches from end to end.
func whole(names []string) string { return "^(" + strings.Join(names, "|") + ")$" }
