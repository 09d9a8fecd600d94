package vpc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"cnictl/daemon/api/cniwire"
	"cnictl/testenv/network/netns"
)

// These tests run the built binary as a container runtime does, with the daemon's socket
// at its real path: the test sandbox has its own /run. They share that path, so they cannot
// run in parallel.

// buildPlugin returns the binary that make test built (CNI_TEST_BIN), or one built once for
// the package. aws-cni-grpc is next to it.
var buildPlugin = sync.OnceValues(func() (string, error) {
	if bin := os.Getenv("CNI_TEST_BIN"); bin != "" {
		return filepath.Join(bin, "aws-cni"), nil
	}
	dir, err := os.MkdirTemp("", "aws-cni")
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", dir, "cnictl/cmd/aws-cni", "cnictl/cmd/aws-cni-grpc")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build aws-cni: %w\n%s", err, out)
	}
	return filepath.Join(dir, "aws-cni"), nil
})

// server is a daemon on the real socket that gives the test's answers.
type server struct {
	add func(*cniwire.AddRequest) *cniwire.AddReply
	del func(*cniwire.DelRequest) *cniwire.DelReply
	// policy answers for the policy agent; success if nil.
	policy func(*cniwire.PolicyRequest) *cniwire.PolicyReply

	mu       sync.Mutex
	adds     []cniwire.AddRequest
	dels     []cniwire.DelRequest
	policies []cniwire.PolicyRequest
}

// serve listens on the daemon's socket until the test ends.
func (s *server) serve(t *testing.T) *server {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(cniwire.Socket), 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", cniwire.Socket)
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Add(1)
	go func() {
		defer running.Done()
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			running.Add(1)
			go func() {
				defer running.Done()
				defer conn.Close()
				s.answer(t, conn)
			}()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		running.Wait()
	})
	return s
}

func (s *server) answer(t *testing.T, conn net.Conn) {
	frame, err := cniwire.ReadFrame(conn, nil)
	if errors.Is(err, io.EOF) {
		return // STATUS only checks that something listens
	}
	if err != nil {
		t.Errorf("daemon: %v", err)
		return
	}
	r, err := cniwire.DecodeRequest(frame)
	if err != nil {
		t.Errorf("daemon: %v", err)
		return
	}
	var reply []byte
	switch {
	case r.Add != nil:
		s.mu.Lock()
		s.adds = append(s.adds, *r.Add)
		s.mu.Unlock()
		reply = cniwire.AppendAddReply(nil, s.add(r.Add))
	case r.Policy != nil:
		s.mu.Lock()
		s.policies = append(s.policies, *r.Policy)
		s.mu.Unlock()
		answer := &cniwire.PolicyReply{Success: true}
		if s.policy != nil {
			answer = s.policy(r.Policy)
		}
		reply = cniwire.AppendPolicyReply(nil, answer)
	default:
		s.mu.Lock()
		s.dels = append(s.dels, *r.Del)
		s.mu.Unlock()
		reply = cniwire.AppendDelReply(nil, s.del(r.Del))
	}
	if _, err := conn.Write(reply); err != nil {
		t.Errorf("daemon: %v", err)
	}
}

func (s *server) requests() (adds []cniwire.AddRequest, dels []cniwire.DelRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.adds, s.dels
}

func (s *server) policyRequests() []cniwire.PolicyRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.policies
}

// gives answers every ADD with the same address.
func gives(address string, device, table int32) func(*cniwire.AddRequest) *cniwire.AddReply {
	return func(*cniwire.AddRequest) *cniwire.AddReply {
		return &cniwire.AddReply{Success: true, VPCv4CIDRs: []string{"10.0.0.0/16"},
			Allocations: []cniwire.Allocation{{IPv4: address, Device: device, RouteTable: table}}}
	}
}

func had(address string, device, table int32) func(*cniwire.DelRequest) *cniwire.DelReply {
	return func(*cniwire.DelRequest) *cniwire.DelReply {
		return &cniwire.DelReply{Success: true, Allocations: []cniwire.Allocation{{IPv4: address, Device: device, RouteTable: table}}}
	}
}

// sandbox is a pod sandbox as the runtime sees it.
type sandbox struct {
	node  *netns.NS
	id    string
	pod   string
	netns string
	log   string // of the plugin
	bin   string // the plugin; buildPlugin's if empty
}

func newSandbox(t *testing.T, node *netns.NS, id, pod, netnsPath string) *sandbox {
	t.Helper()
	return &sandbox{node: node, id: id, pod: pod, netns: netnsPath, log: filepath.Join(t.TempDir(), "plugin.log")}
}

func (s *sandbox) args() string {
	return "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=" + s.pod +
		";K8S_POD_INFRA_CONTAINER_ID=" + s.id + ";K8S_POD_UID=uid-" + s.pod
}

// stdin returns the configuration. more are additional members, each `,"key":value`.
func (s *sandbox) stdin(more ...string) string {
	return `{"cniVersion":"0.4.0","mtu":"9001","name":"aws-cni","pluginLogFile":"` + s.log + `","pluginLogLevel":"DEBUG",` +
		`"podSGEnforcingMode":"strict","runtimeConfig":{"io.kubernetes.cri.pod-annotations":{}},"type":"aws-cni","vethPrefix":"eni"` +
		strings.Join(more, "") + `}`
}

// run runs the binary in the node's namespace.
func (s *sandbox) run(ctx context.Context, command, stdin string, change ...string) (code int, stdout, stderr string, err error) {
	bin := s.bin
	if bin == "" {
		if bin, err = buildPlugin(); err != nil {
			return 0, "", "", err
		}
	}
	vars := append([]string{
		"CNI_COMMAND=" + command, "CNI_CONTAINERID=" + s.id, "CNI_NETNS=" + s.netns, "CNI_IFNAME=eth0",
		"CNI_ARGS=" + s.args(), "CNI_PATH=/opt/cni/bin",
	}, change...)
	cmd := exec.CommandContext(ctx, bin)
	var out, errOut bytes.Buffer
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = vars, strings.NewReader(stdin), &out, &errOut
	err = s.node.Do(cmd.Start) // the child runs in the network namespace of the thread that starts it
	if err == nil {
		err = cmd.Wait()
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), out.String(), errOut.String(), nil
	}
	return 0, out.String(), errOut.String(), err
}

// expect runs a command and compares exit code and output.
func (s *sandbox) expect(t *testing.T, command, stdin string, wantCode int, want string, change ...string) {
	t.Helper()
	code, out, errOut, err := s.run(t.Context(), command, stdin, change...)
	if err != nil {
		t.Fatal(err)
	}
	if code != wantCode || out != want {
		t.Errorf("%s: exit %d, want %d\ngot  %s\nwant %s\nstderr %s", command, code, wantCode, out, want, errOut)
	}
}

func (s *sandbox) logged(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(s.log)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
