// The portmap plugin of the image: see plugin/portmap. Like aws-cni it is started by the
// container runtime once for each command, and links as little as possible.
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0
package main

import (
	"errors"
	"path"
	"syscall"

	"golang.org/x/sys/unix"

	"cnictl/plugin/portmap"
	"cnictl/plugin/skel"
)

// reference replaces the process with the reference plugin; it returns only on failure.
func reference(stdin []byte) error {
	var self [unix.PathMax]byte
	n, err := unix.Readlink("/proc/self/exe", self[:])
	if err != nil {
		return errors.New("find own path: " + err.Error())
	}
	program := path.Join(path.Dir(string(self[:n])), portmap.Reference)
	if stdin != nil {
		if err := replaceStdin(stdin); err != nil {
			return errors.New("pass on standard input: " + err.Error())
		}
	}
	return errors.New(program + ": " + unix.Exec(program, []string{program}, syscall.Environ()).Error())
}

// replaceStdin makes the input that was already read available on standard input again.
func replaceStdin(in []byte) error {
	fd, err := unix.MemfdCreate("stdin", unix.MFD_CLOEXEC)
	if err != nil {
		return err
	}
	for at := 0; at < len(in); {
		n, err := unix.Pwrite(fd, in[at:], int64(at))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		at += max(n, 0)
	}
	return unix.Dup3(fd, 0, 0)
}

func main() {
	p := portmap.Process{
		Getenv: func(key string) string {
			value, _ := syscall.Getenv(key)
			return value
		},
		Stdin: skel.Stdin, Stdout: skel.Stdout, Exec: reference,
	}
	unix.Exit(p.Run())
}
