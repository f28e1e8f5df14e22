// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ErrKernel is wrapped by the errors of kernels that cannot be used.
var ErrKernel = errors.New("no usable kernel")

// Kernel is a kernel image with its modules.
type Kernel struct {
	Name    string // as it was asked for
	Arch    *Arch
	Image   string // path of the bzImage, or on arm64 the Image
	Release string // as uname -r will have it
	Modules string // path of its lib/modules/RELEASE
}

// OpenKernel looks at a kernel image. Its modules are those of the given folder, or if
// that is empty, of the folder that belongs to the image: lib/modules/RELEASE or
// usr/lib/modules/RELEASE next to the image's boot/, or the image's own folder.
func OpenKernel(image, modules string) (*Kernel, error) {
	arch, release, err := identify(image)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKernel, err)
	}
	k := &Kernel{Name: filepath.Base(image), Arch: arch, Image: image, Release: release}
	root := filepath.Dir(filepath.Dir(image))
	candidates := []string{
		filepath.Join(root, "lib/modules", release), filepath.Join(root, "usr/lib/modules", release),
		filepath.Dir(image), filepath.Join(filepath.Dir(image), "lib/modules", release),
	}
	if modules != "" {
		candidates = []string{modules, filepath.Join(modules, release), filepath.Join(modules, "lib/modules", release)}
	}
	for _, dir := range candidates {
		if s, err := os.Stat(filepath.Join(dir, "kernel")); err == nil && s.IsDir() {
			k.Modules = dir
			return k, nil
		}
	}
	return nil, fmt.Errorf("%w: %s is Linux %s, but there are no modules of it in %s; name their folder with -modules",
		ErrKernel, image, release, strings.Join(candidates, ", "))
}

// identify reads architecture and release from an image.
func identify(image string) (a *Arch, release string, err error) {
	b, err := os.ReadFile(image)
	if err != nil {
		return nil, "", fmt.Errorf("kernel image: %w", err)
	}
	text := ""
	switch {
	case has(b, setupHeader, "HdrS") && len(b) >= kernelString+2:
		a, text = AMD64, versionAMD64(b)
	case has(b, magicARM64, "ARM\x64"):
		a, text = ARM64, versionARM64(b)
	default:
		return nil, "",
			fmt.Errorf("%s is not a kernel image for x86 or arm64: want a bzImage or an Image, such as /boot/vmlinuz-*",
				image)
	}
	if release, _, _ = strings.Cut(text, " "); release == "" {
		return nil, "", fmt.Errorf("%s: the image does not say its version, or is cut short: it has %d bytes",
			image, len(b))
	}
	return a, release, nil
}

// has reports whether b has text at an offset.
func has(b []byte, at int, text string) bool {
	return len(b) >= at+len(text) && string(b[at:at+len(text)]) == text
}

// The x86 boot protocol: Documentation/arch/x86/boot.rst.
const (
	setupHeader  = 0x202 // "HdrS"
	kernelString = 0x20e // u16: where the version string is, less setupBase
	setupBase    = 0x200
)

// versionAMD64 returns what the image says of its version.
func versionAMD64(b []byte) string {
	at := int(binary.LittleEndian.Uint16(b[kernelString:])) + setupBase
	if at >= len(b) {
		return ""
	}
	text, _, _ := bytes.Cut(b[at:min(at+256, len(b))], []byte{0})
	return string(text)
}

// magicARM64 is where an image for arm64 has "ARM\x64":
// Documentation/arch/arm64/booting.rst.
const magicARM64 = 0x38

// versionARM64 returns the banner of an image, which is not compressed.
func versionARM64(b []byte) string {
	_, banner, _ := bytes.Cut(b, []byte("Linux version "))
	return string(banner[:min(256, len(banner))])
}
