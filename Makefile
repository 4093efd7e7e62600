# stepctl and stepd: `make help` says what can be made.

PREFIX ?= /usr/local
# Where the programs to be installed are. With SUITE and ARCH those for that Debian and processor.
BIN ?= $(if $(SUITE),.build/$(ARCH)/$(SUITE)/release,.build/release)
ARCH ?= $(shell dpkg --print-architecture)

bindir := $(DESTDIR)$(PREFIX)/bin
# What stepctl starts for itself: the commands of technicians and operators, and programs that a library may end.
libexec := $(DESTDIR)$(PREFIX)/libexec/stepctl
own := stepctl-operator stepctl-nfc stepctl-qr stepctl-traffic
share := $(DESTDIR)$(PREFIX)/share
man := $(share)/man
units := $(DESTDIR)$(PREFIX)/lib/systemd/system
pages := $(wildcard man/*.[1-8])

# Starting a program is relocating it, and most relocations are libstdc++'s. So that library is static (in this folder
# -lstdc++ finds nothing but the .a), as are libgcc and Swift's own, and what is left is packed (RELR: glibc 2.36). Nothing
# is exported: Swift's static standard library exports every symbol, and none of those could be left out. The archives have
# a small FoundationEssentials too, which says what it is for. A program made for size (-Osize) starts sooner: it has fewer
# pages to read.
archives := .build/archives
# $(call smallest,ARCHIVES)
smallest = -Osize -I$(1) -L$(1) -Xclang-linker -static-libgcc -use-ld=lld -Xlinker --no-export-dynamic -Xlinker -s
packed := -Xlinker -z -Xlinker pack-relative-relocs
# $(call links,FLAGS): FLAGS, if a program that is linked with them runs on this machine.
links = $(shell mkdir -p $(archives) && ln -sf "$$(clang -print-file-name=libstdc++.a)" $(archives)/libstdc++.a && \
  swiftc -O $(unhashed) -parse-as-library -static -emit-library -o $(archives)/libessentials.a -module-link-name essentials \
    -emit-module -emit-module-path $(archives)/FoundationEssentials.swiftmodule -module-name FoundationEssentials \
    Sources/Libraries/FoundationEssentials/FoundationEssentials.swift && \
  echo 'import FoundationEssentials; print(JSONEncoder())' | \
    swiftc -static-stdlib $(1) -lstdc++ -o $(archives)/probe - >/dev/null 2>&1 && \
  $(archives)/probe >/dev/null 2>&1 && echo "$(1)")
small := $(call smallest,$(archives))
link_flags = $(addprefix -Xswiftc ,$(or $(call links,$(small) $(packed)),$(call links,$(small)),-Xlinker -s))

# Programs that were built in different folders are the same, byte by byte: no path of the folder stays in them, and no
# hash of one. The compiler puts a hash of its work, with the object file's path, into each object (.swift_modhash), by
# which it would not make the same object twice.
unhashed := -Xfrontend -disable-incremental-llvm-codegen
pathless := $(addprefix -Xswiftc ,-file-prefix-map $(CURDIR)=. $(unhashed)) -Xcc -ffile-prefix-map=$(CURDIR)=.

# Where `make test` has installed what Python programs take.
python = $(or $(wildcard .build/venv/bin/python),python3)

# What `make` builds.
PROGRAMS ?= stepctl stepd $(own)

release: ## build the programs for use: .build/release/stepctl and stepd (also `make`)
	. Packaging/stamp.sh && set -- $(pathless) $(link_flags); for program in $(PROGRAMS); do \
	  swift build -c release --static-swift-stdlib --disable-local-rpath "$$@" --product $$program || exit; done

test-arm64: ## run Debian 12's programs for arm64 on an amd64 machine, and module tests: by qemu-user
	Tests/prepare.sh test-arm64
	@$(MAKE) --no-print-directory arm64 SUITES=bookworm GOALS=release
	Tests/build.sh --quiet
	Tests/Arm64/run.sh

# The Debian releases that `make arm64` builds for.
SUITES ?= bookworm trixie

arm64: ## build for arm64 Debian 12 and 13 on an amd64 one: .build/arm64/SUITE/release (SUITES=bookworm; GOALS=release: no stepfleet)
	Tests/prepare.sh arm64
	for suite in $(SUITES); do for goal in $(or $(GOALS),release fleet); do case $$goal in \
	  release) set -- $(call smallest,.build/arm64/$$suite/archives) $(packed) ;; \
	  *) set -- -Xlinker --no-export-dynamic -Xlinker -s ;; esac; \
	  Packaging/arm64/build.sh $$suite $$goal "$$@" || exit; done; done

packages: ## install the Debian packages that building takes
	Tests/prepare.sh build

demo: ## show the whole chain on this machine, with a simulated vehicle and rider
	Tests/prepare.sh demo
	@$(MAKE) --no-print-directory release
	Tests/Demo/demo.sh $(BIN)

try: ## a vehicle on this machine: you walk up, its step opens, and a shell is yours
	Tests/prepare.sh demo
	@$(MAKE) --no-print-directory release
	@Tests/Demo/try.sh $(BIN)

picture: release ## draw README's picture of the view again
	Tests/prepare.sh test
	$(python) Tests/Demo/picture.py $(BIN)

demo-fleet: ## show a fleet on this machine: two vehicles, two riders, a race, and access that is taken back
	Tests/prepare.sh fleet
	@$(MAKE) --no-print-directory release fleet
	Fleet/Tests/Demo/demo.sh $(BIN) Fleet/.build/release

test: ## install what testing takes, then check everything
	Tests/prepare.sh test
	Tests/prepare.sh test-fleet
	Tests/run.sh

check: ## check how it is written, and the modules: no whole programs
	Tests/prepare.sh test
	Tests/run.sh modules

rig: ## build the kernel that tests of hardware run in, once: .build/rig (7 minutes of CPU)
	Tests/prepare.sh rig
	Tests/Rig/kernel.sh

rig-kasan: ## break Bluetooth links in a kernel that looks for its own faults (KASAN; a kernel of its own, 10 minutes of CPU)
	Tests/prepare.sh rig
	Tests/prepare.sh test
	Tests/Rig/kernel.sh kasan
	swift build
	cd Tests/System && ../Rig/run.sh --kasan --scn none --noup --timeout 3600 -- env STEPCTL_IN_RIG=1 \
	  STEPCTL_BIN_DIR=$(CURDIR)/.build/debug $(CURDIR)/.build/venv/bin/python -m pytest -q test_link_faults.py

bench: release ## measure beside others in the same run; DATA=folder of recordings adds ranging
	STEPCTL_BENCH=1 swift build -c release --static-swift-stdlib --disable-local-rpath $(link_flags) --product ParserBenchmark
	$(python) Tests/Benchmarks/parser/parser.py --swift .build/release/libParserBenchmark.so
	$(python) Tests/Benchmarks/cold.py --bin $(BIN)
	$(python) Tests/Benchmarks/motion.py --bin $(BIN)
	$(python) Tests/Benchmarks/tags.py --bin $(BIN)
	$(python) Tests/Benchmarks/codes.py --bin $(BIN)
	$(python) Tests/Benchmarks/traffic.py --stepctl $(BIN)/stepctl
	$(python) Tests/Benchmarks/passes.py --stepctl $(BIN)/stepctl
	$(python) Tests/Benchmarks/bridge/bridge.py --bin $(BIN)
	$(if $(DATA),$(python) Tests/Benchmarks/ranging.py --stepctl $(BIN)/stepctl --data '$(DATA)',\
	  @echo 'ranging is left out: give DATA=folder')

ranging: ## make the figures of RANGING.md again; DATA=folder of recordings (README.md in Tests/Benchmarks)
	Tests/prepare.sh test
	$(python) Tests/Benchmarks/fit.py $(if $(DATA),--data '$(DATA)')

model: ## have spin check the model of the protocol, and find what its mutations do (a minute)
	Tests/prepare.sh test
	Tests/Model/check.py

power: ## cut the power while programs write, and see that what they promised holds (CUTS=200, SEED=1)
	Tests/prepare.sh test
	swift build
	STEPCTL_BIN_DIR=$$(swift build --show-bin-path) POWER_CUTS=$(or $(CUTS),200) POWER_SEED=$(or $(SEED),1) \
	  $(python) -m pytest -v Tests/System/test_power.py

fuzz: ## fuzz every parser of bytes from outside, a minute each (SECONDS_EACH; FUZZ=name for one)
	Tests/prepare.sh build
	Tests/Fuzz/run.sh

sanitize: ## run module tests with AddressSanitizer (SUITES=pattern for some)
	Tests/prepare.sh test
	Tests/sanitize.sh

lint: ## check how sources, scripts and manual pages are written
	swift format lint --strict --recursive Package.swift Sources Tests Fleet/Package.swift Fleet/Sources Fleet/Tests
	@echo '# Comments have at most 120 columns. Texts are substituted byte by byte (Encoding).'
	! git grep --untracked -nP '^(?= *//).{121}' -- '*.swift'
	@echo '# Nothing names concurrency, which CNoTasks keeps out of the programs.'
	! git grep --untracked -nE '^[^/"]*\<(ContinuousClock|SuspendingClock|async|Task)\>' -- 'Sources/*.swift'
	! git grep --untracked -nE '\.(replacing|firstRange|ranges)\(|Regex' -- 'Sources/*.swift'
	@echo '# It puts the length of an absolute path into the program: another folder would make another program.'
	! git grep --untracked -n withoutActuallyEscaping -- 'Sources/*.swift' 'Fleet/Sources/*.swift'
	@echo '# ProgramArguments has the arguments even where the runtime does not find them.'
	! git grep --untracked -nE '^[^/]*\<CommandLine\.' -- 'Sources/*.swift' 'Fleet/Sources/*.swift'
	shellcheck .ci/run $$(find Tests Fleet/Tests Packaging -name '*.sh')
	mandoc -T lint -W warning $(pages) Fleet/man/stepfleet.8
	Tests/architecture.py --check

