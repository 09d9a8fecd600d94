# `make help` prints the "##" text of each target that people use.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

GO        ?= go
BIN       := $(CURDIR)/bin
TOOLBIN   := $(CURDIR)/.cache/tools
VERSION   ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS   := -s -w -X main.version=$(VERSION)

# No PIE and no cgo: a position-independent build costs the plugin more than a
# millisecond per pod (docs/performance.md), and static binaries run on any host.
export CGO_ENABLED ?= 0
# Paths are trimmed everywhere, so that tests and binaries, and all checkouts, share the build
# cache; the caller's own flags stay.
export GOFLAGS := $(strip $(filter-out -trimpath,$(GOFLAGS)) -trimpath)
# Without grpc's trace pages nothing looks methods up by name, so the linker drops the
# 800 unused EC2 actions: a third of the size, and 11 MB less memory.
TAGS      := grpcnotrace
GOBUILD   := $(GO) build -tags $(TAGS) -ldflags "$(LDFLAGS)"

# The commands in the images; the others are for tests.
IMAGED    := $(patsubst %/,./%,$(dir $(wildcard cmd/*/main.go)))
MAINS     := $(patsubst %/,./%,$(dir $(wildcard cmd/*/main.go testenv/cmd/*/main.go)))

LAYERS    ?= pure,adapter,binary,cluster,race
RUN       ?=
COUNT     ?= 0
FUZZTIME  ?= 10s
SEEDS     ?= 300
# Each UTC day has its own seeds, so that nightly finds what earlier days did not.
ifndef SEED_START
SEED_START := $(shell echo $$(( $$(date -u +%s) / 86400 * 100000 + 1 )))
endif
FLEET     ?= 1000
# Also the tests that are no part of the gate.
NIGHTLY   ?=
NODES     ?= 3
VERBOSE   ?=
ARGS      ?=

# As root no test may be skipped.
ifeq ($(shell id -u),0)
export CNI_TEST_REQUIRE ?= root
endif

# What the layers need.
PURE      := $(filter pure,$(LAYERS))
TESTED     = $(if $(PURE),,$(if $(findstring cluster,$(LAYERS)),kube-cluster,kube) vm reference $(TOOLBIN)/helm) \
	$(if $(or $(findstring binary,$(LAYERS)),$(findstring cluster,$(LAYERS))),images-here) build crash $(TOOLBIN)/testlayers
# Two at a time: while one downloads or links, the other compiles.
PREPARED   = $(if $(PURE),,$(MAKE) deps &&) $(MAKE) -j2 $(TESTED)
# The programs and images of tests carry no commit: where their sources are the same, so are they, and
# tests that use them find their results.
test gate: export VERSION := test
test gate: export REVISION := test
test gate: export SOURCE_DATE_EPOCH := 1700000000
test gate: export GOFLAGS += -buildvcs=false
# In CI all files of a checkout get times that depend on their content: go test finds the results of another clone.
TESTLAYERS = CNI_TEST_BIN=$(BIN) $(TOOLBIN)/testlayers $(if $(filter true,$(CI)),-stamp) -run "$(RUN)" -count $(COUNT) $(if $(NIGHTLY),-nightly)

.PHONY: help
help: ## print this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "variables: LAYERS=pure,adapter,binary,cluster,race  RUN=<test regexp>  COUNT=<n>  STAGES=<of nightly>  FUZZTIME=10s  SEEDS=300  SEED_START=<by UTC day>  FLEET=1000  VERBOSE=1  ARGS=<for demo and bench>"

.PHONY: deps
deps: ## install the Debian packages for tests and the demo (as root), or print the apt line
	@./.ci/deps

# Kubernetes' programs, built once per version into a cache that all checkouts share.
.PHONY: kube
kube: ## fetch etcd and build kube-apiserver (minutes, once) for tests with a Kubernetes API
	@GO="$(GO)" tools/kube/build.sh >/dev/null

# For tests of what few kernels have: 802.1q VLAN.
.PHONY: vm
vm: ## get QEMU and a kernel from Debian's packages (half a minute, once) for the tests with branch ENIs
	@tools/vm/build.sh >/dev/null

.PHONY: build
build: ## build every binary into bin/
	@mkdir -p $(BIN)
	$(GOBUILD) -o $(BIN)/ $(MAINS)
	@ln -f $(BIN)/cnictl $(BIN)/kubectl-cni # "kubectl cni", and what kubectl asks for its completions
	@install -m 755 deploy/krew/kubectl_complete-cni $(BIN)/

# The daemon and the plugin with crash points, at which tests kill them.
.PHONY: crash
crash:
	@mkdir -p $(BIN)/crash
	$(GO) build -tags $(TAGS),crashpoints -ldflags "$(LDFLAGS)" -o $(BIN)/crash/ ./cmd/aws-k8s-agent ./cmd/aws-cni

.PHONY: kube-cluster
kube-cluster:
	@GO="$(GO)" tools/kube/build.sh cluster >/dev/null

.PHONY: cluster
cluster: deps kube-cluster images-here $(TOOLBIN)/helm ## start a real Kubernetes cluster on this machine as root, in the background (NODES=3 ARGS="--env WARM_IP_TARGET=4")
	@$(BIN)/cluster up --nodes $(NODES) $(ARGS)

.PHONY: cluster-down
cluster-down: ## stop the cluster of make cluster and remove its files
	@$(BIN)/cluster down $(ARGS)

# Takes minutes; make nightly runs it.
.PHONY: soak
soak: deps kube-cluster images-here $(TOOLBIN)/helm ## run 2,000 pods on a node as root while killing the daemon every 20 s (ARGS=--quick)
	@$(BIN)/soak $(ARGS)

.PHONY: demo
demo: deps build ## run three simulated nodes with real daemons and plugins, full screen (ARGS=--once: one round, no terminal)
	@$(BIN)/demo $(ARGS)

.PHONY: test
test: ## run all test layers (LAYERS=…, RUN=<test regexp>, COUNT=<n>: not from go test's cache)
	@$(PREPARED)
	@$(TESTLAYERS) -layers "$(LAYERS)"

# The simulation is short, and always the same: nightly runs many seeds, new ones each day.
.PHONY: gate
gate: ## run what every change must pass: all test layers, and beside them lint, verify and sim
	@$(PREPARED)
	@FLEET=0 SEED_START=1 $(TESTLAYERS) -targets lint,verify,sim

.PHONY: nightly
nightly: ## run everything there is, in stages of at most an hour; what has passed on this tree does not run again (STAGES=race,fuzz,…)
	@STAGES="$(STAGES)" .ci/nightly

# Takes long (docs/testing.md), and is no gate: make lint sees that all mutants still apply and compile.
.PHONY: mutants
mutants: deps $(TOOLBIN)/helm $(TOOLBIN)/mutants ## change the code in the ways of tools/mutants/mutants.txt and print which tests notice (RUN=<regexp of ID, package, function> ARGS="-resume -format markdown")
	@$(TOOLBIN)/mutants -run "$(RUN)" $(ARGS)

.PHONY: fuzz
fuzz: $(TOOLBIN)/testlayers ## run every fuzz target for FUZZTIME=10s
	@$(TOOLBIN)/testlayers -fuzz $(FUZZTIME) -run "$(RUN)"

# A run of many seeds also proves that it finds deliberate bugs.
.PHONY: sim
sim: ## simulate SEEDS=300 seeds from SEED_START (default: new ones each UTC day) and find deliberate bugs, then FLEET=1000 nodes that scale up together (0: none); VERBOSE=1 prints everything
	@mkdir -p $(BIN)
	@$(GOBUILD) -o $(BIN)/ ./testenv/cmd/sim
	@echo "sim: seeds from $(SEED_START); to run them again: make sim SEEDS=$(SEEDS) SEED_START=$(SEED_START)"
	@$(BIN)/sim -seeds $(SEEDS) -start $(SEED_START) $(if $(VERBOSE),-v)
	@if [ $(SEEDS) -ge 300 ]; then $(BIN)/sim -mistakes 500; fi
	@if [ $(FLEET) -gt 0 ] && [ -z "$(VERBOSE)" ]; then $(BIN)/sim -fleet $(FLEET); fi

.PHONY: bench
bench: deps build reference ## measure ADD and DEL against the process floor and the reference plugins; then the Go benchmarks
	@$(BIN)/bench $(ARGS)
	$(GO) test -run '^$$' -bench . -benchmem -benchtime 2000x ./daemon/ipam/... ./daemon/warmpool/... ./daemon/keeper/... ./daemon/resync/... ./daemon/api/...

# Compares with a file; not a test, because machines differ.
.PHONY: bench-scale
bench-scale: deps kube build ## measure the daemon's start, growth, memory and CPU against upstream's figures and docs/performance-baseline.json (ARGS=--write: new baseline)
	@$(BIN)/bench scale --baseline docs/performance-baseline.json $(ARGS)

.PHONY: bench-tui
bench-tui: build ## measure cnictl and its screens with 5,000 simulated nodes against their targets and eks-node-viewer (ARGS=--quick)
	@$(BIN)/bench tui $(ARGS)

.PHONY: doctor-report
doctor-report: ## print how each cause of cnictl doctor is tested; fails when one has no situation or look-alike
	@$(GO) test ./doctor/causes ./doctor/migrate -run '^TestCoverage$$' -count 1 -v

.PHONY: bench-doctor
bench-doctor: build ## measure cnictl doctor: 1,000 simulated nodes with three planted causes, and an archive with 1 GB of logs
	@$(BIN)/bench tui --phases doctor,archive $(ARGS)

# Takes half an hour.
.PHONY: doctor-soak
doctor-soak: build ## examine a sound fleet of 40 simulated nodes for half an hour; fails on a finding (ARGS="--for 2m")
	@$(BIN)/bench tui --phases doctor-soak --for 30m $(ARGS)

# Takes ten minutes.
.PHONY: soak-tui
soak-tui: build ## run the screens with 5,000 simulated nodes for ten minutes and check memory, goroutines, sockets and frames (ARGS="--for 2m")
	@$(BIN)/bench tui --phases soak $(ARGS)

# The reference plugins, static and stripped: those in the images, and those that the
# bench compares ours with.
.PHONY: reference
reference:
	@mkdir -p $(BIN)/reference
	@$(GO) -C tools/reference build -ldflags "-s -w" -o $(BIN)/reference/ tool
	@cp -f $(BIN)/reference/portmap $(BIN)/portmap.reference # beside ours, as on a node

# The architectures of the images. Another than this machine's takes minutes, once.
ARCH      ?= amd64 arm64
# Those of people's machines, for cnictl.
PLATFORMS := linux_amd64 linux_arm64 darwin_amd64 darwin_arm64
# URL of the project, for labels of images, packages and krew's manifest: releases are
# published below it. Without it they name none, and there is no manifest for krew.
SOURCE    ?=
REVISION  ?= $(shell git rev-parse HEAD 2>/dev/null)
# The same, or nothing where a file differs from the commit's.
COMMITTED  = $(shell [ -n "$$(git status --porcelain --untracked-files=all 2>/dev/null)" ] || git rev-parse HEAD 2>/dev/null)
# The time of everything that is released: the commit's.
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
STAGE     := .cache/images
# FRESH=required: Debian's lists of packages must be those of this moment.
FRESH     ?=
ARCHIVES  := dist
comma     := ,
space     := $(subst ,, )

# What is packed by itself was not checked, unless VULN=required says so.
.PHONY: checked
checked:
	@$(if $(VULN),$(MAKE) vuln,echo "NOT CHECKED for known vulnerabilities: make release does, and refuses what it cannot check")

.PHONY: images
images: checked ## build the container images in dist/ as OCI archives (ARCH="amd64 arm64" ARGS="-tag v1" SOURCE=https://…)
	@$(MAKE) pack-images

.PHONY: pack-images
pack-images: $(TOOLBIN)/mkimage $(addprefix stage-,$(ARCH)) testimages
	@{ echo "# Pods per instance type: ENIs * (IPv4 addresses of each - 1) + 2"; \
		$(BIN)/cnictl capacity type --all -o csv --columns type,eni-max-pods | awk -F, '$$2 ~ /^[0-9]+$$/ {print $$1, $$2}'; } >$(STAGE)/eni-max-pods.txt
	@$(TOOLBIN)/mkimage -arch $(subst $(space),$(comma),$(strip $(ARCH))) -version "$(VERSION)" -revision "$(REVISION)" -source "$(SOURCE)" -o $(ARCHIVES) $(ARGS) deploy/images/images.yaml

.PHONY: images-here
images-here: build reference # those of tests, beside the programs: those in dist/ may be a release's
	@$(MAKE) pack-images ARCH=$$($(GO) env GOHOSTARCH) ARCHIVES=$(BIN) ARGS=

# What deploy/images/images.yaml packs, for one architecture. This machine's programs are
# those of make build.
.PHONY: stage-%
stage-%: build reference
	@rm -rf $(STAGE)/$* && mkdir -p $(STAGE)/$*/bin $(STAGE)/$*/reference
	@root=$$(FRESH=$(FRESH) tools/release/rootfs.sh $*); ln -s "$$root" $(STAGE)/$*/root
	@if [ $* = "$$($(GO) env GOHOSTARCH)" ]; then \
		cp -l $(addprefix $(BIN)/,$(notdir $(IMAGED))) $(STAGE)/$*/bin/; cp -l $(BIN)/reference/* $(STAGE)/$*/reference/; \
	else \
		echo "building the programs of the images for $*"; \
		GOARCH=$* $(GOBUILD) -o $(STAGE)/$*/bin/ $(IMAGED); \
		GOARCH=$* $(GO) -C tools/reference build -ldflags "-s -w" -o $(CURDIR)/$(STAGE)/$*/reference/ tool; \
	fi

# Not empty where charts can have the version.
CHARTED   := $(shell grep -xE 'v?(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){2}(-[0-9A-Za-z.-]+)?' <<<"$(VERSION)")

.PHONY: dist
dist: checked ## pack cnictl and the charts in dist/: archives, .deb, .rpm, krew plugin, chart packages, checksums, SBOMs (VERSION=v1.2.3 SOURCE=https://…)
	@$(MAKE) pack-dist

# Of everything, with what says where it comes from. It is built only from a commit, and only if it
# could be checked. BUILDER is the URI of who builds, such as that of a workflow.
BUILDER   ?= $(SOURCE)
# What would build other bytes from the same commit. Go notes the commit in a clone, but not in a worktree.
PLAIN     := GOWORK=off GOFLAGS="-trimpath -buildvcs=false" GOAMD64=v1 GOARM64=v8.0 CGO_ENABLED=0

.PHONY: release
release: ## make images and dist in an empty dist/; refuses known vulnerabilities, an outdated Go, and what could not be checked (VERSION=v1.2.3 SOURCE=https://… BUILDER=https://…)
	@$(if $(CHARTED),,echo "release: $(VERSION) is no version such as v1.2.3; set VERSION"; exit 1)
	@$(MAKE) vuln $(PLAIN) VULN=required CHECK='-release dist -source "$(SOURCE)"'
	@$(MAKE) pack-images $(PLAIN) FRESH=required ARCHIVES=dist ARGS="-tag $(VERSION)"
	@$(MAKE) pack-dist $(PLAIN) PACKED=-images

.PHONY: pack-dist
pack-dist: $(TOOLBIN)/mkdist $(addprefix cnictl-,$(PLATFORMS)) $(if $(CHARTED),chart)
	@rm -rf .cache/dist/man .cache/dist/completions && mkdir -p .cache/dist/man .cache/dist/completions
	@$(GO) run -tags $(TAGS) ./cmd/cnictl/internal/man .cache/dist/man
	@for shell in bash zsh fish powershell; do .cache/dist/$$($(GO) env GOHOSTOS)_$$($(GO) env GOHOSTARCH)/cnictl completion $$shell >.cache/dist/completions/$$shell; done
	@$(if $(CHARTED),,echo "dist: no chart packages: $(VERSION) is no version such as v1.2.3, which Helm wants")
	@$(TOOLBIN)/mkdist -version "$(VERSION)" -source "$(SOURCE)" -revision "$(COMMITTED)" -builder "$(BUILDER)" $(if $(CHARTED),-charts dist/chart) -in .cache/dist -o dist $(PACKED)

.PHONY: cnictl-%
cnictl-%:
	@echo "building cnictl for $*"
	@GOOS=$(firstword $(subst _, ,$*)) GOARCH=$(lastword $(subst _, ,$*)) $(GOBUILD) -o .cache/dist/$*/cnictl ./cmd/cnictl

.PHONY: testimages
testimages: build $(TOOLBIN)/mkimage
	@$(TOOLBIN)/mkimage -version "$(VERSION)" -tag test -o $(BIN) testenv/kube/cluster/images.yaml

CHARTS    := deploy/chart/aws-vpc-cni deploy/chart/cni-metrics-helper

# The packages of the charts. Helm wants numbers: VERSION=v1.2.3. Its packages have the time
# of day, so they are packed again.
.PHONY: chart
chart: $(TOOLBIN)/helm ## package the Helm charts in dist/chart (VERSION=v1.2.3)
	@rm -rf .cache/chart dist/chart && mkdir -p .cache/chart dist/chart
	@$(TOOLBIN)/helm package $(CHARTS) --version $(VERSION:v%=%) --app-version $(VERSION) -d .cache/chart >/dev/null
	@for package in .cache/chart/*.tgz; do \
		tar -xmzf $$package -C .cache/chart; name=$$(basename $$package -$(VERSION:v%=%).tgz); \
		tar -C .cache/chart --sort=name --mtime=@$(SOURCE_DATE_EPOCH) --owner=0 --group=0 --numeric-owner --mode=go=rX,u=rwX -cf - $$name | gzip -9n >dist/chart/$$(basename $$package); \
		echo "dist/chart/$$(basename $$package)"; done

.PHONY: lint
lint: $(TOOLBIN)/golangci-lint $(TOOLBIN)/helm $(TOOLBIN)/mutants ## check formatting, vet, staticcheck, house rules, charts, alerts and dashboard, and that all mutants apply
	$(TOOLBIN)/helm lint --strict --quiet $(CHARTS)
	$(TOOLBIN)/golangci-lint run ./...
	$(TOOLBIN)/mutants -check
	tools/once.sh tools tools go.mod Makefile -- $(GO) -C tools vet ./...
	tools/once.sh tools-tests tools go.mod Makefile -- $(GO) -C tools test ./...
	$(GO) -C tools test -count=1 -run '^TestInputs$$' ./cmd/testlayers # it reads the whole module
	tools/once.sh monitoring tools/monitoring deploy/monitoring docs/metrics.md testenv/node/e2e/testdata Makefile -- sh -c '$(GO) -C tools/monitoring vet ./... && $(GO) -C tools/monitoring test -count=1 ./...'
	tools/once.sh release tools deploy/krew docs/install.md Makefile go.mod -- sh -c '$(GO) -C tools/release vet ./... && $(GO) -C tools/release test -count=1 ./...'

GENERATORS := $(TOOLBIN)/protogen $(TOOLBIN)/helm $(TOOLBIN)/thirdparty
THIRDPARTY  = $(TOOLBIN)/thirdparty $(addprefix $(BIN)/,$(notdir $(IMAGED))) $$(find $(BIN)/reference -type f | sort)

.PHONY: generate
generate: $(GENERATORS) build reference ## regenerate *.pb.go, zz_generated tables, plain manifests, deploy/iam and generated parts of docs/; fails on a licence that is not allowed
	@PATH="$(TOOLBIN):$$PATH" $(GO) generate ./...
	@$(THIRDPARTY) >$(TOOLBIN)/third-party.md
	@mv $(TOOLBIN)/third-party.md docs/third-party.md

# In a copy: nothing of the tree changes below those who read it meanwhile.
.PHONY: generated
generated: $(GENERATORS) build reference
	@rm -rf .cache/generated && mkdir -p .cache/generated
	@git ls-files -co --exclude-standard | while read -r f; do if [ -f "$$f" ]; then echo "$$f"; fi; done | xargs -d '\n' cp -P --parents -t .cache/generated
	@PATH="$(TOOLBIN):$$PATH" $(GO) -C .cache/generated generate ./...
	@$(THIRDPARTY) >.cache/generated/docs/third-party.md
	@stale=$$(diff -rq . .cache/generated | grep -v '^Only in \.[:/]' | grep -v '^Only in \.$$' || true); \
	if [ -n "$$stale" ]; then echo "these generated files are stale; run make generate and commit them:"; echo "$$stale"; exit 1; fi

# It needs https://vuln.go.dev and a module proxy, which a build machine may not reach.
VULN      ?=

.PHONY: vuln
vuln: build reference $(TOOLBIN)/govulncheck $(TOOLBIN)/checkbuild ## look for known vulnerabilities in what is linked into the programs and for a newer patch of Go, or print NOT CHECKED (VULN=required: fail)
	@$(TOOLBIN)/checkbuild -go $(GO) -govulncheck $(TOOLBIN)/govulncheck -probe $(BIN)/portmap -tags $(TAGS) -systems $(subst $(space),$(comma),$(sort $(foreach p,$(PLATFORMS),$(firstword $(subst _, ,$p))))) $(if $(VULN),-$(VULN)) $(CHECK)

# Those that differ most from what tests run here; nightly builds all.
BUILT     ?= linux_arm64 darwin_arm64

.PHONY: verify
verify: generated ## fail if generated files, go.mod or go.sum are stale, a licence is not allowed, or cnictl does not build for other platforms; look for known vulnerabilities
	@for module in . $$(git ls-files 'tools/**/go.mod' tools/go.mod | xargs -n1 dirname); do echo "$(GO) -C $$module mod tidy -diff"; $(GO) -C $$module mod tidy -diff; done
	$(GO) mod verify
	@$(MAKE) $(addprefix cnictl-,$(BUILT))
	@$(MAKE) -o build -o reference vuln

.PHONY: clean
clean: ## remove bin/ and the built tools
	rm -rf $(BIN) $(TOOLBIN)

# Tools are pinned in tools/go.mod and rebuilt when it changes.
TOOLSRC := tools/go.mod tools/go.sum $(shell find tools -name '*.go' 2>/dev/null)

$(TOOLBIN)/testlayers: $(TOOLSRC)
	@$(GO) -C tools build -o $@ ./cmd/testlayers

$(TOOLBIN)/mutants: $(TOOLSRC)
	@$(GO) -C tools build -o $@ ./mutants

$(TOOLBIN)/protogen: $(TOOLSRC)
	@$(GO) -C tools build -o $(TOOLBIN)/ ./cmd/protogen google.golang.org/protobuf/cmd/protoc-gen-go google.golang.org/grpc/cmd/protoc-gen-go-grpc

$(TOOLBIN)/helm: tools/helm/go.mod tools/helm/go.sum
	@GO="$(GO)" tools/tool.sh $@ tools/helm helm.sh/helm/v3/cmd/helm -ldflags "-s -w"

$(TOOLBIN)/govulncheck: tools/release/go.mod tools/release/go.sum
	@GO="$(GO)" tools/tool.sh $@ tools/release golang.org/x/vuln/cmd/govulncheck

$(TOOLBIN)/mkimage $(TOOLBIN)/mkdist $(TOOLBIN)/checkbuild $(TOOLBIN)/thirdparty: $(TOOLSRC) $(wildcard tools/release/go.*)
	@$(GO) -C tools/release build -o $@ ./cmd/$(@F)

$(TOOLBIN)/golangci-lint: tools/golangci/go.mod tools/golangci/go.sum
	@GO="$(GO)" tools/tool.sh $@ tools/golangci github.com/golangci/golangci-lint/v2/cmd/golangci-lint
