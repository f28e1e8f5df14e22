// SPDX-License-Identifier: Apache-2.0

//go:build armbe || arm64be || m68k || mips || mips64 || mips64p32 || ppc || ppc64 || s390 || s390x || shbe || sparc || sparc64

package atomic

// Memory is little-endian on the wire and in every region, and operations apply to it in
// place. So this package does not compile for machines of the other order.
const _ uint8 = "xdpfab takes a little-endian machine, such as amd64 or arm64"