architecture: ## write the graph of the modules into ARCHITECTURE.md again
	Tests/architecture.py

# Where the fleet's server is.
FLEET_BIN ?= $(if $(SUITE),$(BIN),Fleet/.build/release)
# What starts a program of another processor.
RUN ?=

# By lld, as the other programs: Debian 13's ld would leave relocations writable.
fleet: ## build the fleet's server: Fleet/.build/release/stepfleet (15 minutes on two cores)
	Tests/prepare.sh fleet
	. Packaging/stamp.sh && swift build --package-path Fleet -c release --static-swift-stdlib --disable-local-rpath \
	  --product stepfleet $(pathless) -Xswiftc -use-ld=lld -Xlinker --no-export-dynamic -Xlinker -s
	Fleet/Sources/MosquittoPlugin/build.sh Fleet/.build/release/mosquitto_stepfleet.so

install-fleet: ## install the fleet's server that was built: PREFIX, DESTDIR
	install -D -t $(bindir) $(FLEET_BIN)/stepfleet
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/lib/stepfleet $(FLEET_BIN)/mosquitto_stepfleet.so
	mkdir -p $(share)/bash-completion/completions $(share)/zsh/site-functions $(share)/fish/vendor_completions.d
	$(RUN) $(FLEET_BIN)/stepfleet --generate-completion-script bash >$(share)/bash-completion/completions/stepfleet
	$(RUN) $(FLEET_BIN)/stepfleet --generate-completion-script zsh >$(share)/zsh/site-functions/_stepfleet
	$(RUN) $(FLEET_BIN)/stepfleet --generate-completion-script fish >$(share)/fish/vendor_completions.d/stepfleet.fish
	install -D -m 644 -t $(man)/man8 Fleet/man/stepfleet.8
	install -D -m 644 -t $(units) Fleet/Sources/stepfleet/stepfleet.service
	sed -i 's|^ExecStart=/usr/local/bin|ExecStart=$(PREFIX)/bin|' $(units)/stepfleet.service

