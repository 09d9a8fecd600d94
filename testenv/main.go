package testenv

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"cnictl/testenv/network/vm"
)

// Main runs the tests of a package inside a sandbox and exits with their status.
// It is the whole body of TestMain. If a sandbox is not permitted, it runs the tests in
// place, where RequireRoot skips them. The functions in end run after the tests; an error
// fails the package.
func Main(m *testing.M, end ...func() error) {
	enter()
	run(m, end)
}

// MainOn is Main for a package whose tests need a kernel feature that RequireKernel knows
// and few kernels have. If the machine's kernel has it, the tests run right there; otherwise
// the whole test binary runs again in a virtual machine (see testenv/network/vm): one boot for all
// tests of the package, with their output and exit status. If there is no virtual machine
// either, RequireKernel skips as always.
//
// The whole binary runs in the guest because Go can end a test from outside only as failed or
// skipped: a test that passed in the guest would count as one of these outside.
func MainOn(m *testing.M, feature string, services ...Service) {
	enter()
	if Inside() && !vm.Inside() && !hasFeature(feature) {
		files, err := vm.Find()
		if err == nil {
			code := runInGuest(files, services)
			os.Exit(max(code, logInputs()))
		}
		if !errors.Is(err, vm.ErrMissing) {
			fmt.Fprintln(os.Stderr, "testenv:", err)
			os.Exit(1)
		}
		remember(guestRefusedVar, err)
	}
	var end []func() error
	for _, s := range services {
		end = append(end, s.End)
	}
	run(m, end)
}

// Service is a server that a package's tests use but do not test. For tests in a guest it
// runs outside, at the machine's full speed.
type Service struct {
	// Start starts the server for a guest. It returns an environment variable ("NAME=value")
	// for the tests, and the server's port on loopback, which is the same in the guest. Port 0
	// means no server: the tests find out why.
	Start func() (env string, port int, err error)
	// End runs after the tests in the process that ran them, and after the guest where Start
	// ran. An error fails the package.
	End func() error
}

func enter() {
	if err := Enter(); err != nil {
		remember(refusedVar, err)
	}
}

// remember keeps a refusal for RequireRoot and RequireKernel; the variable also reaches
// processes that tests start.
func remember(variable string, refusal error) {
	if err := os.Setenv(variable, refusal.Error()); err != nil {
		fmt.Fprintln(os.Stderr, "testenv:", err)
		os.Exit(1)
	}
}

func run(m *testing.M, end []func() error) {
	code := Run(m)
	for _, f := range end {
		if err := f(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// guestGrace is added to the tests' own time limit, which also applies inside the guest and
// shows what hung: the time to boot and to print that.
const guestGrace = time.Minute

// runInGuest runs the test binary in a virtual machine, beside its services.
func runInGuest(files vm.Files, services []Service) (code int) {
	options := vm.Options{Timeout: timeLimit() + guestGrace, Stdout: os.Stdout, Stderr: os.Stderr}
	var errs []error
	for _, s := range services {
		env, port, err := s.Start()
		errs = append(errs, err)
		if port != 0 {
			options.Env, options.Ports = append(options.Env, env), append(options.Ports, port)
		}
	}
	if errors.Join(errs...) == nil {
		var err error
		code, err = vm.Run(context.Background(), files, options)
		errs = append(errs, err)
	}
	for _, s := range services {
		errs = append(errs, s.End())
	}
	if err := errors.Join(errs...); err != nil {
		fmt.Fprintln(os.Stderr, "testenv:", err)
		return max(code, 1)
	}
	return code
}

// timeLimit returns the tests' own limit.
func timeLimit() time.Duration {
	limit := 24 * time.Hour // -test.timeout=0
	flag.Parse()
	if f := flag.Lookup("test.timeout"); f != nil {
		if given, err := time.ParseDuration(f.Value.String()); err == nil && given > 0 {
			limit = given
		}
	}
	return limit
}
