package vpc

import (
	"errors"
	"path"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/cniwire"
)

// Upstream's daemon, which a node may run while it is being updated, has no lean socket
// and only speaks gRPC, and it leaves calling the policy agent to the plugin. A separate
// program makes these calls, because linking grpc would slow down every other run.

// helperProgram is installed next to the plugin.
const helperProgram = "aws-cni-grpc"

const (
	// policyDial is how long to wait for an agent that is not listening.
	policyDial = 2 * time.Second
	// helperGrace is how much longer than the call the program may take.
	helperGrace = 5 * time.Second
)

// helperError means that the program could not be run, or did not answer.
type helperError struct{ program, how string }

func (e *helperError) Error() string { return "run " + e.program + ": " + e.how }

// helperOrigin is a hint for errors: where the program comes from.
const helperOrigin = "which the aws-node image of this release installs beside aws-cni when it starts"

// legacyInstead reports whether to call upstream's daemon after a failure of the lean
// socket: nothing is listening there, but something is on upstream's.
func (c *command) legacyInstead(err error) bool {
	var down *dialError
	return errors.As(err, &down) && (errors.Is(down.errno, unix.ENOENT) || errors.Is(down.errno, unix.ECONNREFUSED)) &&
		listens(c.LegacySocket)
}

// listens reports whether a program is listening on a socket.
func listens(socket string) bool {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	err = unix.Connect(fd, &unix.SockaddrUnix{Name: socket})
	return err == nil || errors.Is(err, unix.EAGAIN) // its queue is full
}

func (c *command) legacyAdd(r *cniwire.AddRequest) (*cniwire.AddReply, error) {
	answer, err := c.legacyCall(cniwire.AppendAddRequest(nil, r), addDeadline)
	if err != nil {
		return nil, err
	}
	return cniwire.DecodeAddReply(answer)
}

func (c *command) legacyDel(r *cniwire.DelRequest, timeout time.Duration) (*cniwire.DelReply, error) {
	answer, err := c.legacyCall(cniwire.AppendDelRequest(nil, r), timeout)
	if err != nil {
		return nil, err
	}
	return cniwire.DecodeDelReply(answer)
}

// legacyCall makes one call to upstream's daemon.
func (c *command) legacyCall(request []byte, timeout time.Duration) ([]byte, error) {
	c.legacy = true
	answer, err := c.callGRPC(c.LegacySocket, 0, timeout, request)
	c.log.Debug("Asked upstream's daemon: " + c.LegacySocket)
	return answer, err
}

// callGRPC makes a call through helperProgram. A failed call is a *cniwire.CallError, a
// failure of the program a *helperError.
func (c *command) callGRPC(socket string, dial, timeout time.Duration, request []byte) ([]byte, error) {
	program, err := helperPath()
	if err != nil {
		return nil, &helperError{helperProgram, err.Error()}
	}
	fd, pid, err := start(program, socket, dial.String(), timeout.String())
	if err != nil {
		return nil, &helperError{program, err.Error()}
	}
	call := call{fd: fd, deadline: c.Now().Add(timeout + helperGrace), now: c.Now}
	var answer []byte
	err = call.send(request)
	if err == nil {
		answer, err = call.receive(c.log.Flush)
	}
	call.close()
	if err != nil {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	how := wait(pid)
	if err != nil {
		return nil, &helperError{program, "no answer (" + err.Error() + "), " + how}
	}
	failed, err := cniwire.DecodeCallError(answer)
	if failed != nil {
		return nil, failed
	}
	return answer, err
}

// helperPath returns the helper's path, in the directory of the running program.
func helperPath() (string, error) {
	var self [unix.PathMax]byte
	n, err := unix.Readlink("/proc/self/exe", self[:])
	if err != nil {
		return "", errors.New("find own path: " + err.Error())
	}
	return path.Join(path.Dir(string(self[:n])), helperProgram), nil
}

// start starts a program with one end of a socket pair as its standard input and output,
// and returns the other end. The program shares the plugin's standard error.
func start(program string, args ...string) (fd, pid int, _ error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, 0, err
	}
	theirs := uintptr(ends[1])
	pid, err = syscall.ForkExec(program, append([]string{program}, args...), &syscall.ProcAttr{Files: []uintptr{theirs, theirs, 2}})
	_ = unix.Close(ends[1])
	if err != nil {
		_ = unix.Close(ends[0])
		return -1, 0, err
	}
	return ends[0], pid, nil
}

// wait waits for a process and describes how it ended.
func wait(pid int) string {
	var status unix.WaitStatus
	for {
		_, err := unix.Wait4(pid, &status, 0, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if status.Signaled() {
		return "signal " + status.Signal().String()
	}
	return "exit status " + strconv.Itoa(status.ExitStatus())
}