test-fleet: ## check the fleet's server, with real databases, brokers and vehicles
	Tests/prepare.sh test-fleet
	Fleet/Tests/run.sh

bench-fleet: release fleet ## measure the fleet's server beside others in the same run (PARTS=load for one part)
	Tests/prepare.sh bench-fleet
	STEPFLEET_BIN_DIR=Fleet/.build/release STEPCTL_BIN_DIR=$(BIN) Fleet/.build/bench/bin/python \
	  Fleet/Tests/Benchmarks/bench.py $(PARTS)

concurrency: ## show what goes wrong where many want the same, with each mechanism off and on (Fleet/CONCURRENCY.md)
	Tests/prepare.sh test-fleet
	STEPFLEET_CONCURRENCY=1 swift build --package-path Fleet -c release --product Concurrency
	Fleet/Tests/Concurrency/run.sh Fleet/.build/release/Concurrency

completions: release ## generate completions/ again
	for program in stepctl stepd; do \
	  $(BIN)/$$program --generate-completion-script bash >completions/$$program.bash && \
	  $(BIN)/$$program --generate-completion-script zsh >completions/_$$program && \
	  $(BIN)/$$program --generate-completion-script fish >completions/$$program.fish || exit; done

install: ## install what was built: PREFIX (/usr/local), DESTDIR
	@test -x $(BIN)/stepctl || { echo 'make: nothing is built: run make first' >&2; exit 1; }
	install -D -t $(bindir) $(BIN)/stepctl $(BIN)/stepd
	install -D -t $(libexec) $(addprefix $(BIN)/,$(own))
	for page in $(pages); do install -D -m 644 -t $(man)/man$${page##*.} $$page || exit; done
	for program in stepctl stepd; do \
	  install -D -m 644 completions/$$program.bash $(share)/bash-completion/completions/$$program && \
	  install -D -m 644 -t $(share)/zsh/site-functions completions/_$$program && \
	  install -D -m 644 -t $(share)/fish/vendor_completions.d completions/$$program.fish || exit; done
	install -D -m 644 -t $(share)/stepctl schema/stepctl.json
	install -D -m 644 -t $(units) Sources/Programs/stepd/stepd.service Sources/Programs/stepd/stepd-broker.service
	sed -i 's|^ExecStart=/usr/local/bin|ExecStart=$(PREFIX)/bin|' $(units)/stepd.service

deb: ## build Debian packages of what was built (`make`, `make fleet`): .build/deb; for another Debian: SUITE, ARCH
	Tests/prepare.sh $(if $(SUITE),debs,deb)
	Packaging/packages.sh $(BIN) $(FLEET_BIN) $(if $(SUITE),$(SUITE) $(ARCH))

programs: ## build for the Debian SUITE on this processor: .build/ARCH/SUITE/release (as root; GOALS=release: no stepfleet)
	Tests/prepare.sh debs
	Packaging/programs.sh '$(SUITE)' $(GOALS)

debs: ## build all Debian packages whose programs are there (as root): Debian 12 and 13, amd64 and arm64
	for suite in bookworm trixie; do for arch in amd64 arm64; do \
	  if test -x .build/$$arch/$$suite/release/stepctl; then \
	    $(MAKE) --no-print-directory deb SUITE=$$suite ARCH=$$arch || exit; \
	  else echo "make: there are no programs in .build/$$arch/$$suite/release" >&2; fi; done; done

archive: ## lay out a signed archive of all packages, for a web server: .build/archive; KEY=fingerprint signs (PARTIAL=yes)
	Tests/prepare.sh archive
	Packaging/archive.sh '$(KEY)' .build/deb .build/archive

reproduce: ## build stepctl and stepd in two folders, and compare them byte by byte
	Tests/prepare.sh reproduce
	Tests/Install/reproduce.sh

uninstall: ## remove what was installed
	for program in stepctl stepd stepfleet; do \
	  rm -f $(bindir)/$$program $(share)/bash-completion/completions/$$program \
	    $(share)/zsh/site-functions/_$$program $(share)/fish/vendor_completions.d/$$program.fish; done
	rm -rf $(libexec) $(share)/stepctl $(DESTDIR)$(PREFIX)/lib/stepfleet
	rm -f $(units)/stepd.service $(units)/stepd-broker.service $(units)/stepfleet.service $(man)/man8/stepfleet.8
	for page in $(notdir $(pages)); do rm -f $(man)/man$${page##*.}/$$page; done

clean: ## remove what was built
	rm -rf .build Fleet/.build

help: ## say what can be made
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

.DEFAULT_GOAL := release
.PHONY: release arm64 test-arm64 packages demo try demo-fleet picture test check rig bench ranging model power fuzz sanitize lint architecture fleet install-fleet \
  test-fleet bench-fleet concurrency completions install deb debs programs archive reproduce uninstall clean help
