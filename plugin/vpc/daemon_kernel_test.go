package vpc_test

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/cniwire"
	"cnictl/testenv"
	"cnictl/testenv/network/netns"
)

// TestBinary_SlowDaemon: while an ADD waits for the pool, its log is already written,
// and the pod's link exists without an address.
func TestBinary_SlowDaemon(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	node, pod := netns.New(t), netns.New(t)
	box := newSandbox(t, node, "abc001", "web-1", pod.Path)
	(&server{add: func(r *cniwire.AddRequest) *cniwire.AddReply {
		testenv.Eventually(t, "the request in the log", func() bool {
			b, err := os.ReadFile(box.log)
			return err == nil && strings.Contains(string(b), "Received CNI add request")
		})
		return gives("10.0.0.21", 1, 2)(r)
	}}).serve(t)
	box.expect(t, "ADD", box.stdin(), 0, withNetns(recorded(t, "add-web-1.json"), "/run/netns/rec2", pod.Path))
	if n := strings.Count(box.logged(t), "Received CNI add request"); n != 1 {
		t.Errorf("the request is logged %d times", n)
	}
}

// TestBinary_RefusedKeepsOlderSandbox: an ADD that gets no address leaves the link of the
// pod's older sandbox alone.
func TestBinary_RefusedKeepsOlderSandbox(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	reply := gives("10.0.0.21", 1, 2)(nil)
	(&server{add: func(*cniwire.AddRequest) *cniwire.AddReply { return reply }}).serve(t)
	node, pod := netns.New(t), netns.New(t)
	old := newSandbox(t, node, "old", "web-1", pod.Path)
	old.expect(t, "ADD", old.stdin(), 0, withNetns(recorded(t, "add-web-1.json"), "/run/netns/rec2", pod.Path))
	before := []string{ipRule(t, node), ipRoute(t, node), ipRoute(t, pod), hostMAC(t, node, "eni0761ccbeace").String()}

	reply = &cniwire.AddReply{}
	next := newSandbox(t, node, "new", "web-1", netns.New(t).Path)
	next.expect(t, "ADD", next.stdin(), 1, strings.TrimSuffix(recorded(t, "err-exhausted.out"), "\n"))
	after := []string{ipRule(t, node), ipRoute(t, node), ipRoute(t, pod), hostMAC(t, node, "eni0761ccbeace").String()}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("changed:\n%s", diff)
	}
}

// TestBinary_BrokenDaemon: a daemon that disconnects or answers nonsense.
func TestBinary_BrokenDaemon(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	const call = "add cmd: Error received from AddNetwork gRPC call: rpc error: code = "
	const (
		ended = "ipamd ended the connection on " + cniwire.Socket + " before it answered"
		other = "what answers on " + cniwire.Socket + " speaks another protocol: aws-cni and the aws-node image should be of one version"
	)
	for name, row := range map[string]struct {
		answer  []byte
		want    string
		why     cause.Code
		details string
	}{
		"closes at once":   {nil, "Unavailable desc = error reading from server: EOF", cause.DaemonUnreachable, ended},
		"closes in answer": {[]byte{0, 0, 0, 9, 3}, "Unavailable desc = error reading from server: EOF", cause.DaemonUnreachable, ended},
		"too large":        {[]byte{1, 0, 0, 0}, "Internal desc = frame exceeds 65536 bytes", cause.DaemonMismatch, other},
		"no message":       {[]byte{0, 0, 0, 1, 77}, "Internal desc = malformed message: kind 77 is no ADD reply", cause.DaemonMismatch, other},
		"speaks HTTP":      {[]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), "Internal desc = frame exceeds 65536 bytes", cause.DaemonMismatch, other},
	} {
		t.Run(name, func(t *testing.T) {
			answerRaw(t, row.answer)
			node, pod := netns.New(t), netns.New(t)
			box := newSandbox(t, node, "abc001", "web-1", pod.Path)
			box.expect(t, "ADD", box.stdin(), 1, failed(999, call+row.want, row.why, row.details+lookAt))
			if diff := cmp.Diff([]string{"lo"}, linkNames(t, node)); diff != "" {
				t.Errorf("links left:\n%s", diff)
			}
			box.expect(t, "DEL", box.stdin(), 0, "") // the pod is unknown, and nothing fails
		})
	}
}

// answerRaw answers every connection with the same bytes.
func answerRaw(t *testing.T, answer []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(cniwire.Socket), 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", cniwire.Socket)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if _, err := cniwire.ReadFrame(conn, nil); err != nil && !errors.Is(err, io.EOF) {
				t.Errorf("daemon: %v", err)
			}
			_, _ = conn.Write(answer) // the plugin may have seen enough and be gone
			conn.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
}
