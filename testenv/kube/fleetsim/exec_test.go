package fleetsim

import (
	"bytes"
	"io"
	"net/url"
	"strings"
	"testing"

	"k8s.io/client-go/tools/remotecommand"
)

// TestExec: exec reaches a Unix socket in our containers, which port-forward cannot.
func TestExec(t *testing.T) {
	t.Parallel()
	s := New(t, Options{Nodes: 2, Named: map[string][]Trait{NodeName(0): {UnixSocket}, NodeName(1): {UnixSocket, Upstream}}})
	ask := func(node string, argv ...string) (string, error) {
		q := url.Values{"container": {"aws-node"}, "stdin": {"true"}, "stdout": {"true"}, "command": argv}
		e, err := remotecommand.NewWebSocketExecutor(s.RESTConfig(), "GET", s.URL()+"/api/v1/namespaces/kube-system/pods/"+s.byName[node].podName+"/exec?"+q.Encode())
		if err != nil {
			t.Fatal(err)
		}
		in, write := io.Pipe() // stdin stays open until the answer arrives
		defer write.Close()
		go func() {
			_, _ = io.WriteString(write, "GET /v1/summary HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		}()
		var out bytes.Buffer
		err = e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: in, Stdout: &out})
		return out.String(), err
	}
	if out, err := ask(NodeName(0), "cnictl", "local", "dial"); err != nil || !strings.Contains(out, `"kind":"NodeSummary"`) {
		t.Errorf("%v: %.300s", err, out)
	}
	if out, err := ask(NodeName(1), "cnictl", "local", "dial"); err == nil || !strings.Contains(err.Error(), "executable file not found") {
		t.Errorf("upstream's container: %v, %s", err, out)
	}
}
