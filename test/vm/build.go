// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// Root is the folder of this module.
var Root = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	mod := strings.TrimSpace(string(out))
	if mod == "" || mod == os.DevNull {
		return "", fmt.Errorf("not inside of a checkout of xdpfab: cd to it")
	}
	return filepath.Dir(mod), nil
})

// goTool runs the go command at the module's root, for an architecture. Its programs are
// static: they need nothing but a kernel.
func goTool(a *Arch, args ...string) ([]byte, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+a.Name, "GOFLAGS=")
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s%s", strings.Join(args, " "), err, out, complaint.Bytes())
	}
	return out, nil
}

// strip omits the symbols, for which a guest has no use.
const strip = "-ldflags=-s -w"

// goBuild builds a program, with more flags if there are any. The commit does not
// matter here, and git may refuse to tell it to a user that does not own the
// checkout.
func goBuild(a *Arch, to, program string, flags ...string) error {
	_, err := goTool(a, append(append([]string{"build", strip, "-buildvcs=false", "-o", to}, flags...), program)...)
	return err
}
