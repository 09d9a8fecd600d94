package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"
	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/install"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/node"
	"cnictl/testenv/node/agent"
)

// nodeExec makes libcni run plugins inside a node, and records what it runs.
type nodeExec struct {
	version.PluginDecoder
	node *node.Node
	path string // PATH of the plugins; if empty, the test's

	mu    sync.Mutex
	calls []string
}

func (e *nodeExec) FindInPath(plugin string, paths []string) (string, error) {
	return invoke.FindInPath(plugin, paths)
}

func (e *nodeExec) ExecPlugin(_ context.Context, path string, stdin []byte, environ []string) ([]byte, error) {
	e.note(filepath.Base(path), stdin, environ)
	if e.path != "" {
		environ = append(slices.DeleteFunc(environ, func(v string) bool { return strings.HasPrefix(v, "PATH=") }), "PATH="+e.path)
	}
	r, err := e.node.Exec(agent.Cmd{Argv: []string{path}, Env: environ, Stdin: stdin})
	if err != nil {
		return nil, err
	}
	if r.Code != 0 || r.TimedOut {
		var said types.Error
		if err := json.Unmarshal(r.Stdout, &said); err != nil {
			return nil, fmt.Errorf("exit status %d, stdout %q, stderr %q", r.Code, r.Stdout, r.Stderr)
		}
		return nil, &said
	}
	return r.Stdout, nil
}

