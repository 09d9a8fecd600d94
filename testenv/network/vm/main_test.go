package vm_test

import (
	"os"
	"testing"

	"cnictl/testenv"
	"cnictl/testenv/network/vm"
)

// programVar makes the test binary, when a test starts it again, one of the programs below:
// outside it boots a guest, inside it runs as the guest's program.
const programVar = "VM_TEST_PROGRAM"

//testlayers:uses=tools/vm
func TestMain(m *testing.M) {
	vm.Maybe()
	if name := os.Getenv(programVar); name != "" {
		os.Exit(program(name))
	}
	testenv.Main(m)
}
