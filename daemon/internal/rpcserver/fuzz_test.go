package rpcserver

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"cnictl/daemon/api/cniwire"
)

// pair is a connected pair of Unix sockets.
func pair(t *testing.T) (server, client *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "pair")
		conn, err := net.FileConn(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		ends[i] = conn.(*net.UnixConn)
	}
	return ends[0], ends[1]
}

// FuzzLean: for any input, in any pieces, the backend gets exactly the requests that the
// codec reads, and only those are answered, once each.
func FuzzLean(f *testing.F) {
	add := cniwire.AppendAddRequest(nil, &cniwire.AddRequest{PodName: "web-0", PodNamespace: "default", ContainerID: "0000abc001", IfName: "eth0",
		NetworkName: "aws-cni", Netns: "/run/netns/rec1", ClientVersion: "v1", RequiresMultiNIC: true})
	del := cniwire.AppendDelRequest(nil, &cniwire.DelRequest{PodName: "web-0", PodNamespace: "default", ContainerID: "0000abc001", Reason: "PodDeleted"})
	policy := cniwire.AppendPolicyRequest(nil, &cniwire.PolicyRequest{PodName: "web-0", PodNamespace: "default", ContainerID: "0000abc001", Mode: "strict", Interfaces: 2})
	policyReply := cniwire.PolicyReply{Cause: "policy-agent-refused", Detail: "no"}
	for _, wire := range [][]byte{add, del, policy, add[:len(add)-1], del[:3], append(bytes.Clone(add), del...), cniwire.AppendAddReply(nil, &fullReply),
		{}, {0, 0, 0, 0}, {0, 0, 0, 1, 2}, {0xff, 0xff, 0xff, 0xff}, []byte("GET / HTTP/1.1\r\n\r\n")} {
		f.Add(wire, 0)
		f.Add(wire, 5)
	}
	f.Fuzz(func(t *testing.T, wire []byte, cut int) {
		var asked []cniwire.Request
		back := backend{
			add: func(_ context.Context, r *cniwire.AddRequest) *cniwire.AddReply {
				asked = append(asked, cniwire.Request{Add: r})
				return &fullReply
			},
			del: func(_ context.Context, r *cniwire.DelRequest) *cniwire.DelReply {
				asked = append(asked, cniwire.Request{Del: r})
				return &cniwire.DelReply{Success: true}
			},
			policy: func(_ context.Context, r *cniwire.PolicyRequest) *cniwire.PolicyReply {
				asked = append(asked, cniwire.Request{Policy: r})
				return &policyReply
			},
		}
		l := newLean(New(Options{Backend: back, Log: slog.New(slog.DiscardHandler), RequestTimeout: time.Minute}), nil)
		close(l.served) // one connection, which nothing accepted
		server, client := pair(t)
		defer client.Close()
		l.track(server)
		go func() {
			defer l.untrack(server)
			l.handle(t.Context(), server)
		}()
		// The server may end before it has read everything: then the write fails, and the
		// answer is lost with the unread rest.
		cut = max(0, min(cut, len(wire)))
		written := true
		for _, part := range [][]byte{wire[:cut], wire[cut:]} {
			if _, err := client.Write(part); err != nil {
				written = false
				break
			}
		}
		client.CloseWrite()
		answer, readErr := io.ReadAll(client)
		l.wait()

		var want []cniwire.Request
		if frame, err := cniwire.CutFrame(wire); err == nil && frame != nil {
			if req, err := cniwire.DecodeRequest(frame); err == nil {
				want = append(want, req)
			}
		}
		if d := cmp.Diff(want, asked); d != "" {
			t.Fatalf("asked (-codec +backend):\n%s", d)
		}
		if !written || readErr != nil {
			return
		}
		var expected []byte
		switch {
		case len(want) == 0:
		case want[0].Policy != nil:
			expected = cniwire.AppendPolicyReply(nil, &policyReply)
		case want[0].Add != nil:
			expected = cniwire.AppendAddReply(nil, &fullReply)
		default:
			expected = cniwire.AppendDelReply(nil, &cniwire.DelReply{Success: true})
		}
		if !bytes.Equal(answer, expected) {
			t.Fatalf("answer %x, want %x", answer, expected)
		}
	})
}
