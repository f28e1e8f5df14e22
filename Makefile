# SPDX-License-Identifier: Apache-2.0
#
#   make demo    two namespaces, a daemon, a client: everything once, for real
#   make fast    lint and the tests that need no root: for the loop at the desk
#   make test    every test: unit, fuzz seeds, XDP program, end to end
#   make test-race the tests of more than one thread, with the race detector
#   make test-long the same searches for longer, and everything with the race detector
#   make test-vm the tests that need a kernel, in a virtual machine, without root
#   make check   lint, generated code, test, test-race, test-vm; CI runs .ci/run
#   make provider the libfabric provider, in C; make provider-check: its tests with sanitizers
#   make fabtests libfabric's own tests of the provider, and beside it of rxm
#   make mpi-check: Open MPI and MPICH on it
#   make bench-provider: a program in C, by the provider, beside one in Go
#   make install, make uninstall: programs, manual, completion, systemd unit, provider if it
#                was built; PREFIX, DESTDIR. make deb: packages for Debian and Ubuntu; make
#                test-package, test-newcomer: their life, and a newcomer's first minutes, in a
#                guest with systemd. make image: for containers
#   make bench   xdpfab beside the floor and its peers; bench-quick: within 90 s; bench-sync: locks and
#                counters beside etcd, Redis and NATS
#
# As root on Debian or Ubuntu, each target installs the tools that it lacks;
# otherwise it says what to install.

GO      ?= go
PKGS    := ./...
TOOLS   := $(GO) tool -modfile=tools/go.mod
# With the race detector: what has more than one thread. The detector slows everything
# down tenfold, so with -short these packages shorten their long computations. Four kinds
# of tests are left out: those of kernel objects, which run the same code as a Pipe but
# wait longer; the longest that post from one goroutine; those that count allocations; and
# one of the ways of making progress, since "guest" has the threads of host and guest, and
# "manual" has callers that make progress.
RACE    := ./xdpfab ./xdpfab/fi ./xdpfab/sync ./internal/engine ./cmd/xdpfabd ./mr ./atomic $(addprefix ./internal/,calls control executor host matching memory port progress route share sharedav testnet/faultwire)
RACEONE := Conservation|NamesAtRandom|NoticeFates|ScatterFates|Transfers|WholeWindowBesideStrangers|NoRoomIsNoSilence|PollRunsTimersOfRareCallers|Vector|TaggedAtomicLimits|EveryKindOfCall|LongMessage|UDPMTUChanges
RACENOT := ^Test(Veth|Resident|TakeoverResident|TakeoverBorrow|TakeoverKeptQueue|Borrow)|^Test($(RACEONE))$$|NotAllocate$$|/^manual guest$$
# make test-long: also the rest, but not what has one thread only.
RACELONG = $(shell $(GO) list ./xdpfab/... ./internal/engine ./cmd/... ./atomic ./xsk ./mr ./internal/... | grep -vE '/(sim|layout|histogram|errno|version|value)$$')
# One build serves the tests, lint, and the guests of test/vm, which have no shared
# libraries. The race detector takes cgo, which is what make build has by default.
NOCGO   := CGO_ENABLED=0
# Packages are tested in the order in which they are named: the longest begin first, so
# that none of them is left over when the others are done.
LONGEST := ./test/e2e ./xdpfab/fi ./xdpfab ./test/soak ./internal/sim ./internal/engine
# Packages at a time, and tests at a time of those that say so. Many tests wait more than
# they compute, so more than there are cores; each makes its own network namespaces.
SIDE    := -p 4 -parallel 8

.PHONY: all build demo fast test test-race test-long test-unit test-vm test-vm-self test-matrix test-nic test-nic-suites test-nic-short test-arm64 bench bench-build bench-quick bench-guard bench-go bench-pgo sim sim-bugs soak soak-messages soak-deaths fuzz lint deletable lint-here lint-arm64 lint-portable generate generate-check check clean

all: build

build:
	@scripts/need go
	$(GO) build -o bin/ ./cmd/...

# Packages for Debian and Ubuntu, in bin/deb: the programs, and the provider.
.PHONY: deb
deb: pages provider
	@scripts/need dpkg-shlibdeps dpkg-deb
	scripts/deb bin/deb

