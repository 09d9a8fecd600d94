package testenv

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// RequireVar names the environment variable that lists requirements whose absence fails a
// test instead of skipping it.
const RequireVar = "CNI_TEST_REQUIRE"

// RequireRoot skips the test unless it runs in a sandbox, where it has root's
// rights over private namespaces. The skip reports why there is none and which
// command would run the test.
func RequireRoot(t testing.TB) {
	t.Helper()
	if Inside() {
		return
	}
	reason := os.Getenv(refusedVar)
	if reason == "" {
		t.Fatal("the package has tests that need a sandbox, but its TestMain does not call testenv.Main")
	}
	Missing(t, "root", strings.ReplaceAll(reason, "\n", "; "), `sudo env "PATH=$PATH" `+testCommand(t))
}

// Missing skips the test or, if the requirement is in CNI_TEST_REQUIRE, fails it.
// CI scripts parse the message.
func Missing(t testing.TB, requirement, reason, command string) {
	t.Helper()
	text := fmt.Sprintf("skip: needs %s: %s; run: %s", requirement, reason, command)
	if required(os.Getenv(RequireVar), requirement) {
		t.Fatalf("%s=%s does not allow this %s", RequireVar, os.Getenv(RequireVar), text)
	}
	t.Skip(text)
}

// required reports whether a comma-separated list contains a requirement. "all" means all, and
// "root" includes what root can install ("make kube", "make vm", "make images-here").
func required(list, requirement string) bool {
	names := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
	if slices.Contains([]string{"kube", "vlan", "images"}, requirement) && slices.Contains(names, "root") {
		return true
	}
	return slices.Contains(names, requirement) || slices.Contains(names, "all")
}

// testCommand returns the go test command for one test, for any working directory.
func testCommand(t testing.TB) string {
	dir, err := os.Getwd() // go test starts a test binary in its package's directory
	if err != nil {
		dir = "."
	}
	parts := strings.Split(t.Name(), "/")
	for i, p := range parts {
		parts[i] = "^" + p + "$"
	}
	return fmt.Sprintf("go test -C %s -count=1 -run '%s' .", dir, strings.Join(parts, "/"))
}
