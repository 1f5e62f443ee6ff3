VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
FUZZTIME ?= 1m
SOAK     ?= 15m

.PHONY: help test chaos soak build lint tidy-check fuzz image run clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: ## install what the tests need, then run them all under the race detector
	scripts/setup.sh redis-server cc chromium promtool
	go test -race -shuffle=on -timeout 10m ./...

chaos: ## break things under load, for some ten minutes
	scripts/setup.sh redis-server cc
	go test -race -count=1 -timeout 15m -parallel 4 ./chaos -full

soak: ## let load, passes and restarts go on for SOAK, and look for what grows
	scripts/setup.sh redis-server cc
	go test -race -count=1 -timeout 0 -v ./chaos -run '^TestSoak$$' -soak $(SOAK)

build: ## build static binaries into bin/
	mkdir -p bin
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o bin/ ./cmd/...

lint: ## check the formatting, go vet and golangci-lint
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "not formatted with gofmt: $$unformatted" >&2; exit 1; }
	go vet ./...
	scripts/golangci-lint.sh run --allow-serial-runners

tidy-check: ## check that go.mod and go.sum are what go mod tidy makes
	go mod tidy -diff

fuzz: ## run each fuzz target for FUZZTIME
	scripts/fuzz.sh $(FUZZTIME)

image: ## build the recorder's and the worker's container images
	docker build --target recorder --build-arg VERSION=$(VERSION) --tag headcount-recorder:$(VERSION) .
	docker build --target worker --build-arg VERSION=$(VERSION) --tag headcount-worker:$(VERSION) .

run: ## try it without a Redis, with 200 simulated viewers
	go run ./cmd/standalone --simulate 200

clean: ## remove what was built
	rm -rf bin