# A container image, made without a container engine: podman load -i, ctr images import, docker
# load -i. deploy/kubernetes has manifests for it.
.PHONY: image
IMAGE ?= registry.example/xdpfab:latest
image:
	@scripts/need go
	$(NOCGO) $(GO) build -trimpath -ldflags='-s -w' -o bin/image/ ./cmd/xdpfab ./cmd/xdpfabd
	cd tools && $(NOCGO) $(GO) run ./image ../bin/xdpfab-image.tar $(IMAGE) ../bin/image/xdpfab ../bin/image/xdpfabd

# The packages in a Debian 12 with systemd, in a virtual machine: installed, killed, restarted,
# upgraded under load, removed. Root makes that Debian once, in bin/debian.
.PHONY: test-package
test-package: pages provider
	@scripts/need $(VMNEED) root debootstrap dpkg-shlibdeps dpkg-deb
	rm -rf bin/deb bin/deb-next
	DEBCOMPRESS=none scripts/deb bin/deb
	DEBCOMPRESS=none DEBVERSION=99.next scripts/deb bin/deb-next
	scripts/debian bin/debian
	XDPFAB_DEBS=$(CURDIR)/bin/deb XDPFAB_DEBS_NEXT=$(CURDIR)/bin/deb-next XDPFAB_DEBIAN=$(CURDIR)/bin/debian/root \
		$(NOCGO) $(GO) test -count=1 -timeout 120m -v -run '^TestPackage$$' ./test/vm -args -boot

# A newcomer's first minutes in such a Debian, by README's command lines: whether all is answered as
# docs/transcripts/newcomer.txt has it. UPDATE=1 writes that anew. 10 minutes on idle cores without KVM.
.PHONY: test-newcomer
test-newcomer: pages
	@scripts/need $(VMNEED) root debootstrap dpkg-shlibdeps dpkg-deb
	rm -rf bin/deb
	DEBCOMPRESS=none scripts/deb bin/deb
	scripts/debian bin/debian
	XDPFAB_DEBS=$(CURDIR)/bin/deb XDPFAB_DEBIAN=$(CURDIR)/bin/debian/root \
		$(NOCGO) $(GO) test -count=1 -timeout 60m -v -run '^TestNewcomer' ./test/vm -args -boot $(if $(UPDATE),-update)

# The libfabric provider. FI_PROVIDER_PATH=bin/provider has programs find it; where it is
# installed they find it by themselves.
.PHONY: provider install-provider
provider:
	@scripts/need gcc libc6-dev libfabric-dev
	$(MAKE) -C provider

install-provider: provider
	$(MAKE) -C provider install

# The manual and the completions, which the programs are asked for.
.PHONY: pages install uninstall
pages: build
	cd tools && $(NOCGO) $(GO) run ./pages ../bin ../bin/pages

install: pages
	PREFIX=$(PREFIX) DESTDIR=$(DESTDIR) scripts/install bin bin/pages

# What the same tree would install.
uninstall: pages
	PREFIX=$(PREFIX) DESTDIR=$(DESTDIR) scripts/install --remove bin bin/pages

# The provider and its programs with the sanitizers of gcc: memory, undefined behaviour and
# races; long searches in what a daemon says; 64 programs that exchange messages. Some
# 10 minutes. KILLS programs are killed under load, which takes half a second each.
.PHONY: provider-check soak-provider
CHECKED := CGO_ENABLED=0 $(GO) test -count=1 -vet=off -timeout 60m ./test/provider
provider-check:
	@scripts/need root go ip gcc libc6-dev libfabric-dev fi_info
	XDPFAB_LONG=1 $(CHECKED)
	XDPFAB_SANITIZE=address,undefined $(CHECKED)
	XDPFAB_SANITIZE=thread $(CHECKED) -run '^Test(Messages|Asleep|AutoProgress|FullQueue|Kills|Pauses|Stopped|Ranks)$$'

KILLS ?= 1000
soak-provider:
	@scripts/need root go ip gcc libc6-dev libfabric-dev fi_info
	XDPFAB_PROVIDER_KILLS=$(KILLS) $(CHECKED) -v -run '^TestKills$$'

# A program in C beside one in Go, as guests of the same daemons, in ROUNDS: fetch-adds with 1
# to 256 in flight.
ROUNDS ?= 5
.PHONY: bench-provider
bench-provider:
	@scripts/need root go ip gcc libc6-dev make libfabric-dev fi_info
	XDPFAB_PROVIDER_SPEED=$(ROUNDS) $(NOCGO) $(GO) test -count=1 -timeout 60m -v -run '^TestSpeed$$' ./test/provider