// note records a call: plugin, command, version of the configuration, and the keys that the
// runtime added.
func (e *nodeExec) note(plugin string, stdin []byte, environ []string) {
	line := plugin
	for _, v := range slices.Backward(environ) {
		if command, ok := strings.CutPrefix(v, "CNI_COMMAND="); ok {
			line += " " + command
			break
		}
	}
	var conf map[string]json.RawMessage
	if err := json.Unmarshal(stdin, &conf); err != nil {
		line += " " + err.Error()
	}
	for _, key := range []string{"cniVersion", "prevResult", "cni.dev/valid-attachments"} {
		switch value, ok := conf[key]; {
		case !ok:
		case key == "cniVersion":
			line += " " + strings.Trim(string(value), `"`)
		default:
			line += " +" + key
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls = append(e.calls, line)
}

// took returns the calls since it was last called.
func (e *nodeExec) took() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	calls := e.calls
	e.calls = nil
	return calls
}

// runtime is a container runtime on a node: libcni over the built plugins.
type runtime struct {
	*libcni.CNIConfig
	node *node.Node
	exec *nodeExec
	logs string // of the plugin
	dir  string // of the cache
}

// newRuntime creates a runtime, with the helper plugin installed under the given names.
func (l *lab) newRuntime(n *node.Node, helpers ...string) *runtime {
	l.t.Helper()
	chained, err := buildChained()
	if err != nil {
		l.t.Fatal(err)
	}
	bin := l.t.TempDir()
	for _, name := range helpers {
		if err := os.Link(chained, filepath.Join(bin, name)); err != nil {
			if err = os.Symlink(chained, filepath.Join(bin, name)); err != nil {
				l.t.Fatal(err)
			}
		}
	}
	own, err := filepath.Abs(l.binaries)
	if err != nil {
		l.t.Fatal(err)
	}
	r := &runtime{node: n, exec: &nodeExec{node: n}, dir: l.t.TempDir(), logs: filepath.Join(n.Dir, "log", "plugin.log")}
	r.CNIConfig = libcni.NewCNIConfigWithCacheDir([]string{own, bin}, r.dir, r.exec)
	return r
}

// list renders a template as the node's entrypoint does.
func (r *runtime) list(t testing.TB, template string, change func(*install.Settings)) *libcni.NetworkConfigList {
	t.Helper()
	s := install.Defaults(false)
	s.PluginLogFile = r.logs
	if change != nil {
		change(&s)
	}
	text, err := install.Conflist(template, s)
	if err != nil {
		t.Fatal(err)
	}
	list, err := libcni.NetworkConfFromBytes(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return list
}

// sandbox creates a pod sandbox and the runtime configuration for it.
func (r *runtime) sandbox(t testing.TB, name string) (*node.Pod, *libcni.RuntimeConf) {
	t.Helper()
	p, err := r.node.NewSandbox(node.PodSpec{Namespace: "default", Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return p, &libcni.RuntimeConf{
		ContainerID: p.ContainerID, NetNS: p.Path, IfName: p.IfName,
		Args: [][2]string{{"IgnoreUnknown", "1"}, {"K8S_POD_NAMESPACE", p.Namespace}, {"K8S_POD_NAME", p.Name},
			{"K8S_POD_INFRA_CONTAINER_ID", p.ContainerID}, {"K8S_POD_UID", p.UID}},
		CapabilityArgs: map[string]any{"io.kubernetes.cri.pod-annotations": map[string]string{}},
	}
}

func (r *runtime) add(t testing.TB, list *libcni.NetworkConfigList, name string) (*node.Pod, *libcni.RuntimeConf) {
	t.Helper()
	p, rt := r.sandbox(t, name)
	result, err := r.AddNetworkList(t.Context(), list, rt)
	if err != nil {
		t.Fatal(err)
	}
	full, err := types100.NewResultFromResult(result)
	if err != nil {
		t.Fatal(err)
	}
	if len(full.IPs) != 1 {
		t.Fatalf("result %v", result)
	}
	ip, ok := netip.AddrFromSlice(full.IPs[0].Address.IP)
	if !ok {
		t.Fatalf("address %v", full.IPs[0])
	}
	p.IP = ip.Unmap()
	return p, rt
}

// code returns the CNI code of an error that a plugin printed, 0 for any other error.
func code(err error) (code uint, msg string) {
	var said *types.Error
	if errors.As(err, &said) {
		return said.Code, said.Msg
	}
	return 0, ""
}

// TestVerbs_ShippedConflist: with upstream's conflist runtimes run no CHECK, STATUS or GC, as
// on upstream's nodes; if cniVersions is offered they do, with 1.1.0.
func TestVerbs_ShippedConflist(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	n := l.boot("m5.large", nil)
	r := l.newRuntime(n, "egress-cni", "portmap")
	ctx := t.Context()
	for _, row := range []struct {
		name   string
		change func(*install.Settings)
		want   []string
	}{
		{"as upstream's", nil, []string{
			"aws-cni ADD 0.4.0", "egress-cni ADD 0.4.0 +prevResult", "portmap ADD 0.4.0 +prevResult",
			"portmap DEL 0.4.0 +prevResult", "egress-cni DEL 0.4.0 +prevResult", "aws-cni DEL 0.4.0 +prevResult",
		}},
		{"without egress", func(s *install.Settings) { s.OmitEgress = true }, []string{
			"aws-cni ADD 0.4.0", "portmap ADD 0.4.0 +prevResult", "portmap DEL 0.4.0 +prevResult", "aws-cni DEL 0.4.0 +prevResult",
		}},
		{"versions offered", func(s *install.Settings) { s.CNIVersions = install.AllCNIVersions() }, []string{
			"aws-cni ADD 1.1.0", "egress-cni ADD 1.1.0 +prevResult", "portmap ADD 1.1.0 +prevResult",
			"aws-cni STATUS 1.1.0", "egress-cni STATUS 1.1.0", "portmap STATUS 1.1.0",
			"portmap DEL 1.1.0 +prevResult", "egress-cni DEL 1.1.0 +prevResult", "aws-cni DEL 1.1.0 +prevResult",
			"aws-cni GC 1.1.0 +cni.dev/valid-attachments", "egress-cni GC 1.1.0 +cni.dev/valid-attachments", "portmap GC 1.1.0 +cni.dev/valid-attachments",
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			r.exec.took()
			list := r.list(t, install.Template, row.change)
			p, rt := r.add(t, list, "web-0")
			for what, err := range map[string]error{
				"CHECK": r.CheckNetworkList(ctx, list, rt), "STATUS": r.GetStatusNetworkList(ctx, list), "DEL": r.DelNetworkList(ctx, list, rt),
			} {
				if err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
			if err := r.GCNetworkList(ctx, list, &libcni.GCArgs{ValidAttachments: []types.GCAttachment{}}); err != nil {
				t.Errorf("GC: %v", err)
			}
			if diff := cmp.Diff(row.want, r.exec.took()); diff != "" {
				t.Errorf("commands (-want +got):\n%s", diff)
			}
			if err := n.RemoveSandbox(p); err != nil {
				t.Error(err)
			}
		})
	}
	l.nothingLeft(n)
}

// buildChained builds testdata/chained once for the package.
var buildChained = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "chained")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "chained")
	build := exec.Command("go", "build", "-trimpath", "-o", bin, "./testdata/chained")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build testdata/chained: %w\n%s", err, out)
	}
	return bin, nil
})
