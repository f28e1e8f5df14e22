// SPDX-License-Identifier: Apache-2.0

//go:build linux

package vm

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// NIC is a kind of network interface. A machine with one has two of it, joined to each
// other: eth0 and eth1.
type NIC struct {
	Name    string   // as vmtest -nic takes it
	Device  string   // of QEMU, with its properties
	Queues  int      // that tests may ask for, and that frames are spread over
	Kernel  string   // by name; it has the driver
	Modules []string // the driver, besides those of every machine
	Expect  string   // what xdpfab gets with it: XDP mode and copy mode
	Leaks   bool     // the driver never frees XDP programs that it had when it was set down

	// warns is the kernel's function that warns of the device whatever is attached to it;
	// empty for none.
	warns string
	// virtual is whether the tests have a virtual function (SR-IOV) of each of the two.
	virtual bool
	tap     bool // joined by a bridge of the host, which several queues of virtio-net take
}

// NICs are the kinds that [FindNIC] knows.
var NICs = []NIC{
	{Name: "virtio", Device: "virtio-net-pci,iommu_platform=on,disable-legacy=on", Queues: 1, Kernel: "sid",
		Expect: "native zero-copy"},
	{Name: "igb", Device: "igb", Queues: 2, Kernel: FullKernel.Name, Modules: []string{"igb"},
		Expect: "native zero-copy"},
	{Name: "igbvf", Device: "igb", Queues: 1, Kernel: FullKernel.Name, Modules: []string{"igb", "igbvf"},
		Expect: "generic copy", virtual: true},
	{Name: "virtio-queues", Device: "virtio-net-pci,iommu_platform=on,disable-legacy=on,mq=on,vectors=10", Queues: 2,
		Kernel: "sid",
		Expect: "native zero-copy", tap: true},
	{Name: "virtio-copy", Device: "virtio-net-pci", Queues: 1, Kernel: "sid", Expect: "native copy"},
	{Name: "virtio-jumbo", Device: "virtio-net-pci,iommu_platform=on,disable-legacy=on,host_mtu=9000", Queues: 1,
		Kernel: "sid", Expect: "native copy"}, // zero-copy takes one buffer a packet
	{Name: "virtio-rss", Device: "virtio-net-pci,iommu_platform=on,disable-legacy=on,mq=on,vectors=10,rss=on,hash=on",
		Queues: 2, Kernel: "sid", Expect: "native zero-copy", tap: true},
	{Name: "virtio-offloads", Device: "virtio-net-pci,ctrl_guest_offloads=off", Queues: 1, Kernel: "sid",
		Expect: testnet.Refused + " copy", tap: true, // the host joins packets, and cannot be told not to
		warns: "generic_xdp_install"}, // "failed to disable GRO_HW!"
	{Name: "vmxnet3", Device: "vmxnet3", Queues: 1, Kernel: FullKernel.Name, Modules: []string{"vmxnet3"},
		Expect: "native copy", Leaks: true},
	{Name: "e1000e", Device: "e1000e", Queues: 1, Kernel: FullKernel.Name, Modules: []string{"e1000e"},
		Expect: "generic copy"},
}

// FindNIC looks a kind of NIC up by its name.
func FindNIC(name string) (*NIC, error) {
	n, known := named(NICs, name, func(n NIC) string { return n.Name })
	if n == nil {
		return nil, fmt.Errorf("NIC %q: want one of %s", name, known)
	}
	return n, nil
}

// Model is QEMU's name of the device.
func (n *NIC) Model() string {
	model, _, _ := strings.Cut(n.Device, ",")
	return model
}

// slots are those of the two NICs on the PCI bus. Two that are close to each other would
// collide: an igb takes the slots after its own for its virtual functions.
var slots = [2]string{"0x8", "0xc"}

// arguments returns those of QEMU for the two NICs.
func (n *NIC) arguments() (args []string) {
	for i, slot := range slots {
		netdev := fmt.Sprintf("hubport,id=nic%d,hubid=1", i)
		if n.tap {
			// With more of them the driver would add queues for XDP, and packets would
			// arrive there.
			netdev = fmt.Sprintf("tap,id=nic%d,ifname=nic%d,script=no,downscript=no,vhost=off,queues=%d", i,
				i, n.Queues)
		}
		args = append(args, "-netdev", netdev, "-device",
			fmt.Sprintf("%s,netdev=nic%d,romfile=,addr=%s,mac=02:00:00:00:01:%02x", n.Device, i, slot, i+1))
	}
	return args
}

// cabling joins two tap interfaces by a bridge, with the mode that is its first argument,
// and then executes the other arguments.
const cabling = `set -e
mode=$1
shift
ip link add cable type bridge mcast_snooping 0
for i in nic0 nic1; do
	ip tuntap add dev $i mode $mode
	ip link set dev $i addrgenmode none master cable up
done
ip link set dev cable addrgenmode none up
exec "$@"`

// enclose makes a call of QEMU run in a network namespace of its own, which ends with it,
// if the NICs need interfaces of the host.
func (n *NIC) enclose(cmd *exec.Cmd) error {
	if !n.tap {
		return nil
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w: the NIC %s takes tap interfaces in a network namespace: run as root, or leave it out",
			ErrHost, n.Name)
	}
	sh, err := find("sh")
	if err != nil {
		return err
	}
	mode := "tap"
	if n.Queues > 1 {
		mode += " multi_queue" // QEMU opens the interface of one queue as one that has no others
	}
	cmd.Args = append([]string{sh, "-c", cabling, sh, mode, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = sh
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWNET
	return nil
}

// physical are the interfaces of which the guest makes virtual functions.
func (n *NIC) physical() []string {
	if n == nil || !n.virtual {
		return nil
	}
	return []string{"eth0", "eth1"}
}

// ours are those of the traces of a test that the driver did not leave.
func (n *NIC) ours(left []string) []string {
	if n == nil || !n.Leaks {
		return left
	}
	return slices.DeleteFunc(left, func(l string) bool { return strings.HasPrefix(l, "BPF ") })
}

// foreign leaves out the warnings that the kernel gives of this device by itself.
func (n *NIC) foreign(warnings []string) []string {
	if n == nil || n.warns == "" {
		return warnings
	}
	return slices.DeleteFunc(warnings, func(w string) bool { return strings.Contains(w, " "+n.warns+"+0x") })
}

// env tells the tests in the guest of the NICs.
func (n *NIC) env() []string {
	if n == nil {
		return nil
	}
	names := "eth0 eth1"
	if n.virtual {
		names = "eth2 eth3"
	}
	return []string{testnet.NICsEnv + "=" + names, testnet.NICModesEnv + "=" + n.Expect,
		fmt.Sprintf("%s=%d", testnet.NICQueuesEnv, n.Queues)}
}
