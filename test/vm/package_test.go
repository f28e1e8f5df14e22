// SPDX-License-Identifier: Apache-2.0

//go:build linux

package vm

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/test/vm/guest"
)

// debian is a guest with systemd. Its steps follow each other: one that fails ends the
// test.
type debian struct {
	t *testing.T
	m *Machine
}

// The folders that make test-package has made: packages, the same with a greater
// version, and a Debian 12.
const (
	debsEnv   = "XDPFAB_DEBS"
	nextEnv   = "XDPFAB_DEBS_NEXT"
	debianEnv = "XDPFAB_DEBIAN"
)

// TestPackage is the life of the packages on a machine with systemd: installed, started
// as they are, killed, restarted, upgraded under load, removed.
func TestPackage(t *testing.T) {
	if os.Getenv(debsEnv) == "" {
		t.Skip("takes packages, and a Debian: make test-package")
	}
	d := bootDebian(t, map[string]string{"/root/debs": os.Getenv(debsEnv), "/root/next": os.Getenv(nextEnv)},
		`ip netns add peer
		for i in 0 1; do
			ip link add veth$i type veth peer name peer$i netns peer
			ip address add 10.9.$i.1/24 dev veth$i
			ip link set veth$i up
			ip -n peer address add 10.9.$i.2/24 dev peer$i
			ip -n peer link set peer$i up
		done`)
	d.slow()
	for _, step := range []struct {
		name string
		do   func(*debian)
	}{
		{"install", (*debian).install}, {"instances", (*debian).instances}, {"upgrade", (*debian).upgrade},
		{"refused reload", (*debian).refusedReload}, {"example", (*debian).example},
		{"interface", (*debian).comesAndGoes}, {"deaths", (*debian).deaths}, {"remove", (*debian).remove},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.do(&debian{t, d.m}) }) {
			said, _, err := d.try("journalctl --no-pager -n 80; systemctl --no-pager --failed")
			t.Log(said, err)
			break
		}
	}
}

