package testenv_test

import (
	"fmt"
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
	select {}
}