# libfabric's own tests, built from Debian's source, with the provider between two namespaces.
.PHONY: fabtests
fabtests:
	@scripts/need root go ip gcc libc6-dev libfabric-dev fi_info setpriv
	scripts/fabtests bin/fabtests
	XDPFAB_FABTESTS=$(CURDIR)/bin/fabtests $(NOCGO) $(GO) test -count=1 -timeout 60m -v -run '^Test(Fabtests.*|Ubertest)$$' ./test/provider

# The shortest of them, which make test runs, too, built against the libfabric that is
# installed: once, in half a minute.
SHORT := bin/fabtests-short
BUILDSHORT = scripts/fabtests-short $(SHORT) $$(awk '$$2 ~ /^fi_/ {print $$2}' test/provider/testdata/fabtests_short.txt | sort -u)
.PHONY: fabtests-short
fabtests-short:
	@scripts/need root go ip gcc libc6-dev libfabric-dev fi_info setpriv
	$(BUILDSHORT)
	XDPFAB_FABTESTS_SHORT=$(CURDIR)/$(SHORT) $(NOCGO) $(GO) test -count=1 -timeout 30m -v -run '^TestFabtestsShort$$' ./test/provider

# The directory of nodes in a real etcd, which is killed and restarted under load: the one
# that is installed, or Debian's, unpacked in bin/etcd.
.PHONY: test-directory
test-directory:
	@scripts/need root go ip apt-get
	etcd=$$(scripts/etcd bin/etcd) && export XDPFAB_ETCD=$$etcd && \
	$(NOCGO) $(GO) test -count=1 -timeout 20m -v ./xdpfab/directory/... && \
	$(NOCGO) $(GO) test -count=1 -timeout 20m -v -run '^TestDirectory' ./test/e2e

# Programs of MPI between two namespaces, in a Debian of their own in bin/mpi: Open MPI from
# packages, and MPICH from source, which takes half an hour of CPU. MPI names some of them.
MPI ?= openmpi mpich
.PHONY: mpi-check
mpi-check:
	@scripts/need root go ip gcc libc6-dev make libfabric-dev fi_info unshare
	scripts/mpi bin/mpi $(MPI)
	XDPFAB_MPI=$(CURDIR)/bin/mpi $(NOCGO) $(GO) test -count=1 -timeout 60m -v -run '^TestMPI$$' ./test/provider

# Prometheus's own tool on the alert rules, the expressions of the dashboard, and the metrics.
.PHONY: metrics-check
metrics-check:
	@scripts/need go promtool
	XDPFAB_PROMTOOL=1 $(NOCGO) $(GO) test -count=1 -run '^TestPromtool$$' ./internal/control

# Wireshark's dissector on captures of every kind of frame.
.PHONY: dissector-check
dissector-check:
	@scripts/need go tshark
	XDPFAB_TSHARK=1 $(NOCGO) $(GO) test -count=1 -run '^TestDissector' ./internal/wire

demo:
	@scripts/need root go ip
	@$(GO) build -o bin/ ./cmd/...
	@if command -v gcc >/dev/null && [ -e /usr/include/rdma/fi_atomic.h ]; then $(MAKE) -s -C provider; fi
	@bin/xdpfab demo

# The longest packages wait more than they compute, and leave the cores to the vectors. The
# time limit is for hangs: no package takes a tenth of it on an idle machine. Vet is part
# of make lint.
.PHONY: test-plain
test:
	@scripts/need root go ip gcc libc6-dev libfabric-dev fi_info qemu-aarch64-static
	@$(MAKE) --no-print-directory -j test-plain test-vectors

test-plain:
	@$(BUILDSHORT)
	XDPFAB_FABTESTS_SHORT=$(CURDIR)/$(SHORT) $(NOCGO) $(GO) test $(SIDE) -vet=off -timeout 30m $(LONGEST) $(PKGS)

test-race:
	@scripts/need root go ip gcc libc6-dev
	CGO_ENABLED=1 $(GO) test -p 2 -parallel 8 -race -short -vet=off -timeout 30m -skip '$(RACENOT)' $(RACE)

