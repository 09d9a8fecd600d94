package uml

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// keeperVar marks the keeper: process 1 of a namespace in which the kernel runs, so that
// none of the kernel's helper processes outlives it. It cannot be the kernel itself, whose
// signals to itself would then be without effect, by which a panic ends it.
const keeperVar = "CNICTL_TESTENV_UML_KEEPER"

// keep runs the kernel, whose command line is the process's arguments.
func keep() int {
	pid, err := syscall.ForkExec(os.Args[1], os.Args[1:], &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2, 3, 4},
	})
	if err != nil {
		fmt.Fprintf(os.Stderr, "start %s: %v\n", os.Args[1], err)
		return 1
	}
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, 0, nil)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			fmt.Fprintln(os.Stderr, "wait:", err)
			return 1
		}
		if ended == pid && status.Exited() {
			return status.ExitStatus()
		}
		if ended == pid && status.Signaled() {
			fmt.Fprintf(os.Stderr, "the kernel's process ended: %v\n", status.Signal())
			return 1
		}
	}
}
