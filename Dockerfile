# syntax=docker/dockerfile:1
# Two images from one file: docker build --target recorder . and docker build --target worker .

FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG VERSION=dev
ARG TARGETOS
ARG TARGETARCH
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -ldflags "-s -w -X main.version=$VERSION" -o /out/ ./cmd/recorder ./cmd/worker

FROM gcr.io/distroless/static-debian12:nonroot AS recorder
COPY --from=build /out/recorder /usr/local/bin/recorder
USER nonroot
EXPOSE 8080 9090
ENTRYPOINT ["/usr/local/bin/recorder"]

FROM gcr.io/distroless/static-debian12:nonroot AS worker
COPY --from=build /out/worker /usr/local/bin/worker
USER nonroot
EXPOSE 9091
ENTRYPOINT ["/usr/local/bin/worker"]
