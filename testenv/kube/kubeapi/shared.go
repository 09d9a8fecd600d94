package kubeapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"cnictl/testenv"
)

// shared is the server of this test binary. It is per-process state that tests cannot pass
// to each other, hence the package's only variable.
var shared struct {
	sync.Mutex
	main   bool // TestMain will end the server
	server *Server
	err    error // why it did not start, reported to every test
}

// Main is the body of TestMain in a package whose tests use Shared. It is testenv.Main
// plus the end of the server.
func Main(m *testing.M) {
	testenv.Main(m, EndShared()...)
}

// EndShared is for a TestMain that calls testenv.Main itself. It returns what to run after
// the tests.
func EndShared() []func() error {
	shared.Lock()
	defer shared.Unlock()
	shared.main = true
	return []func() error{endShared}
}

// Service is for a TestMain that calls testenv.MainOn: tests in a guest use a shared server
// outside it. Such a server cannot be restarted, and ExpectDenied does not work with it.
func Service() testenv.Service {
	EndShared()
	return testenv.Service{Start: startOutside, End: endShared}
}

// outsideVar holds the address and the administrator of a server outside the guest.
const outsideVar = "CNICTL_TESTENV_KUBEAPI"

// outside is the content of outsideVar.
type outside struct {
	Address       string
	CA, Cert, Key []byte
}

func startOutside() (env string, port int, err error) {
	p, err := locatePrograms()
	if err != nil {
		return "", 0, nil //nolint:nilerr // Shared skips its tests with that reason
	}
	shared.Lock()
	defer shared.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin) //realtime: before the tests
	defer cancel()
	s, err := startShared(ctx, p)
	if err != nil {
		return "", 0, err
	}
	shared.server = s
	data, err := json.Marshal(outside{s.Endpoint(), s.admin.CAData, s.admin.CertData, s.admin.KeyData})
	return outsideVar + "=" + string(data), s.port.number, err
}

// connectOutside returns the server that startOutside started.
func connectOutside(data string) (*Server, error) {
	var o outside
	if err := json.Unmarshal([]byte(data), &o); err != nil {
		return nil, fmt.Errorf("read %s: %w", outsideVar, err)
	}
	s := &Server{address: o.Address}
	return s, s.connect(rest.TLSClientConfig{CAData: o.CA, CertData: o.Cert, KeyData: o.Key})
}

// Shared returns the server of the test binary and starts it for the first caller. The
// server ends after the last test, and fails the binary if it refused something that
// no test expected.
func Shared(t testing.TB) *Server {
	t.Helper()
	data, isOutside := os.LookupEnv(outsideVar)
	var p programs
	if !isOutside {
		p = requirePrograms(t)
	}
	shared.Lock()
	defer shared.Unlock()
	if !shared.main {
		t.Fatal("kubeapi.Shared: the package's TestMain must call kubeapi.Main, or testenv.Main with kubeapi.EndShared")
	}
	switch {
	case shared.server != nil || shared.err != nil:
	case isOutside:
		shared.server, shared.err = connectOutside(data)
	default:
		shared.server, shared.err = startShared(testenv.Context(t), p) // which bounds only the start
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
	s, err := start(ctx, p, dir, Options{})
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