# What make test does a part of: thousands of seeds of the random searches, the limits of
# many nodes, a hundred deaths beside a resident region, and the race detector for all but
# the packages of one thread, with the tests of kernel objects. make sim, make soak and
# make fuzz search for as long as you like.
test-long:
	@scripts/need root go ip gcc libc6-dev libfabric-dev fi_info
	XDPFAB_SEEDS=3000 $(GO) test -count=1 -timeout 60m -run '^(TestConservation|TestNamesAtRandom)$$' ./internal/engine
	XDPFAB_LONG=1 $(GO) test -count=1 -timeout 60m ./internal/sim -args -seeds=1000
	XDPFAB_LONG=1 $(GO) test -count=1 -timeout 60m -run '^TestKill$$' ./internal/resident
	XDPFAB_LONG=1 $(GO) test -count=1 -timeout 60m -run '^TestLongestMessage$$' ./xdpfab/fi
	XDPFAB_LONG=1 $(GO) test -count=1 -timeout 60m -run '^TestLongest$$' ./test/provider
	$(GO) test $(SIDE) -count=1 -race -short -vet=off -timeout 60m $(RACELONG)

# The tests that need no root: all that need no network namespace.
test-unit:
	@scripts/need go
	$(GO) test -timeout 10m $(PKGS)

# The tests of pipes over UDP sockets on a loopback interface, with and without the calls
# of Linux for many messages. The example left out prints the addresses of a Pipe.
test-udp:
	@scripts/need go
	XDPFAB_TEST_CABLE=udp $(GO) test -count=1 -short -timeout 30m -skip '^ExampleGetInfo$$' ./internal/udpport ./xdpfab \
		./xdpfab/fi
	XDPFAB_TEST_CABLE=udp XDPFAB_TEST_PORTABLE=1 $(GO) test -count=1 -short -timeout 30m -run \
		'Word|Vector|RMA|Send|Message|Mailbox|Restart|Faults|Order' ./xdpfab/...

# For the loop at the desk: lint for this processor, and the tests that need no root, of
# which those run whose packages have changed since. Under a minute with a warm cache.
FAST = $(shell $(GO) list $(PKGS) | grep -vE '/(bench|test|testnet|layout)(/|$$)')
fast:
	@scripts/need go
	@$(MAKE) --no-print-directory lint-here
	XDPFAB_NO_ROOT=1 $(NOCGO) $(GO) test -short -vet=off -timeout 10m $(FAST)

# The benchmark beside the floor and the peers: see bench/.
BENCH_NEEDS := root go gcc libc6-dev ip ucx_perftest libfabric-dev libucx-dev
BENCH_CFLAGS := -O2 -march=native -D_GNU_SOURCE -pthread -Wall -Wextra
bench-build:
	@scripts/need $(BENCH_NEEDS)
	@mkdir -p bin/bench
	@$(GO) build -o bin/bench/ ./bench/... ./cmd/xdpfabd
	@gcc $(BENCH_CFLAGS) -o bin/bench/floor bench/floor/floor.c
	@gcc $(BENCH_CFLAGS) -o bin/bench/stream bench/floor/stream.c
	@gcc $(BENCH_CFLAGS) -o bin/bench/fabric bench/peers/fabric/fabric.c -lfabric
	@gcc $(BENCH_CFLAGS) -o bin/bench/fabric_transfer bench/peers/fabric/transfer.c -lfabric
	@gcc $(BENCH_CFLAGS) -o bin/bench/ucx_transfer bench/peers/ucx/transfer.c -lucp -lucs

# Everything, compared with the aims: tables in bench/results/, every
# sample in bin/bench/latest.json.
bench: bench-build
	@bin/bench/bench -mode full

# Package xdpfab/sync, counters and signals beside etcd, Redis and NATS, whose servers are Debian's: in
# BENCHROUNDS rounds of 12 s.
BENCHROUNDS ?= 5
.PHONY: bench-sync
bench-sync:
	@scripts/need root go ip apt-get dpkg-deb
	@mkdir -p bin/bench
	@$(GO) build -o bin/bench/ ./bench/... ./cmd/xdpfabd
	@scripts/rivals bin/bench
	@TMPDIR=$$([ -w /dev/shm ] && echo /dev/shm || echo /tmp) bin/bench/bench -mode sync -rounds $(BENCHROUNDS)

# Fails when a ratio to the floor, within the run, is beyond bench/limits.json.
bench-guard: bench-build
	@bin/bench/bench -mode guard

# Ends within 90 s; the last line of its output is JSON.
bench-quick: bench-build
	@bin/bench/bench -mode quick

# Go's own micro-benchmarks.
bench-go:
	@scripts/need go
	$(GO) test -run=- -bench . ./atomic ./internal/wire ./internal/session ./internal/engine ./bpf

# The gain of a profile-guided build, on both sides of the engine in one process.
bench-pgo:
	@scripts/need go
	$(GO) test -run=- -bench FetchAdd -cpuprofile bin/engine.pgo -o bin/engine.test ./internal/engine
	$(GO) test -run=- -bench FetchAdd -pgo=$(CURDIR)/bin/engine.pgo ./internal/engine

