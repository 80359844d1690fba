# Wherry: two commands matter to a newcomer, `make run` and `make test`.
# Each module builds by itself, so no workspace file may reach in.
export GOWORK := off
# Tests share the machine with builds: a server may take long to start and to stop, which is no failure.
export KUBEBUILDER_CONTROLPLANE_START_TIMEOUT ?= 2m
export KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT ?= 2m
# Stamping the repository's state would make every build differ.
export GOFLAGS := -buildvcs=false

SERVER := $(CURDIR)/bin/apiserver
DATA   := $(CURDIR)/.wherry
API    := test/apiparity/controller-runtime-v0.25.1.txt

OURS   := -mod=mod -modfile=$(CURDIR)/bin/ours.mod

# Kubernetes is 1.37 here; the race detector never meets a package that links it.
RACE_SERVER := ./storage/...

.DEFAULT_GOAL := help

.PHONY: help run test test-root test-store test-server test-test test-bench test-examples test-operator test-compat test-release race bench bench-build bench-storage behaviour api compat apiserver release lint tidy

help: ## Say what each target does.
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: apiserver ## Run the ReplicaSet example on the embedded API server; Ctrl-C stops both, data stays in .wherry.
	@go build -o bin/replicaset ./examples/replicaset
	@$(SERVER) --data-dir $(DATA) --kubeconfig $(DATA)/kubeconfig exec -- bin/replicaset --sample

test: test-root test-store test-test test-server test-examples test-operator test-bench test-compat test-release api ## Run every module's tests (12 minutes on 2 cores; from empty caches, modules and API server included, 31).

test-root: ## Root module, with the race detector (2 minutes).
	go test -race ./...

test-store: ## The storage engine, with the race detector (5 minutes).
	cd test/apiserver && go test -race -timeout 20m $(RACE_SERVER)

test-test: apiserver ## Integration tests on the embedded API server, with the race detector (5 minutes).
	cd test && WHERRY_APISERVER=$(SERVER) go test -race -timeout 20m ./...

test-server: apiserver ## The embedded API server itself (5 minutes).
	cd test/apiserver && WHERRY_APISERVER=$(SERVER) go test -timeout 20m $$(go list ./... | grep -v /storage/)

test-bench: apiserver ours.mod ## What runs on both libraries: turns on one lease, and the behaviour suite on each (4 minutes).
	cd test/bench && WHERRY_APISERVER=$(SERVER) go test ./...
	cd test/bench && WHERRY_APISERVER=$(SERVER) go test $(OURS) ./behaviour

test-compat: ## The module of controller-runtime's import paths: up to date, whole, and working (2 minutes).
	cd test/apiparity && go test ./...
	cd compat && go vet ./... && go test ./...

test-examples: apiserver ## The README's first operator (1 minute).
	cd examples/greeter && go vet ./... && WHERRY_APISERVER=$(SERVER) go test ./...

test-operator: apiserver ## The scaffold: is what it generates up to date, its test, and that of a copy renamed as its README says (2 minutes).
	@cd examples/operator && state() { find . -type f | sort | xargs cksum; } && before=$$(state) && $(MAKE) -s generate && \
		test "$$before" = "$$(state)" || { echo "make generate in examples/operator changed files; keep what it wrote"; exit 1; }
	cd examples/operator && WHERRY_APISERVER=$(SERVER) $(MAKE) -s test
	@module=$$(go list -m) && copy=$$(mktemp -d) && trap "rm -rf $$copy" EXIT && cp -R examples/operator/. $$copy && cd $$copy && \
		go mod edit -replace $$module=$(CURDIR) -replace $$module/test=$(CURDIR)/test && git init -q && git add -A && \
		{ echo set -e; sed -n '/^perl/,/^make/p' README.md; } | WHERRY_APISERVER=$(SERVER) sh && ls internal/controller/guestbook_controller.go

test-release: apiserver ## All modules published to a throw-away proxy and used by a stranger (6 minutes; it builds the server as a stranger does).
	cd test/release && go vet . && go test -count=1 -v -timeout 40m .

race: ## Root module and storage engine, five times over with the race detector.
	go test -race -count=5 ./...
	cd test/apiserver && go test -race -count=5 -timeout 60m $(RACE_SERVER)

