package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"cnictl/testenv"
)

// shared is the server of this test binary. It is the state of a process, which tests
// cannot hand to each other, so it is the one variable of this package.
var shared struct {
	sync.Mutex
	main   bool // somebody will end it
	server *Server
	err    error // why there is none, to be told to every test
}

// Main is the body of the TestMain of a package whose tests use Shared: testenv.Main,
// and the end of the server.
func Main(m *testing.M) {
	testenv.Main(m, EndShared()...)
}

// EndShared is for a TestMain that calls testenv.Main itself: what is to run after the
// tests.
func EndShared() []func() error {
	shared.Lock()
	defer shared.Unlock()
	shared.main = true
	return []func() error{endShared}
}

// Shared returns the server of the test binary and starts it for the first test that
// asks. It ends after the last test, and fails the binary if it refused something that
// no test expected.
func Shared(t testing.TB) *Server {
	t.Helper()
	p := requirePrograms(t)
	shared.Lock()
	defer shared.Unlock()
	if !shared.main {
		t.Fatal("kubeapi.Shared: the package's TestMain must call kubeapi.Main, or testenv.Main with kubeapi.EndShared")
	}
	if shared.server == nil && shared.err == nil {
		// The server outlives the test, so its context is not the test's.
		shared.server, shared.err = startShared(context.Background(), p)
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	s := shared.server
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.tails())
		}
	})
	return s
}

func startShared(ctx context.Context, p programs) (*Server, error) {
	dir, err := os.MkdirTemp("", "kubeapi")
	if err != nil {
		return nil, fmt.Errorf("start API server: %w", err)
	}
	s, err := start(ctx, p, dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

func endShared() error {
	shared.Lock()
	defer shared.Unlock()
	s := shared.server
	if s == nil {
		return nil
	}
	shared.server = nil
	return errors.Join(s.end(), os.RemoveAll(s.dir))
}
