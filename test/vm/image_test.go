// SPDX-License-Identifier: Apache-2.0

//go:build linux

package vm

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNoKernel(t *testing.T) {
	c, err := OpenCache(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"/no/such/vmlinuz": "/no/such/vmlinuz: no such file",
		"6.66":             `"6.66" is neither a file nor one of 5.10, 6.1, 6.12, sid`,
		write(t, "text", strings.Repeat("x", 1<<16)): "not a kernel image for x86 or arm64",
		write(t, "short", "x"):                       "not a kernel image for x86 or arm64",
	} {
		_, err := c.Kernel(name, AMD64, "", false)
		fails(t, err, ErrKernel, want)
	}
}

// image is the beginning of a bzImage that says its release.
func image(t *testing.T, release string) string {
	b := make([]byte, 4096)
	copy(b[setupHeader:], "HdrS")
	b[kernelString+1] = 4
	copy(b[setupBase+0x400:], release+" (builder) #1\x00")
	return write(t, "boot/vmlinuz", string(b))
}

func TestReleaseAndModules(t *testing.T) {
	path := image(t, "6.5.4-test")
	_, err := OpenKernel(path, "")
	fails(t, err, ErrKernel, "6.5.4-test", "-modules")
	modules := filepath.Join(filepath.Dir(path), "../usr/lib/modules/6.5.4-test")
	if err := os.MkdirAll(modules+"/kernel", 0o755); err != nil {
		t.Fatal(err)
	}
	k, err := OpenKernel(path, "")
	if err != nil || k.Release != "6.5.4-test" {
		t.Fatalf("%+v, %v", k, err)
	}

	_, err = modulesOf(k, nil)
	fails(t, err, ErrModules, "modules.builtin")
	put := func(name, content string) {
		if err := os.WriteFile(filepath.Join(modules, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("modules.builtin", "kernel/drivers/virtio/virtio_pci.ko\n")
	_, err = modulesOf(k, nil)
	fails(t, err, ErrModules, "virtio_console", "-modules")
	put("kernel/veth.ko", "not ELF")
	_, err = modulesOf(k, nil)
	fails(t, err, ErrModules, "veth.ko", "not a kernel module")
	put("kernel/veth.ko", "")
	if err := os.Rename(modules+"/kernel/veth.ko", modules+"/kernel/veth.ko.xz"); err != nil {
		t.Fatal(err)
	}
	put("kernel/veth.ko.xz", "not compressed")
	_, err = modulesOf(k, nil)
	fails(t, err, ErrModules, "veth.ko.xz")
}

// The archive has the format of cpio(5).
func TestArchive(t *testing.T) {
	var b bytes.Buffer
	a := newArchive(&b)
	a.file("/a/b/c", 0o644, []byte("content"))
	a.symlink("a/l", "b/c")
	a.dir("a/b")
	if err := a.close(); err != nil {
		t.Fatal(err)
	}
	var names []string
	for at := 0; at < b.Len(); {
		h := b.Bytes()[at:]
		if string(h[:6]) != "070701" {
			t.Fatalf("at %d: %q", at, h[:6])
		}
		field := func(i int) (n int) {
			for _, c := range h[6+8*i : 14+8*i] {
				n = n<<4 | strings.IndexByte("0123456789abcdef", c)
			}
			return n
		}
		size, length := field(6), field(11)
		names = append(names, string(h[110:110+length-1]))
		data := (110 + length + 3) &^ 3
		if names[len(names)-1] == "a/b/c" && string(h[data:data+size]) != "content" {
			t.Errorf("content %q", h[data:data+size])
		}
		at += (data + size + 3) &^ 3
	}
	if got := strings.Join(names, " "); got != "a a/b a/b/c a/l TRAILER!!!" {
		t.Errorf("entries %s", got)
	}
	a = newArchive(&b)
	a.file("x", 0o644, nil)
	a.file("x", 0o644, nil)
	if err := a.close(); err == nil {
		t.Error("a file may be there twice")
	}
}

func TestWarnings(t *testing.T) {
	const log = `[    0.1] Spectre V2 : WARNING: Unprivileged eBPF is enabled
[    0.2] clocksource: Marking clocksource 'tsc' as unstable
[    1.0] WARNING: CPU: 0 PID: 1 at net/core/dev.c:1
[    2.0][  T1] BUG: unable to handle page fault
WARNING: suspicious RCU usage
<4>[    3.0] Oops: 0000 [#1]`
	if got := warnings(log); len(got) != 4 {
		t.Errorf("%q", got)
	}
}
