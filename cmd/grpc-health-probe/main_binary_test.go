package main_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
)

// built builds the binary as make build does.
func built(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "grpc-health-probe")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", bin, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return bin
}

func serve(t *testing.T, network, addr string, register func(*grpc.Server)) string {
	t.Helper()
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	register(s)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return l.Addr().String()
}

func healthOf(statuses map[string]healthpb.HealthCheckResponse_ServingStatus) func(*grpc.Server) {
	return func(s *grpc.Server) {
		h := health.NewServer()
		for name, status := range statuses {
			h.SetServingStatus(name, status)
		}
		healthpb.RegisterHealthServer(s, h)
	}
}

// silent does not answer until its client disconnects.
type silent struct {
	healthpb.UnimplementedHealthServer
}

func (silent) Check(ctx context.Context, _ *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// agents serves health checks and passes on the user agent of each request.
type agents struct {
	healthpb.UnimplementedHealthServer
	seen chan string
}

func (a agents) Check(ctx context.Context, _ *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	a.seen <- strings.Join(md.Get("user-agent"), " ")
	return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}, nil
}

func TestProbe(t *testing.T) {
	t.Parallel()
	bin := built(t)
	dir, err := os.MkdirTemp("", "probe") // a socket path has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "ipamd.sock")
	statuses := healthOf(map[string]healthpb.HealthCheckResponse_ServingStatus{
		"grpc.health.v1.aws-node": healthpb.HealthCheckResponse_SERVING,
		"down":                    healthpb.HealthCheckResponse_NOT_SERVING,
	})
	serve(t, "unix", socket, statuses)
	tcp := serve(t, "tcp", "127.0.0.1:0", statuses)
	_, port, err := net.SplitHostPort(tcp)
	if err != nil {
		t.Fatal(err)
	}
	mute := serve(t, "tcp", "127.0.0.1:0", func(s *grpc.Server) { healthpb.RegisterHealthServer(s, silent{}) })
	bare := serve(t, "tcp", "127.0.0.1:0", func(*grpc.Server) {})
	seen := make(chan string, 1)
	agent := serve(t, "tcp", "127.0.0.1:0", func(s *grpc.Server) { healthpb.RegisterHealthServer(s, agents{seen: seen}) })
	// A listener that accepts and stays silent is not a gRPC server.
	deaf, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { deaf.Close() })

	for name, tc := range map[string]struct {
		args []string
		code int
		text string
	}{
		"unix socket":        {[]string{"-addr=unix://" + socket, "-connect-timeout=5s", "-rpc-timeout=5s"}, 0, "status: SERVING"},
		"host and port":      {[]string{"-addr", tcp}, 0, "status: SERVING"},
		"port":               {[]string{"-addr=:" + port}, 0, "status: SERVING"},
		"named service":      {[]string{"-addr", tcp, "-service", "grpc.health.v1.aws-node"}, 0, "status: SERVING"},
		"verbose":            {[]string{"-addr", tcp, "-v"}, 0, "connected after"},
		"no address":         {nil, 1, "-addr not specified"},
		"unknown flag":       {[]string{"-addr", tcp, "-tls"}, 1, "-tls"},
		"argument":           {[]string{"-addr", tcp, "extra"}, 1, `"extra"`},
		"no connect time":    {[]string{"-addr", tcp, "-connect-timeout", "0s"}, 1, "-connect-timeout must be greater than zero"},
		"no call time":       {[]string{"-addr", tcp, "-rpc-timeout", "-1s"}, 1, "-rpc-timeout must be greater than zero"},
		"bad duration":       {[]string{"-addr", tcp, "-rpc-timeout", "5"}, 1, "-rpc-timeout"},
		"no socket":          {[]string{"-addr=unix://" + socket + ".none", "-connect-timeout=100ms"}, 2, "no such file or directory"},
		"nothing listens":    {[]string{"-addr=127.0.0.1:1", "-connect-timeout=100ms"}, 2, "connection refused"},
		"not a gRPC server":  {[]string{"-addr", deaf.Addr().String(), "-connect-timeout=100ms"}, 2, "within 100ms"},
		"no answer":          {[]string{"-addr", mute, "-rpc-timeout=100ms"}, 3, "no answer within 100ms"},
		"no health protocol": {[]string{"-addr", bare}, 3, "does not implement the grpc health protocol"},
		"unknown service":    {[]string{"-addr", tcp, "-service", "other"}, 3, `does not know service "other"`},
		"not serving":        {[]string{"-addr", tcp, "-service", "down"}, 4, "NOT_SERVING"},
		"user agent":         {[]string{"-addr", agent, "-user-agent", "kubelet-probe"}, 0, "status: SERVING"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), bin, tc.args...).CombinedOutput()
			code := 0
			if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
				code = exit.ExitCode()
			} else if err != nil {
				t.Fatal(err)
			}
			if code != tc.code || !strings.Contains(string(out), tc.text) {
				t.Errorf("exit %d, want %d; output %q, want %q in it", code, tc.code, out, tc.text)
			}
		})
	}
	if got := <-seen; !strings.HasPrefix(got, "kubelet-probe ") {
		t.Errorf("user agent %q", got)
	}
}

// TestProbeWaitsForTheServer: a server that appears within the connect timeout is found.
func TestProbeWaitsForTheServer(t *testing.T) {
	t.Parallel()
	bin := built(t)
	dir, err := os.MkdirTemp("", "probe")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	cmd := exec.CommandContext(t.Context(), bin, "-addr", fmt.Sprintf("unix://%s", socket), "-connect-timeout", "20s")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	serve(t, "unix", socket, healthOf(nil))
	if err := cmd.Wait(); err != nil {
		t.Errorf("probe: %v", err)
	}
}
