// SPDX-License-Identifier: Apache-2.0

package vm

// packageOf names the Debian package of a program that a host may lack.
var packageOf = map[string]string{
	"qemu-system-x86_64": "qemu-system-x86", "qemu-system-aarch64": "qemu-system-arm", "busybox": "busybox-static",
	"ip": "iproute2", "tc": "iproute2",
	"setpriv": "util-linux", "unshare": "util-linux", "ethtool": "ethtool", "xz": "xz-utils", "zstd": "zstd",
	"gzip": "gzip",
}
