package agent

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// request is one call; exactly one member is set.
type request struct {
	Run    *Cmd       `json:"run,omitempty"`
	Wait   int        `json:"wait,omitempty"` // process id
	Signal *signalReq `json:"signal,omitempty"`
	Netns  *netnsReq  `json:"netns,omitempty"`
	Open   *openReq   `json:"open,omitempty"`
	Dial   *dialReq   `json:"dial,omitempty"`
	Bind   *bindReq   `json:"bind,omitempty"`
}

type signalReq struct {
	PID    int `json:"pid"`
	Signal int `json:"signal"`
}

type netnsReq struct {
	Name   string `json:"name"`
	Remove bool   `json:"remove"`
}

type openReq struct {
	Path string `json:"path"`
	Flag int    `json:"flag"`
	Mode uint32 `json:"mode"`
}

type dialReq struct {
	Network string        `json:"network"`
	Address string        `json:"address"`
	Timeout time.Duration `json:"timeout"`
}

type bindReq struct {
	Source string `json:"source"`
	Target string `json:"target"`
}

// reply answers a request. Errno lets callers compare kernel errors with errors.Is.
type reply struct {
	Error   string     `json:"error,omitempty"`
	Errno   unix.Errno `json:"errno,omitempty"`
	PID     int        `json:"pid,omitempty"`
	Result  *Result    `json:"result,omitempty"`
	Warning string     `json:"warning,omitempty"`
}

func errorReply(err error) reply {
	r := reply{Error: err.Error()}
	errors.As(err, &r.Errno)
	return r
}

func (r reply) err() error {
	if r.Error == "" {
		return nil
	}
	return &remoteError{text: r.Error, errno: r.Errno}
}

// remoteError is an error that the agent reported.
type remoteError struct {
	text  string
	errno unix.Errno
}

func (e *remoteError) Error() string { return e.text }

func (e *remoteError) Unwrap() error {
	if e.errno == 0 {
		return nil
	}
	return e.errno
}

// maxFrame bounds one message; programs' output is the largest part.
const maxFrame = 64 << 20

// send writes one length-prefixed JSON message, with files attached to its first byte.
func send(c *net.UnixConn, v any, files ...*os.File) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(body) > maxFrame {
		return fmt.Errorf("message of %d bytes is too long", len(body))
	}
	var rights []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		rights = unix.UnixRights(fds...)
	}
	head := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	if _, _, err := c.WriteMsgUnix(head, rights, nil); err != nil {
		return err
	}
	_, err = c.Write(body)
	return err
}

// receive reads a message written by send. The caller owns the files.
func receive(c *net.UnixConn, v any) ([]*os.File, error) {
	head := make([]byte, 4)
	oob := make([]byte, unix.CmsgSpace(4*8))
	n, oobn, _, _, err := c.ReadMsgUnix(head, oob)
	if err != nil {
		return nil, err
	}
	files, err := takeFiles(oob[:oobn])
	if err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(c, head[n:]); err != nil {
		return files, err
	}
	size := binary.BigEndian.Uint32(head)
	if size > maxFrame {
		return files, fmt.Errorf("message of %d bytes is too long", size)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(c, body); err != nil {
		return files, err
	}
	return files, json.Unmarshal(body, v)
}

func takeFiles(oob []byte) ([]*os.File, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return files, err
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	return files, nil
}

// socketPair returns the two ends of a stream socket pair.
func socketPair() (a, b *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make socket pair: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "pair"), os.NewFile(uintptr(fds[1]), "pair"), nil
}

// unixConn turns a socket file into a connection and closes the file.
func unixConn(f *os.File) (*net.UnixConn, error) {
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, fmt.Errorf("file is a %T, want a unix socket", c)
	}
	return u, nil
}
