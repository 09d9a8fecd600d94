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

// Upstream's daemon, which a node may have while it is being updated, has no lean socket
// and only speaks gRPC; and it leaves the call of the policy agent to the plugin. A
// separate program makes these calls: linking grpc would slow down every other run.

// helperProgram is installed next to the plugin.
const helperProgram = "aws-cni-grpc"

const (
	// policyDial is how long an agent that is not there is looked for.
	policyDial = 2 * time.Second
	// helperGrace is how much longer than the call the program may take.
	helperGrace = 5 * time.Second
)

// helperError is the program that could not be run, or did not answer.
type helperError struct{ program, how string }

func (e *helperError) Error() string { return "run " + e.program + ": " + e.how }

// helperOrigin is what to do where the program is missing or does not work.
const helperOrigin = "which the aws-node image of this release installs beside aws-cni when it starts"

// legacyInstead reports whether upstream's daemon is to be asked after a failure
// of the lean socket: nothing listens there, but something does on upstream's.
func (c *command) legacyInstead(err error) bool {
	var down *dialError
	return errors.As(err, &down) && (errors.Is(down.errno, unix.ENOENT) || errors.Is(down.errno, unix.ECONNREFUSED)) &&
		listens(c.LegacySocket)
}

// listens reports whether a program listens on a socket.
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

// legacyCall makes one call of upstream's daemon.
func (c *command) legacyCall(request []byte, timeout time.Duration) ([]byte, error) {
	c.legacy = true
	answer, err := c.callGRPC(c.LegacySocket, 0, timeout, request)
	c.log.Debug("Asked upstream's daemon: " + c.LegacySocket)
	return answer, err
}

// callGRPC has the program make a call. A call that failed is a *cniwire.CallError, a
// program that did a *helperError.
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

// helperPath is next to this program.
func helperPath() (string, error) {
	var self [unix.PathMax]byte
	n, err := unix.Readlink("/proc/self/exe", self[:])
	if err != nil {
		return "", errors.New("find own path: " + err.Error())
	}
	return path.Join(path.Dir(string(self[:n])), helperProgram), nil
}

// start starts a program with one end of a socket as its standard input and output and
// returns the other. The program's errors go where the plugin's go.
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
