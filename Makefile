# The binary does the work; this file only names it. `make help` lists the targets.
LASTHOP = $(or $(CARGO_TARGET_DIR),target)/release/lasthop

.PHONY: help demo test bench bench-live profile kernel unit measure cells validate papers lab soak build clean
help:        ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

build:       ## the release binary
	cargo build --release --locked -p lasthop-cli

demo:        ## compare schemes on a lossy, flickering last hop; writes lasthop-out/report.html
	cargo build --release --locked -p lasthop-cli --no-default-features
	$(LASTHOP) compare scenarios/flicker.toml --out lasthop-out

test:        ## everything that has to pass: format, lints, structure, tests, docs, lab, page
	bash tests/all.sh

bench: build ## the gates of the speed table, in one run
	bash bench/sim.sh $(LASTHOP)
	bash bench/handoffs.sh $(LASTHOP)

bench-live:  ## the daemon's back ends beside the kernel's own forwarding (about 6 minutes)
	bash bench/live.sh

profile: build ## where the simulator's time goes, by crate and function (needs perf)
	bash bench/profile.sh $(LASTHOP)

KERNEL = $(or $(CARGO_TARGET_DIR),target)/linux
kernel:      ## a user-mode kernel in virtual time, from SOURCE=linux-source.tar.xz (8 minutes)
	@test -n "$(SOURCE)" || { echo "make kernel SOURCE=/usr/src/linux-source-7.2.tar.xz (apt-get install linux-source-7.2), or a tarball of kernel.org"; exit 2; }
	bash bench/virtual/build.sh $(SOURCE) $(KERNEL)

unit: build  ## the gateway's unit under a real systemd, with `make kernel` (a minute)
	bash bench/virtual/run.sh $(KERNEL) bench/virtual/unit.sh $(LASTHOP)

measure: build ## docs/measurements.md and docs/when-not.md, with `make kernel` (two hours; stops and goes on)
	python3 bench/measure.py $(LASTHOP) --virtual $(KERNEL)

cells: build ## who is helped and who is not, 240 cells, with `make kernel`; renews docs/cells.md (three hours)
	python3 bench/cells.py $(LASTHOP) --virtual $(KERNEL)

validate: build ## the simulator's senders against the kernel's; renews docs/validation.md (up to an hour)
	bash bench/validate.sh $(LASTHOP)

papers: build ## the papers' experiments; renews docs/papers
	bash bench/papers.sh $(LASTHOP)

lab: build   ## real kernels in network namespaces, our emulated radio, our daemon
	$(LASTHOP) lab scenarios/lab-quick.toml

LENGTH = 10min
SEED = 1
soak:        ## random links and faults for LENGTH=10min from SEED=1 on: every stream whole
	LASTHOP_KILLS=50 LASTHOP_FLOWS=10000 LASTHOP_HALF_OPEN=100000 LASTHOP_VARIANTS=all \
	  cargo test --profile checked --locked -p lasthop-cli --test transparency -- \
	  killed half_open exchanges scripts
	cargo test --profile checked --locked -p lasthop-cli --test transparency -- soak $(LENGTH) $(SEED)

clean:       ## remove what was built and written
	cargo clean
	rm -rf lasthop-out