# Where results are kept; what a run does not measure stays as it was.
FIGURES = -json $(CURDIR)/docs/bench.json -chart $(CURDIR)/docs/bench.svg -readme $(CURDIR)/README.md -keep

bench: apiserver ## Measure against controller-runtime v0.25.1, side by side (12 minutes); results also in docs/bench.json, docs/bench.svg and the README.
	@cd test/bench && WHERRY_APISERVER=$(SERVER) go run . $(FIGURES)

bench-build: ## Measure what a build from an empty cache costs against controller-runtime v0.25.1 (4 minutes); results where make bench keeps its own.
	@cd test/bench && go run . -only '^build' $(FIGURES)

bench-storage: ## Measure the storage engine against etcd3, in one process; results also in bin/bench-storage.json.
	@mkdir -p bin && cd test/apiserver && go run -tags etcd ./storage/storagebench -json $(CURDIR)/bin/bench-storage.json

behaviour: apiserver ours.mod ## Observe anew what both libraries do in the behaviour suite, and write its table.
	cd test/bench && WHERRY_APISERVER=$(SERVER) go test -count=1 -run Cases ./behaviour -update
	cd test/bench && WHERRY_APISERVER=$(SERVER) go test -count=1 $(OURS) -run Cases ./behaviour -update
	cd test/bench && WHERRY_APISERVER=$(SERVER) go test ./behaviour -run Kept

# The bench module with one replace line more: what is written against controller-runtime's paths runs on Wherry.
.PHONY: ours.mod
ours.mod:
	@mkdir -p bin && cp test/bench/go.mod bin/ours.mod && cp test/bench/go.sum bin/ours.sum
	@go mod edit -replace sigs.k8s.io/controller-runtime=../../compat bin/ours.mod

api: ## Compare our exported API with controller-runtime's, package by package; fail on a gap that is no listed exception.
	@cd test/apiparity && go test ./... >/dev/null && go run . check -exceptions exceptions.txt $(CURDIR)/$(API) $(CURDIR) $(CURDIR)/test

compat: ## Write compat's aliases anew, from the packages behind them.
	@cd test/apiparity && go run . alias $(CURDIR)/$(API) $(CURDIR) $(CURDIR)/test $(CURDIR)/compat

apiserver: ## Build the embedded API server into bin/ (first time: several minutes).
	@cd test && go run ./envtest/build -o $(SERVER) >/dev/null

release: ## Tag all modules at VERSION, such as v0.1.0, on a commit beside the branch; prints how to push them.
	@cd test/release && go run . tag $(VERSION)

# Its exit status is 3 when it found something; any other means that it could not look, as without its data.
GOVULNCHECK = golang.org/x/vuln/cmd/govulncheck@v1.1.4

lint: ## gofmt and vet over every module, also for macOS and Windows; known vulnerabilities of the root module.
	@test -z "$$(gofmt -l .)" || { gofmt -l . ; echo "run gofmt -w on these" ; exit 1 ; }
	go vet ./...
	GOOS=darwin go vet ./...
	GOOS=windows go vet ./...
	cd test && go vet ./...
	cd test && GOOS=darwin go vet ./envtest/...
	cd test && GOOS=windows go vet ./envtest/...
	cd test/apiserver && go vet ./...
	cd test/apiparity && go vet ./...
	cd test/bench && go vet ./...
	cd compat && go vet ./...
	cd examples/operator && go vet ./...
	cd examples/greeter && go vet ./...
	cd test/release && go vet ./...
	@GOBIN=$(CURDIR)/bin go install $(GOVULNCHECK) || { echo "vulnerabilities: not checked, govulncheck cannot be had" ; exit 0 ; } ; \
		$(CURDIR)/bin/govulncheck ./... ; status=$$? ; \
		case $$status in 0) ;; 3) exit 3 ;; *) echo "vulnerabilities: not checked, see above" ;; esac

tidy: ## go mod tidy in every module.
	@for m in . test test/apiserver test/apiparity test/bench compat examples/operator examples/greeter test/release; do (cd $$m && go mod tidy) || exit 1; done
