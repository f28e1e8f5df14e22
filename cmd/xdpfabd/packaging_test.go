// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// packaging is where the files are that go with the programs.
const packaging = "../../packaging"

// unit returns the text of the systemd unit.
func unit(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(packaging, "xdpfabd@.service"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The unit says what it has to: names of interfaces as they are where programs read them,
// and escaped where units do. make test-package runs it.
func TestUnit(t *testing.T) {
	text := unit(t)
	section, settings := "", map[string][]string{}
	for _, line := range strings.Split(text, "\n") {
		key, value, is := strings.Cut(line, "=")
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			section = line
		case !is || !regexp.MustCompile(`^[A-Z][A-Za-z]+$`).MatchString(key):
			t.Errorf("%q is neither section nor setting", line)
		default:
			settings[section+key] = append(settings[section+key], value)
		}
	}
	const device = "sys-subsystem-net-devices-%i.device"
	for key, want := range map[string]string{
		"[Unit]BindsTo": device, "[Unit]After": device, "[Install]WantedBy": device,
		"[Service]ExecStart": "--interface %I", "[Service]ExecReload": "--interface %I", "[Service]Type": "notify",
		"[Service]BindPaths": bpffs + "/xdpfab", "[Service]RuntimeDirectoryPreserve": "yes",
	} {
		if got := strings.Join(settings[key], " "); !strings.Contains(got, want) {
			t.Errorf("%s is %q, want %q in it", key, got, want)
		}
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("systemd-analyze is missing: systemd was not asked about the unit")
		return
	}
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Programs that are not installed would be complaints of their own.
	text = strings.NewReplacer("/usr/bin/xdpfabd", own, "/usr/libexec/xdpfab/takeover", own).Replace(text)
	at := filepath.Join(t.TempDir(), "xdpfabd@eth0.service")
	if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(analyze, "verify", "--man=no", at).CombinedOutput()
	if strings.Contains(string(out), "xdpfabd@") {
		t.Errorf("systemd-analyze verify: %v: %s", err, out)
	} else if len(out) > 0 { // of other units of this machine
		t.Logf("systemd-analyze verify: %v: %s", err, out)
	}
	// The scale is that of the command, in tenths: 2.6 of 10 in systemd 252.
	if out, err := exec.Command(analyze, "security", "--offline=true", "--threshold=30", at).CombinedOutput(); err != nil {
		t.Errorf("systemd-analyze security: %v: %s", err, out)
	}
}

// The configuration that is installed is right as it is, and with all that it proposes.
func TestShippedConfiguration(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(packaging, "xdpfabd.toml"))
	if err != nil {
		t.Fatal(err)
	}
	proposed := regexp.MustCompile(`(?m)^#([a-z[])`).ReplaceAllString(string(text), "$1")
	for what, c := range map[string]struct {
		text            string
		regions, guests int
	}{"as it is": {string(text), 1, 0}, "with all that it proposes": {proposed, 3, 1}} {
		cfg, err := check("interface = \"eth0\"\n" + c.text)
		if err != nil || len(cfg.Regions) != c.regions || len(cfg.Guests) != c.guests || !cfg.Leave {
			t.Errorf("%s: %v: %+v", what, err, cfg)
		}
	}
}

// A daemon serves with the configuration that is installed.
func TestProcessShippedConfiguration(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	p := launch(t, net.B, socketPath(t), nil, "--config", filepath.Join(packaging, "xdpfabd.toml"))
	addOnce(t, net.A, p.ready(t).Address)
	p.signal(t, syscall.SIGTERM)
	if code := p.code(t); code != exitOK {
		t.Errorf("exit code %d, want 0", code)
	}
	checkClean(t, p)
}
