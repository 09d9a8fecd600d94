package apply

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/crashpoint"
	"cnictl/plugin/podnet/rules"
)

const ipv6Conf = "/proc/sys/net/ipv6/conf/"

// setPairSysctls sets the sysctls of the host end.
func setPairSysctls(p rules.Pair) error {
	err := setSysctls(p.Host.Name, p.Sysctls, hostStep)
	if err == nil {
		crashpoint.Here(crashpoint.PluginAfterSysctls)
	}
	return err
}

// setSysctls sets sysctls of a link. /proc/sys/net shows the namespace of the calling
// thread. A kernel without IPv6 has no such files, and nothing to set.
func setSysctls(link string, list []rules.Sysctl, step func(rules.Sysctl) Step) error {
	dir, err := unix.Open(ipv6Conf+link, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
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

// setNamedSysctls sets sysctls that name their links.
func setNamedSysctls(list []rules.Sysctl, step func(rules.Sysctl) Step) error {
	for i := range list {
		if err := setSysctls(list[i].Link, list[i:i+1], step); err != nil {
			return err
		}
	}
	return nil
}

func hostStep(s rules.Sysctl) Step {
	switch s.Key {
	case "accept_redirects":
		return StepRedirects
	case "forwarding":
		return StepForwarding
	case "accept_dad":
		return StepHostAddress
	}
	return StepAcceptRA
}

func vlanStep(s rules.Sysctl) Step {
	switch s.Key {
	case "accept_redirects":
		return StepVLANRedirects
	case "forwarding":
		return StepVLANForwarding
	}
	return StepVLANAcceptRA
}

func podStep(s rules.Sysctl) Step {
	if s.Link == "lo" {
		return StepEnableIPv6Lo
	}
	return StepEnableIPv6
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
