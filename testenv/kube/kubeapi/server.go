package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"cnictl/testenv"
)

// readyWithin bounds the start of a server, which takes 2 to 3 s, or much longer while the
// machine is busy, for who is no test and so has no other limit.
const readyWithin = 5 * time.Minute

// Server is a running API server with its etcd.
type Server struct {
	dir       string
	programs  programs
	opts      Options
	address   string // host:port
	port      *reservation
	processes []*process // etcd, then kube-apiserver
	admin     *rest.Config
	objects   dynamic.Interface
	http      *http.Client
	expected  expectations
	names     names
}

// Start runs a server that ends with the test. A refusal to a ServiceAccount fails the test
// (see ExpectDenied); a failed test prints the ends of the server's logs. args are
// Options.Args.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	s, err := start(testenv.Context(t), requirePrograms(t), t.TempDir(), Options{Args: args})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.end(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(s.tails())
		}
	})
	return s
}

// Options configure a server.
type Options struct {
	// Args are arguments of kube-apiserver. They replace default arguments of the same name.
	Args []string

	// Empty omits the CRDs and roles of deploy/: the caller installs the CNI.
	Empty bool
}

// Open runs a server for a program that is not a test. Its files are in dir, an empty
// directory that the caller removes after Close.
func Open(ctx context.Context, dir string, o Options) (*Server, error) {
	p, err := locatePrograms()
	if err != nil {
		return nil, fmt.Errorf("start API server (make kube builds it): %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, readyWithin) //realtime: for programs
	defer cancel()
	return start(ctx, p, dir, o)
}

// Close stops a server from Open. Its error reports refusals to ServiceAccounts.
func (s *Server) Close() error { return s.end() }

// Endpoint returns the server's address, host:port on the loopback of the namespace that
// the test binary runs in.
func (s *Server) Endpoint() string { return s.address }

// Admin returns a client configuration of an administrator. It has no rate limit, like all
// clients here.
func (s *Server) Admin() *rest.Config { return rest.CopyConfig(s.admin) }

// Objects returns a client for objects of any kind, with the rights of Admin.
func (s *Server) Objects() dynamic.Interface { return s.objects }

// Restart stops kube-apiserver and starts it again, on the same port and with the same
// objects, and returns when it is ready. The watch history is lost: a client that resumes
// a watch gets the error that its version is too old, as after an upgrade of a control
// plane. Other tests of a shared server notice.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	if err := s.restart(testenv.Context(t)); err != nil {
		t.Fatalf("restart API server: %v\n%s", err, s.tails())
	}
}

func (s *Server) restart(ctx context.Context) error {
	last := len(s.processes) - 1
	if last < 0 {
		return errors.New("it runs outside of this guest")
	}
	if err := s.processes[last].kill(); err != nil {
		return err
	}
	started, err := startProcess(s.dir, s.programs.apiserver, s.apiserverArgs()...)
	if err != nil {
		return err
	}
	s.processes[last] = started
	return s.awaitReady(ctx)
}

// start runs a server with its files in dir, which the caller removes.
func start(ctx context.Context, p programs, dir string, o Options) (*Server, error) {
	s := &Server{dir: dir, programs: p, opts: o}
	if err := s.launch(); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	err := s.awaitReady(ctx)
	if err == nil && !o.Empty {
		err = s.install(ctx)
	}
	if err != nil {
		tails := s.tails()
		return nil, errors.Join(fmt.Errorf("start API server: %w\n%s", err, tails), s.stop())
	}
	return s, nil
}

// apiserverArgs returns the caller's arguments and the default ones that they do not replace:
// repeating a list flag would add to it.
func (s *Server) apiserverArgs() []string {
	replaced := map[string]bool{}
	for _, a := range s.opts.Args {
		replaced[flagOf(a)] = true
	}
	usual := slices.DeleteFunc(apiserverArgs(s.port.number), func(a string) bool { return replaced[flagOf(a)] })
	return append(usual, s.opts.Args...)
}

// flagOf returns the name in an argument NAME=VALUE.
func flagOf(argument string) string {
	name, _, _ := strings.Cut(argument, "=")
	return name
}

// AuthorityFile returns the path of the CA certificate that signed the server's.
func (s *Server) AuthorityFile() string { return filepath.Join(s.dir, authorityFile) }

// launch writes the files and starts both programs; kube-apiserver itself waits for etcd.
func (s *Server) launch() error {
	port, err := reserve()
	if err != nil {
		return err
	}
	s.port, s.address = port, port.address
	ca, admin, err := writePKI(s.dir)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.dir, auditPolicyFile), []byte(auditPolicy), 0o600); err != nil {
		return fmt.Errorf("write audit policy: %w", err)
	}
	if err := s.connect(rest.TLSClientConfig{CAData: ca.pem, CertData: admin.cert, KeyData: admin.key}); err != nil {
		return err
	}
	for _, c := range []struct {
		program string
		args    []string
	}{
		{s.programs.etcd, etcdArgs()},
		{s.programs.apiserver, s.apiserverArgs()},
	} {
		started, err := startProcess(s.dir, c.program, c.args...)
		if err != nil {
			return err
		}
		s.processes = append(s.processes, started)
	}
	return nil
}

// connect builds the administrator's clients, which connect on first use.
func (s *Server) connect(admin rest.TLSClientConfig) (err error) {
	s.admin = &rest.Config{
		Host:            "https://" + s.Endpoint(),
		TLSClientConfig: admin,
		QPS:             -1,
	}
	if s.http, err = rest.HTTPClientFor(s.admin); err != nil {
		return fmt.Errorf("build admin client: %w", err)
	}
	if s.objects, err = dynamic.NewForConfigAndClient(s.admin, s.http); err != nil {
		return fmt.Errorf("build admin client: %w", err)
	}
	return nil
}

// awaitReady polls the server's /readyz.
func (s *Server) awaitReady(ctx context.Context) error {
	return s.poll(ctx, "/readyz", func() error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.admin.Host+"/readyz", nil)
		if err != nil {
			return err
		}
		resp, err := s.http.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return errors.New(resp.Status)
		}
		return nil
	})
}

// pollEvery is short compared to the waits and long compared to a request.
const pollEvery = 20 * time.Millisecond

// poll repeats a check until it passes, a process ends or ctx is done.
func (s *Server) poll(ctx context.Context, what string, check func() error) error {
	tick := time.NewTicker(pollEvery) //realtime: the pace
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		for _, p := range s.processes {
			select {
			case <-p.ended:
				return fmt.Errorf("%s ended: %s", p.name, p.status)
			default:
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w; last: %w", what, ctx.Err(), err)
		case <-tick.C:
		}
	}
}

// end stops the server and reports unexpected refusals, and rights that were used although
// they are marked as unused.
func (s *Server) end() error {
	err := s.stop()
	if s.dir == "" {
		return err // outside of this guest, and checked there
	}
	return errors.Join(s.unexpectedDenials(), s.unexpectedUses(), err)
}

// stop ends everything that start created, except for the files. Nobody needs the data, so
// the processes are killed.
func (s *Server) stop() error {
	var errs []error
	for i := len(s.processes) - 1; i >= 0; i-- {
		errs = append(errs, s.processes[i].kill())
	}
	if s.http != nil {
		s.http.CloseIdleConnections()
	}
	if s.port != nil {
		errs = append(errs, s.port.release())
	}
	return errors.Join(errs...)
}

func (s *Server) tails() string {
	var text string
	for _, p := range s.processes {
		text += p.tail()
	}
	return text
}
