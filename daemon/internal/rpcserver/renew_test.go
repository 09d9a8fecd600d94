package rpcserver

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"google.golang.org/protobuf/types/known/emptypb"

	"cnictl/daemon/api/cnirpc"
	"cnictl/daemon/api/cniwire"
)

// TestRenew: removed sockets are recreated each time, and serve requests; existing ones and
// another program's file are left alone.
func TestRenew(t *testing.T) {
	t.Parallel()
	renew, renewed := make(chan struct{}), make(chan string, 10)
	r := start(t, echoAdd(&fullReply, nil), func(o *Options) {
		o.Renew, o.Renewed = renew, func(path string) { renewed <- path }
	})
	for range 3 {
		for _, path := range []string{r.grpc, r.lean} {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		renew <- struct{}{}
		// The previous look may still run, and see one of the two removed.
		got := []string{<-renewed, <-renewed}
		if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values([]string{r.grpc, r.lean}))) {
			t.Errorf("renewed %s", got)
		}
		renew <- struct{}{} // nothing to do
		for path, mode := range map[string]os.FileMode{r.grpc: modeGRPCSocket, r.lean: modeLeanSocket} {
			if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != mode {
				t.Errorf("%s: %v, %v", path, info, err)
			}
		}
		conn := r.connect(t)
		write(t, conn, cniwire.AppendAddRequest(nil, &cniwire.AddRequest{}))
		if reply := readAdd(t, conn); !reply.Success {
			t.Errorf("lean reply %+v", reply)
		}
		if _, err := cnirpc.NewConfigServerBackendClient(r.dial(t)).GetNetworkPolicyConfigs(t.Context(), &emptypb.Empty{}); err != nil {
			t.Error(err)
		}
	}
	if len(renewed) > 0 {
		t.Errorf("renewed %s without need", <-renewed)
	}
	for _, path := range []string{r.grpc, r.lean} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(r.lean, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	renew <- struct{}{}
	if path := <-renewed; path != r.grpc {
		t.Errorf("renewed %s", path)
	}
	r.stop()
	if err := r.wait(t); err != nil {
		t.Error(err)
	}
	if names, err := os.ReadDir(filepath.Dir(r.lean)); err != nil || len(names) != 1 || names[0].Name() != filepath.Base(r.lean) {
		t.Errorf("left: %v, %v", names, err)
	}
}

// TestListen_RemovedAtOnce: someone who removes a socket as soon as it exists makes neither
// the start nor the end fail.
func TestListen_RemovedAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(tempDir(t), "s")
	stop := make(chan struct{})
	var remover sync.WaitGroup
	remover.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = os.Remove(path) // usually there is none
			}
		}
	})
	for range 500 {
		s, err := newSocket(t.Context(), path, modeLeanSocket)
		if err != nil {
			t.Error(err)
			break
		}
		if err := s.Close(); err != nil {
			t.Error(err)
			break
		}
	}
	close(stop)
	remover.Wait()
}
