// SPDX-License-Identifier: Apache-2.0

//go:build linux

package testnet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// ProgramsEnv names a folder with the project's commands ready to run, for tests
// that run where there is no Go: inside a virtual machine.
const ProgramsEnv = "XDPFAB_PROGRAMS"

// Programs puts the named commands of cmd/ into a folder: it builds them, or
// copies them from the folder that ProgramsEnv names.
func Programs(dir string, names ...string) error {
	if from := os.Getenv(ProgramsEnv); from != "" {
		for _, n := range names {
			b, err := os.ReadFile(filepath.Join(from, n))
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, n), b, 0o755)
			}
			if err != nil {
				return fmt.Errorf("testnet: %s: %w", ProgramsEnv, err)
			}
		}
		return nil
	}
	args := []string{"build", "-o", dir + "/"}
	for _, n := range names {
		args = append(args, "github.com/xdpfab/xdpfab/cmd/"+n)
	}
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("testnet: building %v: %w\n%s", names, err, out)
	}
	return nil
}
