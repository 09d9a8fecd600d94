package branch_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"cnictl/daemon/api/cniwire"
	"cnictl/testenv"
	"cnictl/testenv/network/netns"
)

const recordsDir = "/var/run/aws-node/attachments"

// server plays the daemon.
type server struct {
	add func(*cniwire.AddRequest) *cniwire.AddReply
	del func(*cniwire.DelRequest) *cniwire.DelReply

	mu   sync.Mutex
	dels []cniwire.DelRequest
}

func (s *server) serve(t *testing.T) *server {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(cniwire.Socket), 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", cniwire.Socket)
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // closed
			}
			s.answer(t, conn)
			conn.Close()
		}
	})
	t.Cleanup(func() {
		l.Close()
		done.Wait()
		if err := os.RemoveAll(recordsDir); err != nil {
			t.Error(err)
		}
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
		reply = cniwire.AppendAddReply(nil, s.add(r.Add))
	case r.Del != nil:
		s.mu.Lock()
		s.dels = append(s.dels, *r.Del)
		s.mu.Unlock()
		reply = cniwire.AppendDelReply(nil, s.del(r.Del))
	}
	if _, err := conn.Write(reply); err != nil {
		t.Errorf("daemon: %v", err)
	}
}

func (s *server) requests() (_ []cniwire.AddRequest, dels []cniwire.DelRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return nil, s.dels
}

// sandbox is a pod sandbox as the runtime sees it.
type sandbox struct {
	node           *netns.NS
	id, pod, netns string
	log            string
	plugin         string
}

func newSandbox(t *testing.T, node *netns.NS, id, pod, netnsPath string) *sandbox {
	t.Helper()
	bin := os.Getenv("CNI_TEST_BIN")
	if bin == "" {
		testenv.Missing(t, "binaries", "CNI_TEST_BIN is not set, and nothing is built in a guest", "make test")
	}
	return &sandbox{node: node, id: id, pod: pod, netns: netnsPath, log: filepath.Join(t.TempDir(), "plugin.log"), plugin: filepath.Join(bin, "aws-cni")}
}

func (s *sandbox) stdin(more ...string) string {
	return `{"cniVersion":"0.4.0","mtu":"9001","name":"aws-cni","pluginLogFile":"` + s.log + `","pluginLogLevel":"DEBUG",` +
		`"podSGEnforcingMode":"strict","type":"aws-cni","vethPrefix":"eni"` + strings.Join(more, "") + `}`
}

func (s *sandbox) env(command string) []string {
	return []string{
		"CNI_COMMAND=" + command, "CNI_CONTAINERID=" + s.id, "CNI_NETNS=" + s.netns, "CNI_IFNAME=eth0", "CNI_PATH=/opt/cni/bin",
		"CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=" + s.pod + ";K8S_POD_UID=uid-" + s.pod,
	}
}

func (s *sandbox) run(t *testing.T, command, stdin string, change ...string) (code int, stdout string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), s.plugin)
	var out bytes.Buffer
	cmd.Env = append(s.env(command), change...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, os.Stderr
	err := s.node.Do(cmd.Start) // the child runs in the network namespace of the thread that starts it
	if err == nil {
		err = cmd.Wait()
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

func (s *sandbox) expect(t *testing.T, command, stdin string, wantCode int, want string, change ...string) {
	t.Helper()
	if code, out := s.run(t, command, stdin, change...); code != wantCode || out != want {
		t.Errorf("%s: exit %d, want %d\ngot  %s\nwant %s\n%s", command, code, wantCode, out, want, s.logged(t))
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

// resultOf is the result of web-0. The tests of plugin/vpc compare such bytes with the CNI library's.
func resultOf(hostLink, address, vlan, netnsPath string) string {
	return `{
    "cniVersion": "0.4.0",
    "interfaces": [
        {
            "name": "` + hostLink + `"
        },
        {
            "name": "eth0",
            "mac": "0",
            "sandbox": "` + netnsPath + `"
        },
        {
            "name": "dummy0d7763386da",
            "mac": "` + vlan + `"
        }
    ],
    "ips": [
        {
            "version": "4",
            "interface": 1,
            "address": "` + address + `/32",
            "gateway": "10.0.0.1"
        }
    ],
    "dns": {}
}`
}

func do(t *testing.T, ns *netns.NS, f func() error) {
	t.Helper()
	if err := ns.Do(f); err != nil {
		t.Fatal(err)
	}
}

// ipRule prints the IPv4 rules that the kernel does not create itself.
func ipRule(t *testing.T, ns *netns.NS) string { return rulesOf(t, ns, netlink.FAMILY_V4) }

func rulesOf(t *testing.T, ns *netns.NS, family int) string {
	t.Helper()
	var lines []string
	do(t, ns, func() error {
		list, err := netns.Dump(func() ([]netlink.Rule, error) { return netlink.RuleList(family) })
		for _, r := range list {
			if r.Priority == 0 || r.Priority >= 32766 {
				continue
			}
			line := fmt.Sprintf("%5d:", r.Priority)
			if r.Src != nil {
				line += " from " + r.Src.IP.String()
			}
			if r.Dst != nil {
				line += " to " + r.Dst.IP.String()
			}
			if r.IifName != "" {
				line += " iif " + r.IifName
			}
			lines = append(lines, line+fmt.Sprintf(" lookup %d\n", r.Table))
		}
		return err
	})
	slices.Sort(lines)
	for i := range lines {
		lines[i] = strings.TrimLeft(lines[i], " ")
	}
	return strings.Join(lines, "")
}

func ipRoute(t *testing.T, ns *netns.NS) string {
	t.Helper()
	return strings.Join(append(routesOf(t, ns, unix.RT_TABLE_MAIN), ""), "\n")
}

func linkNames(t *testing.T, ns *netns.NS) (out []string) {
	t.Helper()
	do(t, ns, func() error {
		list, err := netns.Dump(netlink.LinkList)
		for _, l := range list {
			out = append(out, l.Attrs().Name)
		}
		return err
	})
	slices.Sort(out)
	return out
}

func recordsLeft(t *testing.T) (out []string) {
	t.Helper()
	list, err := os.ReadDir(recordsDir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range list {
		out = append(out, e.Name())
	}
	return out
}
