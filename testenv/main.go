package testenv

import (
	"fmt"
	"os"
	"testing"
)

// Main runs the tests of a package inside a sandbox and exits with their status.
// It is the whole body of TestMain. Without the rights for a sandbox it runs
// them in place, where RequireRoot skips. What end holds runs after the tests; an error
// fails them.
func Main(m *testing.M, end ...func() error) {
	if err := Enter(); err != nil {
		// The refusal is kept for RequireRoot; the variable also reaches processes
		// that tests start.
		if err := os.Setenv(refusedVar, err.Error()); err != nil {
			fmt.Fprintln(os.Stderr, "testenv:", err)
			os.Exit(1)
		}
	}
	code := m.Run()
	for _, f := range end {
		if err := f(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}
