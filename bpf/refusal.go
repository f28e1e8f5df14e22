// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bpf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// Refusal is the driver's, or the kernel's, of the program. It matches its errno to
// errors.Is, and ErrNoNative if the driver has no native XDP.
type Refusal struct {
	Interface string
	Mode      Mode // that was refused
	Errno     unix.Errno
	// Said is the refusal in the driver's or the kernel's own words; empty if there
	// were none. Older drivers write theirs to the kernel's log.
	Said string
	// NoNative is whether the driver has no native XDP. Drivers give the errno of
	// that, EOPNOTSUPP, for settings too.
	NoNative bool
}

// noNativeSaid begins the kernel's words for a driver without native XDP.
const noNativeSaid = "Underlying driver does not support XDP"

// Error says who refused what, in whose words, and the remedy.
func (e *Refusal) Error() string {
	said := "without a word of the driver"
	if e.Said != "" {
		said = fmt.Sprintf("the driver says %q", e.Said)
	}
	if e.NoNative {
		return fmt.Sprintf("bpf: attaching to %s in %v mode: %v; want mode Any, or a NIC whose driver has it: %v",
			e.Interface, e.Mode, ErrNoNative, e.Errno)
	}
	s := fmt.Sprintf("bpf: attaching to %s in %v mode: %v, %s", e.Interface, e.Mode, e.Errno, said)
	if remedy := remedies[e.Errno]; remedy != "" {
		s += " (" + remedy + ")"
	}
	return s
}

// Unwrap returns what the refusal matches.
func (e *Refusal) Unwrap() []error {
	if e.NoNative {
		return []error{e.Errno, ErrNoNative}
	}
	return []error{e.Errno}
}

// refusal finds out why a driver has refused the program: the reason reaches users of
// netlink alone, so another one is attached that way for an instant. What netlink
// attaches stays when the process ends, so it is one that passes all packets. The refusal
// is nil if the driver has taken it this time.
//
// Any other error means that the other one could not be made or, ErrLeftTrial, that it
// may be there still.
func (p *Program) refusal(ifname string, ifindex int, m Mode, errno unix.Errno) (*Refusal, error) {
	trial, id, err := p.newTrial()
	if err != nil {
		return nil, err
	}
	defer trial.Close()
	r := &Refusal{Interface: ifname, Mode: m, Errno: errno}
	said, err := setXDP(ifindex, trial.FD(), 0, netlinkFlags[m]|unix.XDP_FLAGS_UPDATE_IF_NOEXIST)
	if gone := endTrial(ifname, ifindex, m, trial.FD(), id); gone != nil {
		return nil, gone
	}
	if err == nil {
		return nil, nil
	}
	if errors.Is(err, errno) {
		r.Said = said
	}
	r.NoNative = m == Native && errno == unix.EOPNOTSUPP && (r.Said == "" || strings.HasPrefix(r.Said, noNativeSaid))
	return r, nil
}

// trialName is what the kernel calls the program that is attached for a trial.
const trialName = "xdpfab_trial"

// newTrial makes a program that passes all packets, and that drivers take if they take p.
// It reads the program's id before it is attached anywhere: without the id endTrial could
// not tell whether the program on the interface is the trial, and would leave it there.
func (p *Program) newTrial() (trial *ebpf.Program, id uint32, err error) {
	spec := &ebpf.ProgramSpec{Name: trialName, Type: ebpf.XDP, License: "Apache-2.0",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, passPacket), asm.Return()}}
	if p.frags {
		spec.Flags = unix.BPF_F_XDP_HAS_FRAGS
	}
	if trial, err = ebpf.NewProgram(spec); err != nil {
		return nil, 0, explain("loading a program to try the driver with", err)
	}
	info, err := trial.Info()
	if err != nil {
		return nil, 0, errors.Join(explain("reading the id of the trial", err), trial.Close())
	}
	number, known := info.ID()
	if !known {
		return nil, 0, errors.Join(errors.New("bpf: the kernel tells no id of the trial"), trial.Close())
	}
	return trial, uint32(number), nil
}

const (
	passPacket = 2 // XDP_PASS
	trialEnds  = 3 // how often it is tried to detach a trial
)

// ErrLeftTrial means that a program that was attached for a trial could not be detached.
// It passes all packets, and keeps others away.
var ErrLeftTrial = errors.New("a program that was attached for a trial is there still")

// endTrial detaches a trial, given as descriptor and id, and looks whether it is gone: an
// answer of the kernel may have been lost, be it that of the attachment. The kernel
// detaches that program alone, not one which took its place since the look.
func endTrial(ifname string, ifindex int, m Mode, fd int, id uint32) (err error) {
	for try := 0; ; try++ {
		on, look := attachedTo(ifindex)
		if look == nil && on[m] != id {
			return nil
		}
		if err = errors.Join(err, look); try == trialEnds {
			break
		}
		_, err = setLinkXDP(ifindex, -1, fd, netlinkFlags[m]|unix.XDP_FLAGS_REPLACE)
	}
	return fmt.Errorf("bpf: %s: %w: `ip link set dev %s %s off` (%v)", ifname, ErrLeftTrial, ifname, ipKeyword[m], err)
}