// bootDebian boots the guest with files, and runs a script that sets up its network:
// veths, whose other ends are in a namespace for another node.
func bootDebian(t *testing.T, files map[string]string, network string) *debian {
	t.Helper()
	k := kernel(t, "6.1")
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	t.Cleanup(cancel)
	accel, _, err := cached(t).Accel(ctx, Auto, k)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Start(ctx, Config{
		Image: Image{Kernel: k, Debian: os.Getenv(debianEnv), Files: files},
		Accel: accel, BootLimit: 12 * time.Minute, Silence: 3 * time.Minute,
		Append: "net.ifnames=0 systemd.show_status=0 systemd.log_level=notice",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	t.Logf("systemd is up after %v (%s)", m.Booted.Round(time.Second), accel)
	d := &debian{t, m}
	d.run(network)
	return d
}

// slow gives instances an hour to open their interface: in a guest that is translated on
// a busy host, the kernel has checked the program of resident regions for as long as the
// five minutes of the unit.
func (d *debian) slow() {
	d.run(`mkdir -p /etc/systemd/system/xdpfabd@.service.d
		printf '[Service]\nTimeoutStartSec=1h\n' >/etc/systemd/system/xdpfabd@.service.d/slow.conf
		systemctl daemon-reload`)
}

// try runs a script, and returns what it says, with its exit code if that is not 0.
func (d *debian) try(script string) (said string, code int, err error) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	defer cancel()
	var out bytes.Buffer
	code, err = d.m.Run(ctx, guest.Command{Args: []string{"/bin/sh", "-euc", script}, Dir: "/root"}, &out, &out)
	return strings.TrimSpace(out.String()), code, err
}

// run runs a script that has to succeed.
func (d *debian) run(script string) string {
	d.t.Helper()
	said, code, err := d.try(script)
	if code != 0 || err != nil {
		d.t.Fatalf("%s\ncode %d, %v: %s", script, code, err, said)
	}
	return said
}

// says runs a script whose output has to be what is wanted.
func (d *debian) says(script, want string) {
	d.t.Helper()
	if got := d.run(script); got != want {
		d.t.Fatalf("%s\n got %s\nwant %s", script, got, want)
	}
}

// until runs a script until it succeeds.
func (d *debian) until(script string) {
	d.t.Helper()
	var said string
	for end := time.Now().Add(8 * time.Minute); time.Now().Before(end); time.Sleep(time.Second) {
		var code int
		var err error
		if said, code, err = d.try(script); err != nil {
			d.t.Fatal(err)
		} else if code == 0 {
			return
		}
	}
	d.t.Fatalf("%s\nnot within eight minutes: %s", script, said)
}

// add adds one to the first word of a region of the daemon on a veth, from the other
// node, and wants what was there.
func (d *debian) add(veth int, region string, want int) {
	d.t.Helper()
	d.says(d.operation(veth, "sum uint64 1", region), fmt.Sprint(want))
}

// operation is a script by which the other node operates on the first word of a region of
// the daemon on a veth, and says what was there.
func (d *debian) operation(veth int, op, region string) string {
	return fmt.Sprintf("ip netns exec peer xdpfab atomic %s -i peer%d --peer 10.9.%d.1 --json --region %s >/tmp/said; "+
		`sed 's/.*"before":\["\([0-9]*\)"\].*/\1/' /tmp/said`, op, veth, veth, region)
}

// debs are the packages of a folder.
func debs(env string) string {
	return "/root/" + map[string]string{debsEnv: "debs", nextEnv: "next"}[env] + "/*.deb"
}

// The packages install into a minimal system; nothing runs yet, and nothing but the
// files has changed.
func (d *debian) install() {
	d.run("dpkg -i " + debs(debsEnv))
	d.run("getent passwd xdpfab; test -e /usr/share/man/man8/xdpfabd.8.gz; xdpfab --version")
	d.says("systemctl list-units --all --plain --no-legend 'xdpfabd@*'", "")
	d.run("FI_LOG_LEVEL=warn fi_info --list | grep -q xdpfab")
}

// Two instances serve each its interface, as they are; one that stops takes nothing away
// from the other.
func (d *debian) instances() {
	d.run("systemctl enable --now xdpfabd@veth0 xdpfabd@veth1")
	d.says("systemctl is-active xdpfabd@veth0 xdpfabd@veth1", "active\nactive")
	if said := d.run("journalctl --no-pager -o cat -u xdpfabd@veth0"); strings.Contains(said, "WARN") {
		d.t.Errorf("the daemon warns: %s", said)
	}
	d.says("stat -c %U:%a /sys/fs/bpf/xdpfab; stat -c %a /sys/fs/bpf", "xdpfab:700\n1700")
	d.add(0, "counters", 0)
	d.add(1, "counters", 0)
	d.run("systemctl stop xdpfabd@veth0; xdpfab stat --interface veth1 >/dev/null")
	d.t.Log(d.run("systemd-analyze security xdpfabd@veth1 | tail -n 1"))
}

// A reload adds a resident region. Then an upgrade has the next release take over while
// a peer adds to it, and to another one, and so does one more reload: every addition
// counts once, sessions notice nothing, and the XDP program executes all the while.
func (d *debian) upgrade() {
	d.run(`cp /etc/xdpfab/xdpfabd.toml /root/plain.toml
		printf '[[region]]\nname = "hot"\nsize = "4KiB"\nbacking = "resident"\n# mine\n' >>/etc/xdpfab/xdpfabd.toml`)
	d.replaces("systemctl reload xdpfabd@veth1")
	d.add(1, "hot", 0)
	d.run(`systemd-run --quiet --unit=far -p Type=notify ip netns exec peer xdpfabd --interface peer1 --give-up 10m \
		--control /run/far.sock`)
	for _, region := range []string{"counters", "hot"} {
		d.run(`systemd-run --quiet --unit=load-` + region + ` -p KillSignal=SIGINT \
			-p StandardOutput=file:/root/` + region + `.json ip netns exec peer xdpfab bench 10.9.1.1 \
			--control /run/far.sock --region ` + region + ` --duration 1h --timeout 10m --json`)
		d.goesOn()
	}
	for _, next := range []string{"dpkg -i " + debs(nextEnv), "systemctl reload xdpfabd@veth1"} {
		d.replaces(next)
		d.says("systemctl is-active xdpfabd@veth1 load-counters load-hot", "active\nactive\nactive")
		d.goesOn()
	}
	d.says("systemctl show -P NRestarts xdpfabd@veth1", "0")
	for _, region := range []string{"counters", "hot"} {
		d.run("systemctl stop load-" + region)
		report := d.run("cat /root/" + region + ".json")
		if !strings.Contains(report, `"verified":true`) {
			d.t.Fatalf("the load of %s says %s", region, report)
		}
		d.t.Log(report)
	}
	d.run("systemctl stop far")
	if kept := d.run(d.operation(1, "read uint64", "hot")); kept == "0" || kept == "1" {
		d.t.Fatalf("the resident region holds %s after two takeovers", kept)
	}
	d.run("tail -n 1 /etc/xdpfab/xdpfabd.toml | grep -q mine") // a configuration that was changed stays
	d.run("cp /root/plain.toml /etc/xdpfab/xdpfabd.toml")
	d.replaces("systemctl reload xdpfabd@veth1")
	if said, code, err := d.try(d.operation(1, "read uint64", "hot")); code == 0 || err != nil {
		d.t.Fatalf("the region that the configuration lacks is there: %s, %v", said, err)
	}
}

// replaces runs a script by which another process becomes the daemon of veth1.
func (d *debian) replaces(script string) {
	d.t.Helper()
	const pid = "systemctl show -P MainPID xdpfabd@veth1"
	was := d.run(pid)
	if d.run(script); d.run(pid) == was {
		d.t.Fatalf("%s: process %s is still the daemon: %s", script, was,
			d.run("journalctl --no-pager -o cat -n 40 -u xdpfabd@veth1"))
	}
}

// goesOn wants the daemon of veth1 and, if the load is on, its XDP program to execute
// more than they have, each in less than eight minutes.
func (d *debian) goesOn() {
	d.t.Helper()
	counters := []string{"ops_executed"}
	if _, code, _ := d.try("systemctl is-active load-hot"); code == 0 {
		counters = append(counters, "resident_ops_executed")
	}
	for _, counter := range counters {
		executed := "xdpfab stat --interface veth1 --json | sed 's/.*\"" + counter + "\":\\([0-9]*\\).*/\\1/'"
		d.until("[ $(" + executed + ") -gt $((" + d.run(executed) + " + 100)) ]")
	}
}

// A reload with a configuration that cannot be fails, says why, and leaves the daemon
// alone.
func (d *debian) refusedReload() {
	pid := d.run("systemctl show -P MainPID xdpfabd@veth1")
	d.run("cp /etc/xdpfab/xdpfabd.toml /root/right.toml; echo 'nonsense = 1' >>/etc/xdpfab/xdpfabd.toml")
	if said, code, err := d.try("systemctl reload xdpfabd@veth1"); code == 0 || err != nil {
		d.t.Errorf("the reload succeeds: %s, %v", said, err)
	}
	d.run("journalctl --no-pager -o cat -u xdpfabd@veth1 | grep -q nonsense")
	d.run("cp /root/right.toml /etc/xdpfab/xdpfabd.toml")
	d.says("systemctl show -P MainPID xdpfabd@veth1; systemctl is-active xdpfabd@veth1", pid+"\nactive")
	d.run("systemctl reload xdpfabd@veth1")
	d.says("systemctl is-active xdpfabd@veth1", "active")
	d.run("ip netns exec peer xdpfab list 10.9.1.1 -i peer1")
}

// The example with every key starts as it is. A program attaches to it.
func (d *debian) example() {
	d.run(`mkdir -p /etc/systemd/system/xdpfabd@veth1.service.d
		printf '[Service]\nEnvironment=CONFIG=/usr/share/doc/xdpfab/xdpfabd.example.toml\n' \
			>/etc/systemd/system/xdpfabd@veth1.service.d/config.conf
		systemctl daemon-reload
		systemctl restart xdpfabd@veth1
		test -s /var/lib/xdpfabd/ledger; test -S /run/xdpfabd/box/xdpfab.sock
		xdpfab info veth1 >/dev/null
		systemctl stop xdpfabd@veth1; rm -r /etc/systemd/system/xdpfabd@veth1.service.d; systemctl daemon-reload
		systemctl start xdpfabd@veth1`)
}

// An instance stops with its interface, and starts again with it.
func (d *debian) comesAndGoes() {
	d.run("ip link del veth1")
	d.until("[ $(systemctl is-active xdpfabd@veth1) = inactive ]")
	d.run(`ip link add veth1 type veth peer name peer1 netns peer; ip link set veth1 up; ip -n peer link set peer1 up`)
	d.until("systemctl is-active xdpfabd@veth1 && xdpfab stat --interface veth1")
}

// A resident region outlives the daemon, killed or restarted; another one does not. The
// instance has a configuration of its own.
func (d *debian) deaths() {
	d.run(`(cat /etc/xdpfab/xdpfabd.toml; printf '[[region]]\nname = "hot"\nsize = "4KiB"\nbacking = "resident"\n') \
			>/etc/xdpfab/veth0.toml
		mkdir -p /etc/systemd/system/xdpfabd@veth0.service.d
		printf '[Service]\nEnvironment=CONFIG=/etc/xdpfab/veth0.toml\n' \
			>/etc/systemd/system/xdpfabd@veth0.service.d/own.conf
		systemctl daemon-reload
		systemctl start xdpfabd@veth0`)
	d.add(0, "hot", 0)
	d.add(0, "counters", 0)
	d.run("systemctl kill -s KILL xdpfabd@veth0")
	d.until("[ $(systemctl show -P NRestarts xdpfabd@veth0) = 1 ] && systemctl is-active xdpfabd@veth0")
	d.add(0, "hot", 1)
	d.add(0, "counters", 0)
	d.run("systemctl restart xdpfabd@veth0")
	d.add(0, "hot", 2)
	d.add(0, "counters", 0)
}

// What is removed leaves nothing that runs, nothing in the kernel, and the interfaces
// free; what is purged leaves the data alone.
func (d *debian) remove() {
	d.run("systemctl stop xdpfabd@veth0; ip -d link show veth0 | grep -q xdp") // the kernel goes on
	d.run("dpkg -r xdpfab-provider xdpfab")
	d.says("ip -d link show | grep xdp || :; ls -A /sys/fs/bpf; ls /run | grep xdpfab || :; pgrep xdpfabd || :", "")
	d.run("test -e /etc/xdpfab/xdpfabd.toml; rm /etc/xdpfab/veth0.toml; dpkg -P xdpfab")
	d.says("find / -xdev -name '*xdpfab*' ! -path '/root/*' ! -path '/proc/*' ! -path '/sys/*'", "/var/lib/xdpfabd")
	d.says("ls /var/lib/xdpfabd; dpkg -l | grep xdpfab || :", "ledger")
}