# The short set, what may differ from kernel to kernel, in virtual machines: no root, no
# network but to fetch the kernel. KERNEL is a bzImage or one of 5.10, 6.1, 6.12, sid, or
# several, with commas; VMTEST packages and flags of go test, such as
# VMTEST='./xsk -run Burst -v'. VMTEST=./... runs every test. ARCH=arm64 takes another
# processor, whose QEMU, kernel and programs are fetched. See go doc ./test/vm. Translated
# by QEMU the short set takes 7 minutes of CPU, so 4 minutes on two idle cores, and 11 at a
# load of 20. docs/internals/runs.md has the last runs of these targets.
KERNEL ?= 6.12
VMTEST ?=
ARCH   ?= amd64
VMNEED := go qemu-system-x86_64 busybox ip tc setpriv xz apt-get
test-vm:
	@scripts/need $(VMNEED)
	@$(NOCGO) $(GO) run ./test/vm/cmd/vmtest -arch $(ARCH) -kernel $(KERNEL) -- $(VMTEST)

# The same with every kernel, or KERNELS, and a table of the features that work with each;
# then test-nic. Half an hour of CPU, and ten minutes for test-nic.
KERNELS ?= all
test-matrix:
	@scripts/need $(VMNEED)
	@$(NOCGO) $(GO) run ./test/vm/cmd/vmtest -kernel $(KERNELS) -table -- $(VMTEST)
ifeq ($(KERNELS)$(VMTEST),all)
	@$(MAKE) --no-print-directory test-nic
endif

# The same on NICs: zero-copy, several queues and the rest of what a veth has not, with a
# daemon, a client, kill -9 and a link that goes away. NIC is one or several of virtio, igb,
# igbvf, virtio-queues, virtio-copy, virtio-jumbo, virtio-rss, virtio-offloads, vmxnet3,
# e1000e: a minute of CPU each, igb more.
NIC ?= all
comma := ,
test-nic:
	@scripts/need $(VMNEED) ethtool
	@$(NOCGO) $(GO) run ./test/vm/cmd/vmtest -nic $(NIC) -table -- $(VMTEST)

# The suites of xsk, port, xdpfab and e2e on two NICs: whatever of them is not about veths.
# Without KVM it takes long: on virtio 4 to 20 minutes for xdpfab, as other work leaves the
# cores, and half an hour for e2e.
SUITES ?= ./xsk ./internal/port ./xdpfab ./xdpfab/fi ./test/e2e
test-nic-suites:
	@scripts/need $(VMNEED) ethtool
	@$(NOCGO) $(GO) run ./test/vm/cmd/vmtest -nic $(if $(filter all,$(NIC)),virtio$(comma)igb,$(NIC)) -table -- $(SUITES) -short

# The least of it that shows a driver's zero-copy at work: modes, frames of every length, sums,
# and a daemon that is killed, on virtio and igb at the same time. 84 s on two cores
# without KVM, at a load of 5.
test-nic-short:
	@scripts/need $(VMNEED) ethtool
	@$(NOCGO) $(GO) run ./test/vm/cmd/vmtest -nic virtio,igb -table -- ./test/e2e -run 'TestNIC/^(modes|frames|sums|kill)$$'

# The kernels of atomics against the vectors on arm64, each instruction translated by QEMU:
# on a processor with the instructions of Armv8.1 for atomics (LSE), and on one that has
# load-exclusive and store-exclusive alone, so no exchange of 16 bytes. Some 10 s of CPU.
VECTORS := TestVectors|TestVectorsCoverEverything|TestSpecialValues|TestKernelExactlyWhereValid|TestSweepsAgreeWithKernels|TestInt128AgainstBig
.PHONY: test-vectors
test-vectors:
	@scripts/need go qemu-aarch64-static
	GOARCH=arm64 CGO_ENABLED=0 $(GO) test -short -vet=off -timeout 10m -run '^($(VECTORS))$$' -exec 'qemu-aarch64-static -cpu max' ./atomic
	GOARCH=arm64 CGO_ENABLED=0 $(GO) test -short -vet=off -timeout 10m -run '^($(VECTORS))$$' -exec 'qemu-aarch64-static -cpu cortex-a57' ./atomic

# The same on a processor with LSE, with all the other tests that need no kernel.
ARMTEST ?= ./atomic ./internal/wire ./internal/executor ./internal/session
test-arm64:
	@scripts/need go qemu-aarch64-static
	GOARCH=arm64 CGO_ENABLED=0 $(GO) test -short -count=1 -timeout 30m -exec 'qemu-aarch64-static -cpu max' $(ARMTEST)