// setLinkXDP is setXDP. Tests replace it.
var setLinkXDP = setXDP

// netlinkFlags holds netlink's flag for each mode.
var netlinkFlags = map[Mode]uint32{Native: unix.XDP_FLAGS_DRV_MODE, Generic: unix.XDP_FLAGS_SKB_MODE}

const (
	nlaNested     = 1 << 15 // NLA_F_NESTED
	xdpExpectedFD = 8       // IFLA_XDP_EXPECTED_FD
	ackMessage    = 1       // NLMSGERR_ATTR_MSG
	setXDPLimit   = 10      // seconds; drivers set their queues up anew meanwhile
)

// setXDP attaches a program by rtnetlink(7), or detaches it if fd is -1 and it is the
// expected one. said is the kernel's message about the error.
func setXDP(ifindex, fd, expected int, flags uint32) (said string, err error) {
	s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return "", err
	}
	defer unix.Close(s)
	limit := unix.NsecToTimeval(int64(setXDPLimit * time.Second))
	err = errors.Join(unix.SetsockoptInt(s, unix.SOL_NETLINK, unix.NETLINK_EXT_ACK, 1),
		unix.SetsockoptTimeval(s, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit))
	if err != nil {
		return "", err
	}
	kernel := &unix.SockaddrNetlink{Family: unix.AF_NETLINK}
	if err := unix.Sendto(s, setLink(ifindex, fd, expected, flags), 0, kernel); err != nil {
		return "", err
	}
	var answer [4096]byte
	n, _, err := unix.Recvfrom(s, answer[:], 0)
	if err != nil {
		return "", err
	}
	return parseAck(answer[:n])
}

// setLink is an RTM_SETLINK message: a header, struct ifinfomsg, and the attributes of
// IFLA_XDP.
func setLink(ifindex, fd, expected int, flags uint32) []byte {
	type value struct {
		attr uint16
		v    uint32
	}
	values := []value{{unix.IFLA_XDP_FD, uint32(int32(fd))}, {unix.IFLA_XDP_FLAGS, flags}}
	if flags&unix.XDP_FLAGS_REPLACE != 0 {
		values = append(values, value{xdpExpectedFD, uint32(int32(expected))})
	}
	var nested []byte
	for _, a := range values {
		nested = binary.NativeEndian.AppendUint16(nested, unix.SizeofRtAttr+4)
		nested = binary.NativeEndian.AppendUint16(nested, a.attr)
		nested = binary.NativeEndian.AppendUint32(nested, a.v)
	}
	b := make([]byte, unix.SizeofNlMsghdr+unix.SizeofIfInfomsg, 64)
	binary.NativeEndian.PutUint16(b[4:], unix.RTM_SETLINK)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST|unix.NLM_F_ACK)
	binary.NativeEndian.PutUint32(b[unix.SizeofNlMsghdr+4:], uint32(ifindex))
	b = binary.NativeEndian.AppendUint16(b, uint16(unix.SizeofRtAttr+len(nested)))
	b = binary.NativeEndian.AppendUint16(b, unix.IFLA_XDP|nlaNested)
	b = append(b, nested...)
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	return b
}

// parseAck reads an NLMSG_ERROR message: the errno, and the message among the attributes
// that follow the request, or its header alone.
func parseAck(b []byte) (said string, err error) {
	const at = unix.SizeofNlMsghdr + 4 // of the request in the answer
	if len(b) < at+unix.SizeofNlMsghdr || binary.NativeEndian.Uint16(b[4:]) != unix.NLMSG_ERROR {
		return "", errors.New("bpf: malformed answer of rtnetlink")
	}
	code := int32(binary.NativeEndian.Uint32(b[unix.SizeofNlMsghdr:]))
	if code == 0 {
		return "", nil
	}
	err = unix.Errno(-code)
	flags := binary.NativeEndian.Uint16(b[6:])
	skip := unix.SizeofNlMsghdr
	if flags&unix.NLM_F_CAPPED == 0 {
		skip = int(binary.NativeEndian.Uint32(b[at:])+3) &^ 3
	}
	if flags&unix.NLM_F_ACK_TLVS == 0 || skip > len(b)-at {
		return "", err
	}
	for attrs := b[at+skip:]; len(attrs) >= unix.SizeofRtAttr; {
		n := int(binary.NativeEndian.Uint16(attrs))
		if n < unix.SizeofRtAttr || n > len(attrs) {
			break
		}
		if binary.NativeEndian.Uint16(attrs[2:])&attrTypeMask == ackMessage {
			return unix.ByteSliceToString(attrs[unix.SizeofRtAttr:n]), err
		}
		attrs = attrs[min((n+3)&^3, len(attrs)):]
	}
	return "", err
}
