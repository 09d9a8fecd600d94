package testenv

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"cnictl/testenv/uml"
)

// Main runs the tests of a package inside a sandbox and exits with their status.
// It is the whole body of TestMain. Without the rights for a sandbox it runs
// them in place, where RequireRoot skips. What end holds runs after the tests; an error
// fails them.
func Main(m *testing.M, end ...func() error) {
	enter()
	run(m, end)
}

// MainOn is Main for a package whose tests need something of the kernel that RequireKernel
// knows and that few kernels have. Where the machine's has it the tests run right there,
// elsewhere the whole binary runs once more in user-mode Linux (see testenv/uml), in a
// sandbox too: one boot for all tests of the package, and what they print and how they end
// is the package's. Where there is no user-mode Linux, RequireKernel skips as always.
//
// It takes the whole binary because a test cannot be ended from outside but as failed or
// skipped: the outer half of one that passed in the guest would count as one of these.
func MainOn(m *testing.M, feature string, end ...func() error) {
	enter()
	if Inside() && !uml.Inside() && !hasFeature(feature) {
		code, err := runInGuest()
		if err == nil {
			os.Exit(code)
		}
		if !errors.Is(err, uml.ErrMissing) {
			fmt.Fprintln(os.Stderr, "testenv:", err)
			os.Exit(1)
		}
		remember(guestRefusedVar, err)
	}
	run(m, end)
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
	code := m.Run()
	for _, f := range end {
		if err := f(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// guestGrace is what a guest gets beyond the tests' own time limit, which holds inside it
// too and tells more: to boot, and to print what hung.
const guestGrace = time.Minute

// runInGuest runs the test binary in user-mode Linux.
func runInGuest() (code int, err error) {
	files, err := uml.Find()
	if err != nil {
		return 0, err
	}
	limit := 24 * time.Hour // -test.timeout=0
	flag.Parse()
	if f := flag.Lookup("test.timeout"); f != nil {
		if given, err := time.ParseDuration(f.Value.String()); err == nil && given > 0 {
			limit = given
		}
	}
	return uml.Run(context.Background(), files, uml.Options{
		Timeout: limit + guestGrace, Stdout: os.Stdout, Stderr: os.Stderr,
	})
}
