// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

// examples are in both helps.
const examples = `  xdpfabd --interface eth0 --region counters=64KiB
  xdpfabd --interface eth0 --region counters=64KiB --region scores=1MiB:ro,key=0x7
  xdpfabd --interface eth0 --region counters=64KiB --region hot=4KiB:resident
  xdpfabd --interface eth0 --region ledger=1GiB:backing=/var/lib/xdpfabd/ledger
  xdpfabd --interface eth0 --region ledger=1MiB:auth-key=/etc/xdpfab/ledger.key
  xdpfabd --interface eth0 --socket-group fabric --guest allow:group=fabric,memory=1GiB
  xdpfabd --config /etc/xdpfab/xdpfabd.toml --cores 2,3 --log-format json
  xdpfabd --config xdpfabd.toml --check
  xdpfabd --interface eth0 --region counters=64KiB --print-config > xdpfabd.toml`

// brief is the text of --help: a line for each flag, by what people want to do.
const brief = `xdpfabd serves named memory regions on a network interface: other nodes run atomic
operations on them. The interface keeps its other traffic.

Usage:
  xdpfabd --interface eth0 --region counters=64KiB [flags]
  xdpfabd --config /etc/xdpfab/xdpfabd.toml [flags]    flags override the file's keys

What to serve:
  -i, --interface NAME       network interface; one daemon for each
      --region NAME=SIZE     a region; also NAME=SIZE:OPTION,... with the options ro, wo, rw,
                             memfd, resident (outlives a killed daemon), backing=/PATH,
                             key=0x7, huge=require, auth-key=/PATH; repeatable
      --config FILE          TOML file of these settings; its keys are the flags' names

Who may use it:
      --guest RULE           which programs may attach, e.g. allow:group=fabric; repeatable
      --control PATH         control socket (/run/xdpfabd/INTERFACE.sock)
      --socket PATH          another control socket, such as one for a container; repeatable
      --socket-group GROUP   group of the control socket
      --socket-mode MODE     its permissions (0660)

How frames travel:
      --transport WAY        xdp, udp (sockets: no privilege, slower) or auto (xdp)
      --xdp MODE             auto, native, generic or any (auto)
      --copy MODE            auto, copy or zero-copy (auto)
      --udp=false            raw Ethernet alone, without UDP port 34997
      --vlan ID              untagged, any or one VLAN (untagged)

Operation:
      --check                check the configuration, and exit
      --takeover             replace the daemon that serves the interface; sessions continue
      --print-config         print all settings as TOML, and exit
      --metrics-address H:P  Prometheus metrics, /healthz and /readyz
      --directory URL        entry of this node in etcd://HOST:PORT
      --node NAME            its name there (the host's)
      --log-level LEVEL      debug, info, warn or error (info)
      --log-format FORMAT    text or json (text)
      --pin FOLDER           where resident regions outlive the daemon (auto)
      --leave                leave them there when the daemon ends

Tuning (docs/tuning.md):
      --queues N             queues to use (four, or all if there are fewer)
      --cores LIST           CPUs of the queues' pollers, e.g. 2,3
      --spin TIME            spin before an idle poller sleeps (50µs)
      --busy-poll TIME       pollers run the NIC's driver; --busy-budget N frames per call
      --steer                have the NIC deliver to these queues; --unsteer undoes what a
                             killed daemon left, and exits
      --spread               distribute sessions over the queues
      --lend N               queues to lend to programs
      --window N             request frames in flight per session (64)
      --give-up TIME         silence after which operations to a peer fail (5s)
      --rto-min TIME         least time before a retransmission (10ms)
      --base-rtt TIME        round trip of the idle network (50µs)
      --idle-retire TIME     silence after which a session is forgotten (1m30s)
      --sessions N           sessions per queue (16384); --resident-sessions N (256)

      --help-all             all of the help: every option, signals, takeovers, exit codes;
                             the manual page xdpfabd(8) is the same
  -h, --help   -v, --version

Privileges: root, or CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF, CAP_PERFMON and CAP_IPC_LOCK.
Exit codes: 0 ended on request; 1 failure; 2 wrong arguments or configuration;
5 the interface or the control socket cannot be used.
Guides: docs/operations.md; examples: xdpfabd --help-all.
`

