# Every target that people use carries a "##" text; `make help` prints them.
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
# Paths are trimmed everywhere, so that tests and binaries share the build cache.
export GOFLAGS ?= -trimpath
# Without grpc's trace pages nothing looks methods up by name, so that the linker leaves
# out the 800 EC2 actions that nobody calls: a third of the size, and 11 MB less memory.
TAGS      := grpcnotrace
GOBUILD   := $(GO) build -tags $(TAGS) -ldflags "$(LDFLAGS)"

MAINS     := $(patsubst %/,./%,$(dir $(wildcard cmd/*/main.go testenv/cmd/*/main.go)))

LAYERS    ?= pure,adapter,binary,cluster,race
LANES     ?= 2
RUN       ?=
COUNT     ?= 1
FUZZTIME  ?= 10s
SEEDS     ?= 2000
SEED_START ?= 1
FLEET     ?= 1000
NODES     ?= 3
VERBOSE   ?=
ARGS      ?=

# As root nothing has an excuse to be skipped.
ifeq ($(shell id -u),0)
export CNI_TEST_REQUIRE ?= root
endif

.PHONY: help
help: ## print this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "variables: LAYERS=pure,adapter,binary,cluster,race  LANES=2  RUN=<test regexp>  COUNT=<n>  UPDATE=1  FUZZTIME=10s  SEEDS=2000  SEED_START=1  FLEET=1000  VERBOSE=1  ARGS=<for demo and bench>"

.PHONY: deps
deps: ## install the Debian packages that tests and the demo need (root), or print the apt line
	@./.ci/deps

# Programs of Kubernetes, built once a version into a cache beside other checkouts.
.PHONY: kube
kube: ## get kube-apiserver (built from source: some minutes, once) and etcd for the tests with a Kubernetes API
	@GO="$(GO)" tools/kube/build.sh >/dev/null

# For tests of what few kernels have: 802.1q VLAN.
.PHONY: uml
uml: ## get user-mode Linux out of Debian's packages (seconds, once) for the tests with branch ENIs
	@tools/uml/build.sh >/dev/null

.PHONY: build
build: ## build every binary into bin/
	@mkdir -p $(BIN)
	$(GOBUILD) -o $(BIN)/ $(MAINS)
	@ln -f $(BIN)/cnictl $(BIN)/kubectl-cni # "kubectl cni", and what kubectl asks for its completions
	@install -m 755 deploy/krew/kubectl_complete-cni $(BIN)/

# For krew's index; BASE is where the archives will be.
.PHONY: krew
krew: ## build the archives and the manifest of the krew plugin into dist/krew (VERSION=v1.2.3 BASE=https://…)
	@VERSION=$(VERSION) BASE=$(BASE) GO="$(GO)" deploy/krew/build.sh dist/krew

# The daemon and the plugin once more, with points at which tests make them die.
.PHONY: crash
crash:
	@mkdir -p $(BIN)/crash
	$(GO) build -tags $(TAGS),crashpoints -ldflags "$(LDFLAGS)" -o $(BIN)/crash/ ./cmd/aws-k8s-agent ./cmd/aws-cni

.PHONY: kube-cluster
kube-cluster:
	@GO="$(GO)" tools/kube/build.sh cluster >/dev/null

.PHONY: cluster
cluster: deps kube-cluster build reference ## run a real Kubernetes cluster on this machine as root (NODES=3 ARGS="--env WARM_IP_TARGET=4"), in the background until make cluster-down
	@$(BIN)/cluster up --nodes $(NODES) $(ARGS)

.PHONY: cluster-down
cluster-down: ## end what make cluster started, and remove its files
	@$(BIN)/cluster down $(ARGS)

# Some minutes: not a part of test, which has a short one.
.PHONY: soak
soak: deps kube-cluster build reference ## put 2,000 pods on a node as root while the daemon is killed every 20 s (ARGS="--quick"): nothing may be left, doubled or failed
	@$(BIN)/soak $(ARGS)

.PHONY: demo
demo: deps build ## run three simulated nodes with real daemons and plugins (ARGS=--once: one bounded round)
	@$(BIN)/demo $(ARGS)

.PHONY: test
test: $(if $(filter pure,$(LAYERS)),,deps kube uml reference) $(if $(findstring cluster,$(LAYERS)),kube-cluster images) build crash $(TOOLBIN)/testlayers ## run the test layers (LAYERS=pure,adapter,binary,cluster,race), LANES=2 at a time; UPDATE=1 rewrites the list of required tests
	@CNI_TEST_BIN=$(BIN) $(TOOLBIN)/testlayers -layers "$(LAYERS)" -lanes $(LANES) -run "$(RUN)" -count $(COUNT) $(if $(UPDATE),-update)

.PHONY: fuzz
fuzz: $(TOOLBIN)/testlayers ## run every fuzz target for FUZZTIME each
	@$(TOOLBIN)/testlayers -fuzz $(FUZZTIME) -run "$(RUN)"

.PHONY: lists
lists: $(TOOLBIN)/testlayers ## put new tests that must run and new fuzz targets into their lists in testenv/, and take gone ones out
	@$(TOOLBIN)/testlayers -lists -update

