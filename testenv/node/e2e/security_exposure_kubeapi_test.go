package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"cnictl/daemon/api/introspect"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/node"
	"cnictl/testenv/node/agent"
)

// Credentials in AWS's format; none is valid.
const (
	secretKeyID   = "AKIAIOSFODNN7EXAMPLE"
	secretKey     = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
	secretSession = "IQoJb3JpZ2luX2VjEXAMPLESESSIONTOKEN"
	secretProxy   = "proxy-hunter2"
	secretOther   = "other-hunter2"
)

// TestExposure gives a daemon every kind of credential, lets it work and fail in many ways,
// collects everything that others can read, and finds none of them.
func TestExposure(t *testing.T) {
	t.Parallel()
	c := newCluster(t, fakeaws.Options{})
	m := c.join(fakeaws.InstanceSpec{Type: "t3.small"}) // three addresses for pods on each of three ENIs
	kubeconfig := m.proxy.Kubeconfig(t, "aws-node")
	socket := filepath.Join(m.Dir, "i.sock")
	c.start(m.Node, map[string]string{
		"MY_NODE_NAME": m.name, "KUBECONFIG": kubeconfig, "CNI_ADD_WAIT": "2s",
		"INTROSPECTION_BIND_ADDRESS": "unix:" + socket, "WARM_ENI_TARGET": "0",

		"AWS_ACCESS_KEY_ID": secretKeyID, "AWS_SECRET_ACCESS_KEY": secretKey, "AWS_SESSION_TOKEN": secretSession,
		"AWS_CONTAINER_AUTHORIZATION_TOKEN": secretOther, "DATABASE_PASSWORD": secretOther,
		"HTTPS_PROXY": "http://me:" + secretProxy + "@127.0.0.1:1",
	})
	// EC2 echoes the request in its error, including the token.
	c.breakEC2(fakeaws.Rule{Action: create, Fault: fakeaws.Fault{Code: "SignatureDoesNotMatch", Status: 403, Message: "The Canonical String for this request should have been\n'POST\n/\n\n" +
		"x-amz-security-token:" + secretSession + "\n'. Authorization: AWS4-HMAC-SHA256 Credential=" + secretKeyID + "/20261121/us-west-2/ec2/aws4_request"}})

	secrets := map[string]string{
		"access key id": secretKeyID, "secret access key": secretKey, "session token": secretSession,
		"proxy's password": secretProxy, "another secret": secretOther, "API token": apiToken(t, kubeconfig),
	}
	for i, token := range c.world.MetadataTokens(m.InstanceID) {
		secrets[fmt.Sprint("metadata token ", i)] = token
	}
	if len(secrets) < 7 {
		t.Fatal("the daemon asked for no metadata token")
	}
	readable := map[string]string{} // by location
	m.workAndFail(t, secrets, readable)
	m.collect(t, socket, readable)
	for where, text := range readable {
		for what, secret := range secrets {
			// The plugin's log contains the runtime's request, in upstream's words; only root
			// can read it.
			if where == "file plugin.log" && strings.HasPrefix(what, "container id") {
				continue
			}
			if at := strings.Index(text, secret); at >= 0 {
				t.Errorf("%s shows the %s: …%s…", where, what, text[max(0, at-200):min(len(text), at+len(secret)+50)])
			}
		}
	}
	t.Logf("%d texts, none empty: %v", len(readable), slices.Sorted(maps.Keys(readable)))
	m.modes(t, socket)
}

// apiToken returns the token in a kubeconfig.
func apiToken(t *testing.T, kubeconfig string) string {
	t.Helper()
	text, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`"?token"?: *"?([A-Za-z0-9._-]{20,})`).FindSubmatch(text)
	if found == nil {
		t.Fatal("the kubeconfig has no token")
	}
	return string(found[1])
}

// workAndFail runs pods until some get no address, and records the errors. Container ids are
// secrets too: with one, anybody on the node could delete the pod's sandbox.
func (m *member) workAndFail(t *testing.T, secrets, readable map[string]string) {
	t.Helper()
	for i := range 5 { // the pool ends at three: EC2 gives no further ENI
		id := fmt.Sprintf("%064x", 0xc0ffee<<16+i)
		secrets[fmt.Sprint("container id ", i)] = id
		pod := m.bind(fmt.Sprintf("p-%d", i))
		p, err := m.AddPod(node.PodSpec{Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID), ContainerID: id})
		if err == nil {
			if i == 0 {
				if err := m.DelPod(p); err != nil {
					t.Fatal(err)
				}
			}
			continue
		}
		readable[fmt.Sprintf("error of ADD %d", i)] = err.Error()
	}
	if len(readable) == 0 {
		t.Fatal("no ADD failed")
	}
	bad := m.request(m.bind("bad"))
	bad.IfName = ""
	secrets["container id of a bad request"] = bad.ContainerID
	readable["answer to a bad request"] = fmt.Sprintf("%+v", m.c.wireAdd(m.Node, bad))
}

