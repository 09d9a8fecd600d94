package apply

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/crashpoint"
	"cnictl/daemon/netstate"
	"cnictl/plugin/podnet/rules"
)

// setPairSysctls sets the sysctls of the host end.
func setPairSysctls(p rules.Pair) error {
	err := setSysctls(p.Sysctls, hostStep)
	if err == nil {
		crashpoint.Here(crashpoint.PluginAfterSysctls)
	}
	return err
}

// setSysctls sets sysctls; those of one link must be consecutive. /proc/sys/net shows the
// namespace of the calling thread. A kernel without IPv6 has no such files, and nothing to
// set.
func setSysctls(list []netstate.Sysctl, step func(netstate.Sysctl) Step) error {
	for len(list) > 0 {
		dir := strings.TrimSuffix(list[0].Path, list[0].Key())
		n := 1
		for n < len(list) && strings.TrimSuffix(list[n].Path, list[n].Key()) == dir {
			n++
		}
		if err := setSysctlsOf(dir, list[:n], step); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

func setSysctlsOf(path string, list []netstate.Sysctl, step func(netstate.Sysctl) Step) error {
	dir, err := unix.Open("/proc/sys/"+path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return failed(step(list[0]), err)
	}
	defer unix.Close(dir)
	for _, s := range list {
		if err := setSysctl(dir, s); err != nil && !errors.Is(err, unix.ENOENT) {
			return failed(step(s), err)
		}
	}
	return nil
}

func hostStep(s netstate.Sysctl) Step {
	switch s.Key() {
	case "accept_redirects":
		return StepRedirects
	case "forwarding":
		return StepForwarding
	case "accept_dad":
		return StepHostAddress
	}
	return StepAcceptRA
}

func vlanStep(s netstate.Sysctl) Step {
	switch s.Key() {
	case "accept_redirects":
		return StepVLANRedirects
	case "forwarding":
		return StepVLANForwarding
	}
	return StepVLANAcceptRA
}

func podStep(s netstate.Sysctl) Step {
	if s.Path == netstate.IPv6Setting("lo", s.Key()) {
		return StepEnableIPv6Lo
	}
	return StepEnableIPv6
}

func setSysctl(dir int, s netstate.Sysctl) error {
	mode := unix.O_WRONLY
	if s.ReadFirst {
		mode = unix.O_RDWR
	}
	fd, err := unix.Openat(dir, s.Key(), mode|unix.O_CLOEXEC, 0)
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