# A run of many seeds also shows that it would find mistakes.
.PHONY: sim
sim: ## play seeds of the simulation (SEEDS=2000 SEED_START=1), then FLEET=1000 nodes that scale up together (0: none); VERBOSE=1 prints all that happens
	@mkdir -p $(BIN)
	@$(GOBUILD) -o $(BIN)/ ./testenv/cmd/sim
	@$(BIN)/sim -seeds $(SEEDS) -start $(SEED_START) $(if $(VERBOSE),-v)
	@if [ $(SEEDS) -ge 500 ]; then $(BIN)/sim -mistakes 500; fi
	@if [ $(FLEET) -gt 0 ] && [ -z "$(VERBOSE)" ]; then $(BIN)/sim -fleet $(FLEET); fi

.PHONY: bench
bench: deps build reference ## measure ADD/DEL beside the process floor and the reference plugins; then the Go benchmarks of the pure core
	@$(BIN)/bench $(ARGS)
	$(GO) test -run '^$$' -bench . -benchmem -benchtime 2000x ./daemon/ipam/... ./daemon/warmpool/... ./daemon/keeper/... ./daemon/resync/... ./daemon/api/...

# What it measured is compared with a file, and is no test: machines differ.
.PHONY: bench-scale
bench-scale: deps kube build ## measure start, growth, memory and CPU of the daemon beside the original's figures and docs/performance-baseline.json (ARGS=--write: a new baseline)
	@$(BIN)/benchscale --baseline docs/performance-baseline.json $(ARGS)

.PHONY: bench-tui
bench-tui: build ## measure cnictl and its screens on a pseudo-terminal before 5,000 simulated nodes, beside their targets and eks-node-viewer's figures (ARGS=--quick)
	@$(BIN)/benchtui $(ARGS)

# Ten minutes: not a part of test, which has a short one.
.PHONY: soak-tui
soak-tui: build ## watch a fleet of 5,000 simulated nodes on the screens for ten minutes: memory, goroutines, sockets and frames must stay within bounds (ARGS="--for 2m")
	@$(BIN)/benchtui --phases soak $(ARGS)

# The reference plugins: those that images bring to a node, and those that the bench runs
# beside ours, built as statically and as small.
.PHONY: reference
reference:
	@mkdir -p $(BIN)/reference
	@$(GO) -C tools/reference build -ldflags "-s -w" -o $(BIN)/reference/ tool
	@cp -f $(BIN)/reference/portmap $(BIN)/portmap.reference # beside ours, as on a node

# Archives for "docker load" and "ctr images import"; deploy/images has the same for Docker.
.PHONY: images
images: build reference ## pack the images of aws-node into dist/ without Docker (ARGS="-tag v1")
	@$(BIN)/mkimage -bin $(BIN) -reference $(BIN)/reference -root "$$(tools/images/rootfs.sh)" -o dist $(ARGS)

.PHONY: lint
lint: $(TOOLBIN)/golangci-lint ## formatting, vet, staticcheck, house rules, import floors
	$(TOOLBIN)/golangci-lint run ./...
	$(GO) -C tools vet ./...
	$(GO) -C tools test ./...
	$(GO) test -count=1 ./testenv/archtest/...

.PHONY: generate
generate: $(TOOLBIN)/protogen ## regenerate *.pb.go, zz_generated tables and the generated parts of docs/
	@PATH="$(TOOLBIN):$$PATH" $(GO) generate ./...

# Beside this machine's: what deploy/krew builds for. Warm it is seconds, cold a minute.
KREW := linux_arm64 darwin_amd64 darwin_arm64

.PHONY: verify
verify: $(TOOLBIN)/testlayers ## fail when generated files, go.mod, go.sum or the lists of tests are not what their sources say, or cnictl does not build for a platform of krew
	@$(TOOLBIN)/testlayers -lists # first: it takes a second
	@generated() { git ls-files -co --exclude-standard -- '*.pb.go' '*zz_generated*' docs README.md | sort | xargs -r sha256sum; }; \
	before=$$(generated); $(MAKE) generate; after=$$(generated); \
	if [ "$$before" != "$$after" ]; then \
		echo "these generated files were stale (now rewritten, please commit):"; \
		diff <(echo "$$before") <(echo "$$after") | awk '/^>/ {print "  " $$3}'; exit 1; fi
	$(GO) mod tidy -diff
	$(GO) -C tools mod tidy -diff
	$(GO) -C tools/golangci mod tidy -diff
	$(GO) -C tools/reference mod tidy -diff
	$(GO) -C tools/kube mod tidy -diff
	$(GO) mod verify
	@for platform in $(KREW); do echo "build cnictl for $$platform"; \
		GOOS=$${platform%_*} GOARCH=$${platform#*_} $(GO) build -tags $(TAGS) -ldflags "-s -w" -o .cache/cross/cnictl_$$platform ./cmd/cnictl; done

.PHONY: clean
clean: ## remove bin/ and the built tools
	rm -rf $(BIN) $(TOOLBIN)

# Tools are pinned in tools/go.mod and built once per change of it.
TOOLSRC := tools/go.mod tools/go.sum $(shell find tools -name '*.go' 2>/dev/null)

$(TOOLBIN)/testlayers: $(TOOLSRC)
	@$(GO) -C tools build -o $@ ./cmd/testlayers

$(TOOLBIN)/protogen: $(TOOLSRC)
	@$(GO) -C tools build -o $(TOOLBIN)/ ./cmd/protogen google.golang.org/protobuf/cmd/protoc-gen-go google.golang.org/grpc/cmd/protoc-gen-go-grpc

$(TOOLBIN)/golangci-lint: tools/golangci/go.mod tools/golangci/go.sum
	@echo "building golangci-lint (a minute, once)"
	@$(GO) -C tools/golangci build -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
