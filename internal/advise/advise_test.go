// SPDX-License-Identifier: Apache-2.0

//go:build linux

package advise

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/nic"
)

// server is a machine as the tests describe it: the tree, and the rest.
type server struct {
	files    map[string]string // the content "EACCES" makes a file unreadable
	system   nic.System
	nic      nic.Interface
	settings nic.Settings
	noNIC    bool
	bound    *Bound
	procs    int // GOMAXPROCS
}

// tree is its file system.
type tree struct{ fstest.MapFS }

// ReadFile refuses the files that the test makes unreadable.
func (t tree) ReadFile(name string) ([]byte, error) {
	b, err := t.MapFS.ReadFile(name)
	if string(b) == "EACCES\n" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return b, err
}

func (s *server) take() *Snapshot {
	m := fstest.MapFS{}
	for p, text := range s.files {
		m[p] = &fstest.MapFile{Data: []byte(text + "\n")}
	}
	i := &s.nic
	if s.noNIC {
		i = nil
	}
	taken := Take(tree{m}, s.system, i, s.settings)
	taken.Processors = s.procs
	if s.bound != nil {
		taken.Use(*s.bound)
	}
	return taken
}

// tuned is a server of two nodes and eight cores, set up by the guide: every check
// is ok.
func tuned() *server {
	s := &server{
		procs: 8,
		files: map[string]string{
			"proc/1/comm": "systemd", "proc/77/comm": "sshd",
			"proc/self/status":                                      "Name:\txdpfab\nCpus_allowed:\tff\nCpus_allowed_list:\t0-7\n",
			"proc/sys/kernel/numa_balancing":                        "0",
			"proc/sys/kernel/unprivileged_bpf_disabled":             "2",
			"proc/sys/net/core/bpf_jit_enable":                      "1",
			"sys/devices/system/cpu/online":                         "0-7",
			"sys/devices/system/cpu/isolated":                       "2-3",
			"sys/devices/system/cpu/nohz_full":                      "2-3",
			"sys/fs/cgroup/cpuset.cpus.isolated":                    "",
			"sys/devices/system/cpu/smt/active":                     "0",
			"sys/devices/system/cpu/intel_pstate/no_turbo":          "0",
			"sys/devices/system/cpu/vulnerabilities/meltdown":       "Not affected",
			"sys/devices/system/cpu/vulnerabilities/retbleed":       "Not affected",
			"sys/devices/system/cpu/vulnerabilities/spectre_v2":     "Mitigation: Enhanced IBRS",
			"sys/devices/system/node/node0/cpulist":                 "0-3",
			"sys/devices/system/node/node1/cpulist":                 "4-7",
			"sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "16",
			"sys/kernel/mm/transparent_hugepage/enabled":            "always [madvise] never",
			"sys/class/net/eth5/ifindex":                            "5",
			"sys/class/net/eth5/napi_defer_hard_irqs":               "0",
			"sys/class/net/eth5/gro_flush_timeout":                  "0",
			"sys/class/net/eth5/device/numa_node":                   "0",
			"sys/class/net/eth5/device/msi_irqs/40":                 "msix",
			"sys/class/net/eth5/device/msi_irqs/41":                 "msix",
			"proc/irq/40/smp_affinity_list":                         "0",
			"proc/irq/41/smp_affinity_list":                         "1",
		},
		system: nic.System{Kernel: "6.18.0", Memlock: math.MaxUint64, Features: []nic.Feature{{Name: "larger bursts", Since: "6.17", Present: true}}},
		nic: nic.Interface{Name: "eth5", Index: 5, Kind: "device", Driver: "ice", MTU: 1500, Up: true, Ethernet: true,
			RXQueues: 2, TXQueues: 2},
		settings: nic.Settings{Offloads: map[string]bool{"rx-lro": false, "rx-ntuple-filter": true}, RXRing: 512, RXRingMax: 8160},
	}
	s.nic.SetFeatures(nic.XDPBasic | nic.XDPRedirect | nic.XDPZeroCopy)
	for cpu := range 8 {
		dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d/", cpu)
		s.files[dir+"cpufreq/scaling_governor"] = "performance"
		s.files[dir+"cpuidle/state0/latency"], s.files[dir+"cpuidle/state0/disable"] = "0", "0"
		s.files[dir+"cpuidle/state1/latency"], s.files[dir+"cpuidle/state1/disable"] = "133", "1"
		s.files[dir+"topology/thread_siblings_list"] = fmt.Sprintf("%d", cpu)
	}
	return s
}