// long is the text of --help-all and of the manual page above the flags.
const long = `xdpfabd serves named memory regions on a network interface: other nodes run
atomic operations on them. The interface keeps its other traffic.

The configuration comes from the file, if --config names one; flags override it. A
flag has the name of the file's key. --region replaces the file's region of the
same name, or adds one:

  --region name=size[:option[,option]...]   without =size: a file, as large as it is
  option: ro, wo, rw, memfd, resident, key=0x7, access=read|write|both,
          backing=anonymous|memfd|resident|/path, huge=auto|never|require,
          auth-key=/path; a comma in a path is \,

Any peer that can reach the interface can use a region as its access says, unless the
region has an auth-key. Then peers have to prove the key in that file: 16 to 64 random
bytes, which other users must not be able to read. Clients prove it with --auth-key-file.

The XDP program itself executes the operations of peers on a resident region,
without a poller. This needs Linux 5.18. If the daemon is killed, the kernel keeps
serving resident regions and the sessions that use them. The next daemon takes back the
regions, and warns of those that its configuration does not name. It refuses to start if
it has the name of one with another size or backing.
--pin names the folder of this state. A daemon that ends normally removes the state
and tells its peers, unless --leave is given; "xdpfab resident remove" removes the
state of a dead daemon.

"xdpfab region create" and "xdpfab region remove" add and remove regions of any kind
while the daemon runs. To keep a region after a restart, put it into the configuration,
too.

Programs on this machine use the interface through the daemon: they open it as
usual, attach at the control socket, and need no privilege. --socket-group and
--socket-mode decide who can write to the socket; rules decide which of these programs
may attach. The first rule that fits a program's user and groups decides; if none fits,
only root and the daemon's own user may attach. Rules are [[guest]] in the file; rules
of --guest come before them:

  --guest allow|deny[:setting[,setting]...]
  setting: user=NAME, group=NAME (or numbers; left out: any), socket=PATH to which
           the program connects (left out: any), serve=PATTERN of names of regions
           (* for any text; empty: none), guests (programs at a time); limits of
           each: entries, arena, arrivals, endpoints, peers, regions, memory, host
           (the daemon's own memory); limits of all programs of the rule together:
           total (memory), kept (regions that outlive their programs); queues, which
           programs of one user may borrow; weight, its share in proportion to
           others' weights

More control sockets, say one for each container, are [[socket]] in the file, or:

  --socket path[:setting[,setting]...]
  setting: mode=0660, group=NAME

SIGTERM and SIGINT end the daemon: it closes its sessions and releases the
interface. A second signal ends it at once, unless it comes within a second of the
first. SIGHUP changes nothing, because the daemon reads its configuration only once.
SIGQUIT ends it at once, with its stacks for a report of a bug on the standard error.
To apply a new configuration, use --takeover, as "systemctl reload" does.

Peers reach the daemon by the interface's MAC address, and over UDP by the IP
addresses that the interface has at each moment; it may have none at the start.
The daemon continues while the interface is down, and when its name changes. It ends
with code 1 when peers can no longer reach it: the interface is removed, replaced,
moved to another network namespace or given another hardware address, another
program detaches the XDP program, or the MTU is set below its value at the start.
Raising the MTU and setting it back does no harm. With --transport udp the daemon
notices none of this: until it is stopped, it serves the IP addresses that the interface
had at the start.

` + takeoverHelp + `

The daemon needs CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF and CAP_PERFMON, and
CAP_IPC_LOCK or a sufficient limit of locked memory (ulimit -l). It does not need
root.

Exit codes: 0 the daemon ended on request; 1 failure; 2 wrong arguments or
configuration; 5 the interface is missing, in use or unsuitable, the control socket is in
use or cannot be made, or privileges are missing.`