// collect reads everything about the daemon that others can read.
func (m *member) collect(t *testing.T, socket string, readable map[string]string) {
	t.Helper()
	c := m.c
	door := c.door(m.Node, "unix", socket)
	paths := []string{"/", "/nowhere", "/v1/enis", "/v1/eni-configs", "/v1/ipamd-env-settings", "/v1/networkutils-env-settings",
		introspect.PathSummary, introspect.PathConfig, introspect.PathPlan, introspect.PathFailures, introspect.PathEvents,
		introspect.PathLogs, introspect.PathSubnetHistory, introspect.PathPod + "?namespace=" + c.namespace + "&name=p-1", introspect.PathSchemas}
	var index struct{ AvailableCommands []string }
	if err := json.Unmarshal(c.ask(door, "/", nil).body, &index); err != nil {
		t.Fatal(err)
	}
	known := strings.Join(paths, " ") + " "
	for _, p := range index.AvailableCommands {
		if !strings.Contains(known, p) {
			t.Errorf("%s is served and not looked at here", p)
		}
	}
	for _, p := range paths {
		readable["introspection "+p] = string(c.ask(door, p, nil).body)
	}
	readable["metrics"] = string(c.ask(c.door(m.Node, "tcp", "127.0.0.1:61678"), "/metrics", nil).body)

	for _, command := range [][]string{
		{"node", "show", "worker"}, {"node", "enis", "worker"}, {"node", "ips", "worker"}, {"node", "config", "worker"}, {"nodes"}, {"status"},
	} {
		for _, form := range []string{"table", "wide", "json", "yaml"} {
			args := append(slices.Clone(command), "--targets", "worker=unix:"+socket, "-o", form)
			cmd := exec.CommandContext(t.Context(), filepath.Join(c.binaries, "cnictl"), args...)
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			_ = cmd.Run() // not every command has every output format, and some report problems
			readable["cnictl "+strings.Join(append(command, form), " ")] = out.String()
		}
	}

	logs, err := filepath.Glob(filepath.Join(m.Dir, "log", "*.log"))
	if err != nil || len(logs) < 2 {
		t.Fatalf("logs %v: %v", logs, err)
	}
	for _, file := range logs {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		readable["file "+filepath.Base(file)] = string(text)
	}
	for _, e := range c.world.ENIsOf(m.InstanceID) {
		readable["EC2 "+e.ID] = fmt.Sprint(e.Description, e.Tags)
	}
	testenv.Eventually(c.t, "events about a failed ADD", func() bool {
		list, err := c.objects(schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}).
			Namespace(c.namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		readable["Kubernetes events"] = fmt.Sprint(list.Items)
		return len(list.Items) > 0
	})
	readable["command line"] = c.procfs(m.Node, m.DaemonPID(), "cmdline")
	readable["process title"] = c.procfs(m.Node, m.DaemonPID(), "comm")
	for where, text := range readable {
		if text == "" {
			t.Errorf("%s: nothing was read", where)
		}
	}
}

// modes checks who may open the daemon's files. Of its state files only ipam.json has container
// ids.
func (m *member) modes(t *testing.T, socket string) {
	t.Helper()
	r, err := m.Exec(agent.Cmd{Argv: []string{"/usr/bin/find", "/run/aws-node", socket, "-printf", "%p %M\n"}})
	if err != nil || r.Code != 0 {
		t.Fatalf("list files: %v %s", err, r.Stderr)
	}
	got := map[string]string{}
	for line := range strings.Lines(string(r.Stdout)) {
		path, mode, _ := strings.Cut(strings.TrimSpace(line), " ")
		got[path] = mode
	}
	want := map[string]string{
		"/run/aws-node": "drwxr-xr-x", "/run/aws-node/ipam.json": "-rw-------",
		"/run/aws-node/ipamd.sock": "srw-rw----", "/run/aws-node/cni.sock": "srw-------", socket: "srw-rw----",
	}
	if counts := "/run/aws-node/ipam-subnets.json"; got[counts] != "" { // once EC2 has answered
		want[counts] = "-rw-------"
	}
	if !maps.Equal(got, want) {
		t.Errorf("files and modes %v\nwant %v", got, want)
	}
	for _, name := range []string{"ipamd.log", "plugin.log"} {
		info, err := os.Stat(filepath.Join(m.Dir, "log", name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != fs.FileMode(0o600) {
			t.Errorf("%s has mode %v, want 0600", name, info.Mode())
		}
	}
}