func (s *server) set(p, text string) { s.files[p] = text }

// remove takes away what is beneath a path.
func (s *server) remove(prefix string) {
	for p := range s.files {
		if strings.HasPrefix(p, prefix) {
			delete(s.files, p)
		}
	}
}

// veth makes the interface a veth in a container.
func (s *server) veth() {
	s.nic.Kind, s.nic.Driver = "veth", "veth"
	s.nic.SetFeatures(nic.XDPBasic | nic.XDPRedirect)
	s.remove("sys/class/net/eth5/device/")
}

const cpu = "sys/devices/system/cpu/"

// cases change the tuned server; the check has to give the verdict, and its line
// has to contain the text.
var cases = []struct {
	check   string
	change  func(s *server)
	verdict Verdict
	say     string
}{

	{"zero-copy", func(s *server) { s.nic.SetFeatures(nic.XDPBasic | nic.XDPRedirect) }, Advice, "native XDP, copy (ice)"},
	{"zero-copy", func(s *server) { s.nic.FeaturesKnown = false }, NotApplicable, "6.3"},
	{"zero-copy", func(s *server) {
		s.nic.FeaturesKnown = false
		s.bound = &Bound{"native", "zero-copy", 4096, nil, "bound for an instant"}
	}, OK,
		"native XDP, zero-copy (bound for an instant)"},
	{"zero-copy", func(s *server) {
		s.bound = &Bound{"native", "copy", 4096, []string{"the driver refuses it"}, "bound for an instant"}
	}, Advice, "native XDP, copy (bound for an instant): the driver refuses it"},
	{"mtu", func(s *server) { s.bound = &Bound{"native", "copy", 2048, nil, ""} }, OK, "buffers of 2048"},
	{"rx-ring", func(s *server) { s.bound = &Bound{"native", "copy", 4096, nil, ""} }, NotApplicable, "zero-copy alone"},
	{"zero-copy", (*server).veth, NotApplicable, "eth5 is a veth, not a NIC"},
	{"zero-copy", func(s *server) { s.noNIC = true }, NotApplicable, "no interface was named"},
	{"queues", func(s *server) { s.nic.RXQueues, s.nic.TXQueues = 8, 8 }, Advice, "ethtool -L eth5 combined 2"},
	{"queues", func(s *server) { s.nic.TXQueues = 1 }, Advice, "ethtool -L eth5 combined 1"},
	{"queues", func(s *server) { s.set(cpu+"isolated", ""); s.nic.RXQueues, s.nic.TXQueues = 9, 9 }, Advice, "combined 8"},
	{"queues", func(s *server) { s.veth(); s.nic.RXQueues, s.nic.TXQueues = 4, 2 }, Advice, "ethtool -L eth5 rx 2 tx 2"},
	{"queues", func(s *server) { s.nic.Ethernet = false }, NotApplicable, "not an Ethernet interface"},
	{"steering", func(s *server) { s.settings.Offloads["rx-ntuple-filter"] = false }, Advice, "ethtool -K eth5 ntuple on"},
	{"steering", func(s *server) { delete(s.settings.Offloads, "rx-ntuple-filter") }, Advice, "ethtool -L eth5 combined 1"},
	{"steering", func(s *server) { s.settings.OffloadsErr = unix.EPERM }, Unknown, "not permitted"},
	{"steering", func(s *server) { s.nic.RXQueues = 1; s.settings.OffloadsErr = unix.EPERM }, OK, "one queue"},
	{"driver", func(*server) {}, OK, "nothing in the way of ice"},
	{"driver", func(s *server) { s.nic.Driver, s.nic.MTU = "ena", 9001 }, Advice, "ip link set dev eth5 mtu 3498"},
	{"driver", func(s *server) { s.nic.Driver = "unheard-of" }, NotApplicable, "xdpfab doctor eth5"},
	{"vlan", func(*server) {}, OK, "no 802.1Q interface"},
	{"vlan", func(s *server) { s.nic.VLANs, s.nic.TagsOff = []string{"eth5.7"}, true }, Advice,
		"ethtool -K eth5 rxvlan off"},
	{"vlan", func(s *server) { s.nic.VLANs = []string{"eth5.7"} }, OK, "tags stay in the frames"},
	{"vlan", func(s *server) { s.nic.VLANs = []string{"eth5.7"}; s.settings.OffloadsErr = unix.EOPNOTSUPP }, NotApplicable, "takes no tags off"},
	{"vlan", func(s *server) { s.veth(); s.nic.VLANs = []string{"eth5.7"} }, Advice, "txvlan off, at the other end"},
	{"mtu", func(s *server) { s.nic.MTU = 9000 }, Advice, "ip link set dev eth5 mtu 3046"},
	{"mtu", func(s *server) { s.nic.MTU = 3047 }, Advice, "mtu 3046"},
	{"mtu", func(s *server) { s.nic.Driver, s.nic.MTU = "unknown", 9000 }, Advice, "mtu 3822"},
	{"mtu", func(s *server) { s.nic.MTU = 68 }, Advice, "mtu 1500"},
	{"mtu", func(s *server) { s.nic.MTU = 1007 }, OK, "buffers of 4096"},
	{"mtu", func(s *server) { s.nic.MTU = 1006 }, OK, "buffers of 2048"},
	{"rx-ring", func(s *server) { s.settings.RXRing = 4096 }, Advice, "ethtool -G eth5 rx 512"},
	{"rx-ring", func(s *server) { s.settings.RXRing = 64 }, Advice, "rx 512"},
	{"rx-ring", func(s *server) { s.settings.RXRing = 1024 }, Advice, "rx 512"}, // as many as need not wait in RX
	{"rx-ring", func(s *server) { s.settings.RXRing, s.settings.RXRingMax = 256, 256 }, OK, "256, the driver's most"},
	{"rx-ring", func(s *server) { s.settings.RingErr = unix.EOPNOTSUPP }, NotApplicable, "no ring sizes"},
	{"rx-ring", func(s *server) { s.nic.SetFeatures(nic.XDPBasic | nic.XDPRedirect) }, NotApplicable, "zero-copy alone"},
	{"offloads", func(s *server) { s.settings.Offloads["rx-lro"] = true }, Advice, "ethtool -K eth5 lro off"},
	{"offloads", func(s *server) { s.settings.Offloads["rx-lro"], s.settings.Offloads["rx-gro-hw"] = true, true }, Advice,
		"ethtool -K eth5 lro off rx-gro-hw off"},
	{"offloads", func(s *server) { s.settings.OffloadsErr = unix.EOPNOTSUPP }, NotApplicable, "no offloads"},
	{"pause", func(s *server) { s.settings.PauseRX = true }, Advice, "ethtool -A eth5 autoneg off rx off tx off"},
	{"pause", func(s *server) { s.settings.PauseTX = true }, Advice, "sent: yes"},
	{"pause", func(s *server) { s.settings.PauseErr = unix.EOPNOTSUPP }, NotApplicable, "no pause frames"},
	{"coalescing", func(s *server) { s.settings.AdaptiveRX = true }, Advice, "ethtool -C eth5 adaptive-rx off rx-usecs 0"},
	{"coalescing", func(s *server) { s.settings.RXUsecs = 50 }, Advice, "50 µs"},
	{"coalescing", func(s *server) { s.settings.CoalesceErr = unix.EOPNOTSUPP }, NotApplicable, "no interrupt coalescing"},
	{"coalescing", func(s *server) { s.settings.CoalesceErr = unix.EPERM }, Unknown, "not permitted"},
	{"irq-affinity", func(s *server) { s.set("proc/irq/41/smp_affinity_list", "0-7") }, Advice, "IRQ: 41"},
	{"irq-affinity", func(s *server) { s.remove("sys/class/net/eth5/device/msi") }, NotApplicable, "no interrupts of its own"},
	{"irq-affinity", func(s *server) { s.set("sys/class/net/eth5/ifindex", "9") }, Unknown, "another network namespace"},
	{"irq-affinity", func(s *server) { s.set(cpu+"online", "0") }, NotApplicable, "one CPU"},
	{"irqbalance", func(s *server) { s.set("proc/500/comm", "irqbalance") }, Advice, "process 500"},
	{"irqbalance", func(s *server) { s.remove("proc/1"); s.remove("proc/77") }, Unknown, "no processes"},
	{"busy-poll", func(*server) {}, OK, "--busy-poll defers those of its queues"},
	{"busy-poll", func(s *server) { s.set("sys/class/net/eth5/gro_flush_timeout", "200000") }, Advice, "200000 ns"},
	{"busy-poll", func(s *server) { s.veth(); s.set("sys/class/net/eth5/napi_defer_hard_irqs", "2") }, Advice,
		"echo 0 > /sys/class/net/eth5/napi_defer_hard_irqs"},
	{"busy-poll", func(s *server) { s.remove("sys/class/net/eth5/napi") }, NotApplicable, "cannot defer"},
	{"busy-poll", func(s *server) { s.remove("sys/class/net/") }, Unknown, "another network namespace"},
	{"numa", func(s *server) { s.set("sys/class/net/eth5/device/numa_node", "1") }, Advice, "isolated elsewhere: 2-3"},
	{"numa", func(s *server) { s.set(cpu+"isolated", "") }, Advice, "--cores from 0-3"},
	{"numa", func(s *server) { s.set("sys/class/net/eth5/device/numa_node", "-1") }, NotApplicable, "firmware"},
	{"numa", func(s *server) { s.remove("sys/devices/system/node/node1") }, NotApplicable, "1 NUMA node"},
	{"isolated-cpus", func(s *server) { s.set(cpu+"isolated", "") }, Advice, "isolcpus=managed_irq,domain,7 nohz_full=7"},
	{"isolated-cpus", func(s *server) { s.set(cpu+"isolated", ""); s.set(cpu+"online", "0-1") }, NotApplicable, "2 CPUs"},
	{"isolated-cpus", func(s *server) { s.set(cpu+"isolated", ""); s.set("sys/fs/cgroup/cpuset.cpus.isolated", "6") }, OK, "6 of 0-7"},
	{"isolated-cpus", func(s *server) { s.set(cpu+"isolated", "two") }, Unknown, `"two" is not a list of CPUs`},
	{"nohz-full", func(s *server) { s.set(cpu+"nohz_full", "2") }, Advice, "nohz_full=2-3"},
	{"nohz-full", func(s *server) { s.set(cpu+"nohz_full", "(null)") }, Advice, "tick on isolated CPUs 2-3"},
	{"nohz-full", func(s *server) { s.remove(cpu + "nohz_full") }, NotApplicable, "CONFIG_NO_HZ_FULL"},
	{"nohz-full", func(s *server) { s.set(cpu+"isolated", "") }, NotApplicable, "no CPU is isolated"},
	{"cpuset", func(s *server) { s.set("proc/self/status", "Cpus_allowed_list:\t0-1,4-7\n") }, Advice, "taskset -c 2-3 xdpfabd --cores 2-3"},
	{"cpuset", func(s *server) { s.set("proc/self/status", "Name:\txdpfab\n") }, Unknown, "no line Cpus_allowed_list"},
	{"gomaxprocs", func(s *server) { s.procs = 2 }, Advice, "GOMAXPROCS=3 for a program"},
	{"gomaxprocs", func(s *server) { s.procs, s.noNIC = 1, true }, Advice, "1, and 1 pollers"},
	{"gomaxprocs", func(s *server) { s.procs, s.noNIC = 2, true }, OK, "2, and 1 pollers"},
	{"smt", func(s *server) { s.set(cpu+"smt/active", "1"); s.set(cpu+"cpu3/topology/thread_siblings_list", "3,7") }, Advice, "in use: 7"},
	{"smt", func(s *server) { s.set(cpu+"smt/active", "1"); s.set(cpu+"cpu2/topology/thread_siblings_list", "2-3") }, OK, "isolated whole"},
	{"smt", func(s *server) { s.set(cpu+"smt/active", "1"); s.set(cpu+"isolated", "") }, Advice, "smt/control"},
	{"smt", func(s *server) { s.remove(cpu + "smt") }, NotApplicable, "no such thing"},
	{"cpu-idle", func(s *server) { s.set(cpu+"cpu6/cpuidle/state1/disable", "0") }, Advice, "up to 133 µs on 1 CPUs"},
	{"cpu-idle", func(s *server) {
		for i := range 8 {
			s.remove(fmt.Sprintf("%scpu%d/cpuidle", cpu, i))
		}
	}, NotApplicable, "hypervisor"},
	{"governor", func(s *server) { s.set(cpu+"cpu4/cpufreq/scaling_governor", "powersave") }, Advice, "performance on 7 CPUs, powersave on 1 CPUs"},
	{"turbo", func(s *server) { s.set(cpu+"intel_pstate/no_turbo", "1") }, Advice, "no_turbo"},
	{"turbo", func(s *server) { s.remove(cpu + "intel_pstate"); s.set(cpu+"cpufreq/boost", "0") }, Advice, "cpufreq/boost"},
	{"turbo", func(s *server) { s.remove(cpu + "intel_pstate"); s.set(cpu+"cpufreq/boost", "1") }, OK, "on"},
	{"turbo", func(s *server) { s.remove(cpu + "intel_pstate") }, NotApplicable, "hypervisor"},
	{"numa-balancing", func(s *server) { s.set("proc/sys/kernel/numa_balancing", "1") }, Advice, "sysctl -w kernel.numa_balancing=0"},
	{"huge-pages", func(s *server) { s.nic.RXQueues = 8 }, Advice, "vm.nr_hugepages=32"},
	{"huge-pages", func(s *server) { s.noNIC = true; s.set("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "3") }, Advice,
		"3 reserved; transparent ones: madvise"},
	{"huge-pages", func(s *server) { s.remove("sys/kernel/mm/hugepages") }, NotApplicable, "2 MiB"},
	{"memlock", func(s *server) { s.system.Memlock = 8 << 20 }, Advice, "ulimit -l"},
	{"memlock", func(s *server) { s.system.Memlock = 32 << 20 }, OK, "32768 KiB"},
	{"memlock", func(s *server) {
		s.system.Memlock, s.system.Capabilities = 0, []nic.Capability{{Name: "CAP_IPC_LOCK", Have: true}}
	}, OK, "CAP_IPC_LOCK"},
	{"memlock", func(s *server) {
		s.system.Kernel, s.system.Memlock, s.system.Capabilities = "5.10.0", 32<<20, []nic.Capability{{Name: "CAP_IPC_LOCK", Have: true}}
	}, Advice, "ulimit -l unlimited"},
	{"unprivileged-bpf", func(s *server) { s.set("proc/sys/kernel/unprivileged_bpf_disabled", "0") }, Advice, "unprivileged_bpf_disabled=2"},
	{"bpf-jit", func(s *server) { s.set("proc/sys/net/core/bpf_jit_enable", "0") }, Advice, "bpf_jit_enable=1"},
	{"mitigations", func(s *server) { s.set(cpu+"vulnerabilities/meltdown", "Mitigation: PTI") }, Advice, "meltdown"},
	{"mitigations", func(s *server) { s.set(cpu+"vulnerabilities/retbleed", "Vulnerable") }, OK, "none in force"},
	{"mitigations", func(s *server) { s.remove(cpu + "vulnerabilities") }, NotApplicable, "does not tell"},
	{"kernel", func(s *server) { s.system.Features[0].Present = false }, Advice, "lacks: larger bursts (6.17)"},
}

// names lists the checks in order.
func names() (all []string) {
	for _, c := range checks {
		all = append(all, c.name)
	}
	return all
}

func find(t *testing.T, list []Finding, name string) Finding {
	t.Helper()
	for _, f := range list {
		if f.Check == name {
			return f
		}
	}
	t.Fatalf("no check %q", name)
	return Finding{}
}

func TestTunedServerIsOK(t *testing.T) {
	list := Check(tuned().take())
	if len(list) != len(names()) {
		t.Errorf("%d findings of %d checks", len(list), len(names()))
	}
	for _, f := range list {
		if f.Verdict != OK || f.Found == "" || f.Expected == "" || f.Command != "" || f.Reason != "" {
			t.Errorf("%+v", f)
		}
	}
}

func TestCases(t *testing.T) {
	for i, c := range cases {
		s := tuned()
		c.change(s)
		f := find(t, Check(s.take()), c.check)
		if f.Verdict != c.verdict || !strings.Contains(f.Found+"|"+f.Command+"|"+f.Reason, c.say) {
			t.Errorf("case %d, %s: %+v; want %s, saying %q", i, c.check, f, c.verdict, c.say)
		}
		if (f.Command != "") != (f.Verdict == Advice) || (f.Reason != "") != (f.Verdict == NotApplicable || f.Verdict == Unknown) {
			t.Errorf("case %d, %s: a command goes with advice alone, a reason with no verdict alone: %+v", i, c.check, f)
		}
	}
}

// Every check can succeed (for the tuned server) and fail.
func TestEveryCheckCanFail(t *testing.T) {
	for _, name := range names() {
		failed := false
		for _, c := range cases {
			failed = failed || c.check == name && c.verdict == Advice
		}
		if !failed {
			t.Errorf("%s: no case in which it advises", name)
		}
	}
}

// Every check has a finding on this machine, and every name a section in the
// guide.
func TestGuide(t *testing.T) {
	guide, err := os.ReadFile("../../docs/tuning.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names() {
		if !strings.Contains(string(guide), "`"+name+"`") {
			t.Errorf("docs/tuning.md does not tell of the check %s", name)
		}
	}
	system, err := nic.Machine()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range Check(Take(os.DirFS("/"), system, nil, nic.Settings{})) {
		if f.Verdict == "" || f.Found == "" && f.Reason == "" {
			t.Errorf("%+v", f)
		}
		t.Logf("%+v", f)
	}
}
