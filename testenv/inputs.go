package testenv

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// inputsVar names the directory in which tools/cmd/testlayers wrote, for each package whose tests
// use more than what they link and read, the hashes of that.
const inputsVar = "CNI_TEST_INPUTS"

// logMagic is the first line of the log in which a test binary lists its inputs for the go command.
const logMagic = "# test log\n"

// Run runs the tests of a package without a sandbox and returns their status, as m.Run does. It
// is for packages whose tests start programs: the go command, which sees only what the test
// binary itself reads, keeps their results only while those programs are the same.
func Run(m *testing.M) int { return max(m.Run(), logInputs()) }

// logInputs adds the package's file of inputs to the go command's log. Outside of testlayers, as
// with plain `go test`, it removes the log, and the go command does not keep the results. It
// returns the exit status.
func logInputs() int {
	f := flag.Lookup("test.testlogfile")
	if f == nil || f.Value.String() == "" {
		return 0
	}
	here, err := os.Getwd() // go test starts a test binary in its package's directory
	if err == nil {
		err = addInputs(f.Value.String(), os.Getenv(inputsVar), here)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testenv: cannot add what the tests use to the log of go test:", err)
		return 1
	}
	return 0
}

// addInputs adds the file in dir of the package in the directory here to a log. Without dir it removes the log: it is
// unknown what the tests used.
func addInputs(log, dir, here string) error {
	if dir == "" {
		if err := os.Remove(log); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	inputs, err := inputsFile(dir, here)
	if err != nil || inputs == "" {
		return err
	}
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	// The variable too: plain `go test` must not find the results of testlayers for old programs.
	text := "getenv " + inputsVar + "\nopen " + inputs + "\n"
	if info, err := out.Stat(); err == nil && info.Size() == 0 { // in a guest the tests write none
		text = logMagic + text
	}
	_, err = out.WriteString(text)
	return errors.Join(err, out.Close())
}

// inputsFile returns the file of a package, "" if it uses nothing that the go command does not see.
func inputsFile(dir, here string) (string, error) {
	root := filepath.Dir(filepath.Dir(dir))
	rel, err := filepath.Rel(root, here)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, strings.ReplaceAll(filepath.ToSlash(rel), "/", "-")+".txt")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return path, nil
}
