package apply

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/crashpoint"
	"cnictl/plugin/podnet/rules"
)

const ipv6Conf = "/proc/sys/net/ipv6/conf/"

// setSysctls sets the sysctls of the host end. /proc/sys/net shows the namespace of
// the calling thread, so this comes before the thread moves. A kernel without IPv6
// has no such files, and nothing to set.
func setSysctls(p rules.Pair) error {
	dir, err := unix.Open(ipv6Conf+p.Host.Name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return failed(StepAcceptRA, err)
	}
	defer unix.Close(dir)
	for _, s := range p.Sysctls {
		if err := setSysctl(dir, s); err != nil && !errors.Is(err, unix.ENOENT) {
			return failed(sysctlStep(s.Key), err)
		}
	}
	crashpoint.Here(crashpoint.PluginAfterSysctls)
	return nil
}

func sysctlStep(key string) Step {
	switch key {
	case "accept_redirects":
		return StepRedirects
	case "forwarding":
		return StepForwarding
	}
	return StepAcceptRA
}

func setSysctl(dir int, s rules.Sysctl) error {
	mode := unix.O_WRONLY
	if s.ReadFirst {
		mode = unix.O_RDWR
	}
	fd, err := unix.Openat(dir, s.Key, mode|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if s.ReadFirst {
		var now [16]byte
		n, err := unix.Pread(fd, now[:], 0)
		if err != nil {
			return err
		}
		if strings.TrimSpace(string(now[:n])) == s.Value {
			return nil
		}
	}
	for {
		_, err = unix.Pwrite(fd, []byte(s.Value), 0)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	return err
}
