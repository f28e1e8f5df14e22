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
	Image   string // path of the bzImage
	Release string // as uname -r will have it
	Modules string // path of its lib/modules/RELEASE
}

// OpenKernel looks at a kernel image. Its modules are those of the given folder, or
// if that is empty, of the folder that belongs to the image: lib/modules/RELEASE or
// usr/lib/modules/RELEASE beside the image's boot/, or the image's own folder.
func OpenKernel(image, modules string) (*Kernel, error) {
	release, err := releaseOf(image)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKernel, err)
	}
	k := &Kernel{Name: filepath.Base(image), Image: image, Release: release}
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

// The x86 boot protocol: Documentation/arch/x86/boot.rst.
const (
	setupHeader  = 0x202 // "HdrS"
	kernelString = 0x20e // u16: where the version string is, less setupBase
	setupBase    = 0x200
)

// releaseOf reads the release from an image.
func releaseOf(image string) (string, error) {
	b, err := os.ReadFile(image)
	if err != nil {
		return "", fmt.Errorf("kernel image: %w", err)
	}
	if len(b) < kernelString+2 || string(b[setupHeader:setupHeader+4]) != "HdrS" {
		return "", fmt.Errorf("%s is not a kernel image for x86: want a bzImage, such as /boot/vmlinuz-*", image)
	}
	at := int(binary.LittleEndian.Uint16(b[kernelString:])) + setupBase
	if at >= len(b) {
		return "", fmt.Errorf("%s: the image is cut short: its version would be at byte %d of %d", image, at, len(b))
	}
	text, _, _ := bytes.Cut(b[at:min(at+256, len(b))], []byte{0})
	release, _, _ := strings.Cut(string(text), " ")
	if release == "" {
		return "", fmt.Errorf("%s: the image does not say its version", image)
	}
	return release, nil
}
