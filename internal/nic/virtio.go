// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"os"
	"path/filepath"
)

// pciDevices is the folder in which Linux has a folder for each device of a PCI bus.
const pciDevices = "/sys/bus/pci/devices"

// accessPlatform is the number of the feature VIRTIO_F_ACCESS_PLATFORM: the device takes
// addresses that the kernel's DMA interface gives out, and no others.
const accessPlatform = 33

// virtioCopies reports whether the virtio device at a bus address cannot have zero-copy.
// virtio_net offers that in any case, but hands over buffers of AF_XDP by their DMA
// addresses alone. It is false, too, where Linux does not tell.
func virtioCopies(devices, bus string) bool {
	if bus == "" {
		return false
	}
	found, err := filepath.Glob(filepath.Join(devices, filepath.Base(bus), "virtio*", "features"))
	if err != nil || len(found) != 1 {
		return false
	}
	features, err := os.ReadFile(found[0]) // a character a bit, "1" if it is set
	return err == nil && len(features) > accessPlatform && features[accessPlatform] == '0'
}