# The harness's own tests: guests that panic, hang or lack memory, test binaries that end
# in every way there is, and two machines with kernels of their own, joined by a cable.
test-vm-self:
	@scripts/need $(VMNEED)
	$(GO) test -count=1 -timeout 20m -v ./test/vm ./test/vm/cmd/... -args -boot

# SEEDS random runs of many nodes under every fault, half of them hours of virtual
# time. WITH=hours,outage restricts it to those dimensions: go doc ./internal/sim Dims
SEEDS ?= 1000
WITH  ?= mended
sim:
	@scripts/need go
	$(GO) test -timeout 60m -count=1 -v -run '^TestSim$$' ./internal/sim -args -seeds=$(SEEDS) -with=$(WITH)

# Sows known bugs: the simulator has to find each of them.
sim-bugs:
	@scripts/need go
	$(GO) test -timeout 90m -count=1 -v -tags simbugs -run '^TestSeededBugs$$' ./internal/sim

# Real AF_XDP, real processes, a wire with faults, kill -9, for MINUTES. Half of it has
# resident regions, if the kernel can.
MINUTES ?= 3
soak:
	@scripts/need root go ip
	$(GO) test -timeout 0 -count=1 -v -run '^TestSoak$$' ./test/soak -args -minutes=$(MINUTES)

# The parts of package xdpfab/sync, each on SEEDS random runs with faults, crashes and restarts; `make
# test` has two of each.
.PHONY: sync-seeds
sync-seeds:
	@scripts/need go
	XDPFAB_SEEDS=$(SEEDS) $(NOCGO) $(GO) test -timeout 0 -count=1 -parallel 8 ./xdpfab/sync

# Sows known bugs into package xdpfab/sync: the test of the part has to find each of them. Half a
# minute each on a busy machine.
.PHONY: sync-bugs
sync-bugs:
	@scripts/need go
	$(NOCGO) $(GO) test -timeout 60m -count=1 -v -tags syncbugs -run '^TestSown$$' ./xdpfab/sync

# Eight processes pass MESSAGES messages through a wire with faults; `make test` passes
# 20,000.
MESSAGES ?= 1000000
soak-messages:
	@scripts/need root go ip
	$(GO) test -timeout 0 -count=1 -v -run '^TestMembers$$' ./test/soak -args -messages=$(MESSAGES)

# DEATHS guests of one daemon are killed in any stage of their lives; nothing of them may be
# left in it.
DEATHS ?= 10000
soak-deaths:
	@scripts/need root go ip
	XDPFAB_GUEST_DEATHS=$(DEATHS) $(GO) test -timeout 0 -count=1 -v -run '^TestGuestsKilled$$' ./test/e2e

# Each fuzz target for FUZZTIME; `make test` runs only their seeds.
FUZZTIME ?= 10s
fuzz:
	@scripts/need root go
	@scripts/fuzz $(FUZZTIME)

lint: lint-here lint-arm64 lint-portable

# The library builds where there is no AF_XDP: it has Pipe and UDP sockets there.
lint-portable:
	@scripts/need go
	GOOS=darwin $(NOCGO) $(GO) build ./xdpfab/...
	GOOS=windows $(NOCGO) $(GO) build ./xdpfab/...

ARM64 ?= $(PKGS)
lint-arm64:
	@scripts/need go
	GOARCH=arm64 $(GO) vet $(ARM64)

lint-here:
	@scripts/need go
	@out=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "gofmt: $$out"; exit 1; fi
	$(NOCGO) $(GO) vet $(PKGS)
	$(NOCGO) $(TOOLS) staticcheck $(PKGS)
	cd tools && $(NOCGO) $(GO) test ./...
	$(NOCGO) $(GO) test ./internal/layout

# Whether each of these features goes with its files and a few lines elsewhere; without
# any, each that has files in scripts/deletable.d.
DELETABLE ?=
deletable:
	@scripts/need go patch
	@$(NOCGO) scripts/deletable $(DELETABLE)

generate:
	@scripts/need go clang-14 llvm-strip-14
	$(GO) generate ./bpf ./internal/resident

generate-check: generate
	git diff --exit-code -- bpf internal/resident || { echo "bpf: committed objects differ from their source: run make generate and commit"; exit 1; }

check: lint deletable generate-check test test-race test-vm

clean:
	rm -rf bin
