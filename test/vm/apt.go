// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// ErrFetch is wrapped by the errors of kernels that cannot be downloaded.
var ErrFetch = errors.New("kernel cannot be fetched")

// Suite is the source of a named kernel.
type Suite struct {
	Name    string // of the kernel
	Debian  string // suite of its distribution
	Package string // that stands for the newest kernel, less the architecture at its end
}

const (
	cloudPackage = "linux-image-cloud-" // small, and made for virtual machines
	fullPackage  = "linux-image-"       // with the drivers of NICs
)

// Suites are the kernels that [Cache.Kernel] knows by name, oldest first.
var Suites = []Suite{
	{"5.10", "bullseye", cloudPackage}, {"6.1", "bookworm", cloudPackage}, {"6.12", "trixie", cloudPackage},
	{"sid", "sid", cloudPackage},
}

// FullKernel is another kernel that [Cache.Kernel] knows by name, some 125 MB to
// download: that of Suites has no drivers of NICs.
var FullKernel = Suite{"sid-full", "sid", fullPackage}

const (
	debianMirror  = "http://deb.debian.org/debian"
	debianKeyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
)

// apt runs apt's programs with a configuration and a state of their own, so that
// those of the host stay unchanged and no privilege is needed.
type apt struct {
	dir  string
	arch string // of the packages
}

func newAPT(dir, suite, arch string) (*apt, error) {
	for _, program := range []string{"apt-get", "apt-cache", "dpkg-deb"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil,
				fmt.Errorf(
					"%w: %s is missing: on other systems than Debian's give a kernel image's path in place of a name",
					ErrFetch, program)
		}
	}
	if _, err := os.Stat(debianKeyring); err != nil {
		return nil, fmt.Errorf("%w: Debian's keys: %w: apt-get install debian-archive-keyring", ErrFetch, err)
	}
	a := &apt{dir, arch}
	for _, d := range []string{"state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return nil, err
		}
	}
	source := fmt.Sprintf("deb [arch=%s signed-by=%s] %s %s main\n", arch, debianKeyring, mirror(), suite)
	return a, os.WriteFile(filepath.Join(dir, "sources.list"), []byte(source), 0o644)
}

// mirror is the Debian mirror that the host uses, or Debian's own.
func mirror() string {
	files, _ := filepath.Glob("/etc/apt/sources.list.d/*")
	uri := regexp.MustCompile(`(?m)^(?:URIs:|deb\b.*?)\s(https?://\S*/debian)/?(?:\s|$)`)
	for _, f := range append(files, "/etc/apt/sources.list") {
		if b, err := os.ReadFile(f); err == nil && filepath.Ext(f) != ".disabled" {
			if m := uri.FindSubmatch(b); m != nil {
				return string(m[1])
			}
		}
	}
	return debianMirror
}

// run runs one of apt's programs in a folder.
func (a *apt) run(in, program string, args ...string) ([]byte, error) {
	options := []string{
		"Dir::State=" + a.dir + "/state", "Dir::State::status=/dev/null", "Dir::Cache=" + a.dir + "/cache",
		"Dir::Etc::SourceList=" + a.dir + "/sources.list", "Dir::Etc::SourceParts=-", "APT::Architecture=" + a.arch,
		"APT::Architectures=" + a.arch,
		"Acquire::Languages=none", "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false",
		"APT::Sandbox::User=root", "Acquire::http::Timeout=20", "Acquire::Retries=1",
	}
	for _, o := range options {
		args = append(args, "-o", o)
	}
	cmd := exec.Command(program, args...)
	var complaint bytes.Buffer
	cmd.Dir, cmd.Stderr = in, &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil,
			fmt.Errorf("%w: %s %s: %w: %s", ErrFetch, program, args[0], err, strings.TrimSpace(complaint.String()))
	}
	return out, nil
}

// depends lists the packages that a package depends on and whose names begin with
// prefix.
func (a *apt) depends(name, prefix string) (found []string, err error) {
	out, err := a.run("", "apt-cache", "show", "--no-all-versions", name)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(out)) {
		list, ok := strings.CutPrefix(line, "Depends:")
		if !ok {
			continue
		}
		for item := range strings.SplitSeq(list, ",") {
			if p := strings.Fields(item); len(p) > 0 && strings.HasPrefix(p[0], prefix) &&
				!slices.Contains(found, p[0]) {
				found = append(found, p[0])
			}
		}
	}
	return found, nil
}

// update downloads the lists of packages.
func (a *apt) update() error {
	if _, err := a.run("", "apt-get", "update", "-q"); err != nil {
		return fmt.Errorf("%w; is there a network?", err)
	}
	return nil
}

// fetchKernel downloads the newest kernel of the suite, which a package stands for, and
// unpacks it into a folder.
func (a *apt) fetchKernel(meta, into string) error {
	if err := a.update(); err != nil {
		return err
	}
	images, err := a.depends(meta, "linux-image-")
	if err != nil {
		return err
	}
	if len(images) != 1 {
		return fmt.Errorf("%w: %s stands for %q, want one package", ErrFetch, meta, images)
	}
	// Newer releases have image and modules in packages of their own.
	packages := images
	for _, part := range []string{"linux-binary-", "linux-modules-", "linux-base-"} {
		more, err := a.depends(images[0], part)
		if err != nil {
			return err
		}
		packages = append(packages, more...)
	}
	return a.unpack(into, packages)
}

// fetchWhole downloads packages of the suite and all that they depend on, down to the
// C library, and unpacks them into a folder.
func (a *apt) fetchWhole(into string, names ...string) error {
	if err := a.update(); err != nil {
		return err
	}
	out, err := a.run("", "apt-get", append([]string{"install", "-q", "--simulate", "--no-install-recommends"},
		names...)...)
	if err != nil {
		return err
	}
	var packages []string
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "Inst" {
			packages = append(packages, f[1])
		}
	}
	return a.unpack(into, packages)
}

// unpack downloads packages and unpacks them into a folder.
func (a *apt) unpack(into string, packages []string) error {
	down, err := os.MkdirTemp(a.dir, "download-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(down)
	if _, err := a.run(down, "apt-get", append([]string{"download", "-q"}, packages...)...); err != nil {
		return err
	}
	archives, _ := filepath.Glob(filepath.Join(down, "*.deb"))
	for _, deb := range archives {
		if out, err := exec.Command("dpkg-deb", "-x", deb, into).CombinedOutput(); err != nil {
			return fmt.Errorf("%w: unpacking %s: %w: %s", ErrFetch, filepath.Base(deb), err, out)
		}
	}
	return nil
}

// packageOf names the Debian package of a program that a host may lack.
var packageOf = map[string]string{
	"qemu-system-x86_64": "qemu-system-x86", "qemu-system-aarch64": "qemu-system-arm", "busybox": "busybox-static",
	"ip": "iproute2", "tc": "iproute2",
	"setpriv": "util-linux", "unshare": "util-linux", "ethtool": "ethtool", "xz": "xz-utils", "zstd": "zstd",
	"gzip": "gzip",
}
