package testenv_test

import (
	"fmt"
	"io"
	"os"
	"testing"

	"cnictl/testenv"
)

// helperVar makes the test binary, started again by a test, hold a sandbox open
// until it is killed.
const helperVar = "CNICTL_TESTENV_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(helperVar) != "" {
		holdOpen()
	}
	testenv.Main(m)
}

func holdOpen() {
	if err := testenv.Enter(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	inode, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("HOLDING", inode)
	_, err = io.Copy(io.Discard, os.Stdin) // the test holds the other end
	os.Exit(exitUnexpected(err))
}

// exitUnexpected is the status of a helper that ended before it was killed.
func exitUnexpected(err error) int {
	fmt.Println("standard input ended:", err)
	return 77
}
