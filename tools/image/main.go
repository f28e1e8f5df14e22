// SPDX-License-Identifier: Apache-2.0

// Command image writes a container image with the programs: an OCI image layout in a tar
// file, which podman load, ctr images import, skopeo and docker load (25 and later) read. No
// container engine takes part. The same programs make the same image.
//
//	image FILE.tar NAME BIN...      the programs have to be static
package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: image FILE.tar NAME BIN...")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// write makes the image, and the file.
func write(file, name string, programs []string) error {
	img, err := build(programs)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "xdpfab-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	at, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	// The name is that of ctr and podman, the reference that of skopeo and docker.
	err = at.AppendImage(img, layout.WithAnnotations(map[string]string{
		"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}))
	if err != nil {
		return err
	}
	return pack(file, dir)
}

// build makes an image of one layer: the programs, and the folders that they use.
func build(programs []string) (v1.Image, error) {
	content, err := files(programs)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	img, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1),
		types.OCIConfigJSON), layer)
	if err != nil {
		return nil, err
	}
	c, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	c = c.DeepCopy()
	c.OS, c.Architecture = "linux", runtime.GOARCH
	c.Config.Entrypoint = []string{"/usr/bin/xdpfabd"}
	c.Config.Env = []string{"PATH=/usr/bin"}
	c.Config.Labels = map[string]string{"org.opencontainers.image.licenses": "Apache-2.0"}
	return mutate.ConfigFile(img, c)
}

// files is the layer, as tar, with one time for all.
func files(programs []string) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	add := func(name string, mode int64, data []byte) error {
		h := &tar.Header{Name: name, Mode: mode, Size: int64(len(data)), ModTime: time.Unix(0, 0), Typeflag: tar.TypeReg}
		if name[len(name)-1] == '/' {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err := w.Write(data)
		return err
	}
	var err error
	for _, d := range []string{"etc/", "run/", "run/xdpfabd/", "usr/", "usr/bin/", "var/", "var/lib/", "var/lib/xdpfabd/"} {
		err = errors.Join(err, add(d, 0o755, nil))
	}
	err = errors.Join(err, add("tmp/", 0o1777, nil),
		add("etc/passwd", 0o644, []byte("root:x:0:0:root:/:/sbin/nologin\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n")),
		add("etc/group", 0o644, []byte("root:x:0:\nnogroup:x:65534:\n")))
	for _, p := range programs {
		if err := static(p); err != nil {
			return nil, err
		}
		data, e := os.ReadFile(p)
		if e == nil {
			e = add("usr/bin/"+filepath.Base(p), 0o755, data)
		}
		err = errors.Join(err, e)
	}
	return b.Bytes(), errors.Join(err, w.Close())
}

// static refuses a program that needs a dynamic linker: the image has none.
func static(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("%s needs libraries, and the image has none: want it built with CGO_ENABLED=0", path)
		}
	}
	return nil
}

// pack puts a folder into a tar file.
func pack(file, dir string) (err error) {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := tar.NewWriter(f)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		h := &tar.Header{Name: rel, Mode: 0o644, Size: int64(len(data)), ModTime: time.Unix(0, 0)}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	})
	return errors.Join(err, w.Close())
}
