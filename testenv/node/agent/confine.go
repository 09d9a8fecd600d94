package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"cnictl/testenv/network/netns"
)

// Confinement describes how a container runtime restricts a program, apart from namespaces. The
// program stays user 0, cannot gain privileges (no_new_privs), and may write only below the
// writable paths: everything else, including /proc/sys, is read-only.
type Confinement struct {
	Capabilities []string `json:"capabilities"` // the only ones left, as a pod's manifest names them
	Writable     []string `json:"writable"`     // existing paths
}

// capabilities are ordered by the kernel's numbers (capabilities(7)).
var capabilities = []string{
	"CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP",
	"LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER",
	"SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE",
	"SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP",
	"MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF",
	"CHECKPOINT_RESTORE",
}

// forkExec starts a program, confined unless c is nil.
func (c *Confinement) forkExec(argv []string, attr *syscall.ProcAttr) (pid int, err error) {
	if c == nil {
		return syscall.ForkExec(argv[0], argv, attr)
	}
	err = netns.Discard(func() (err error) { // the thread cannot regain what it drops
		if err := c.take(); err != nil {
			return err
		}
		pid, err = syscall.ForkExec(argv[0], argv, attr)
		return err
	})
	return pid, err
}

// take confines the calling thread and the programs it starts. A program that user 0 executes
// gets all capabilities in the bounding set.
func (c *Confinement) take() error {
	for _, name := range c.Capabilities {
		if !slices.Contains(capabilities, name) {
			return fmt.Errorf("confine: no capability is named %q", name)
		}
	}
	if err := c.protectFiles(); err != nil {
		return fmt.Errorf("confine: %w", err)
	}
	for number := 0; ; number++ {
		if number < len(capabilities) && slices.Contains(c.Capabilities, capabilities[number]) {
			continue
		}
		err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(number), 0, 0, 0)
		if errors.Is(err, unix.EINVAL) { // past the last capability that this kernel knows
			break
		}
		if err != nil {
			return fmt.Errorf("confine: drop capability %d: %w", number, err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("confine: refuse new privileges: %w", err)
	}
	return nil
}

// protectFiles gives the thread a private set of mounts, in which everything but the writable
// paths is read-only. Mounts of pods' namespaces, which a container does not see, are removed:
// they would keep the namespaces alive.
func (c *Confinement) protectFiles() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("make mounts of its own: %w", err)
	}
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	pods, err := os.ReadDir(netns.Dir)
	if err != nil {
		return err
	}
	for _, p := range pods {
		err := unix.Unmount(filepath.Join(netns.Dir, p.Name()), unix.MNT_DETACH)
		if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) { // no mount; gone meanwhile
			return fmt.Errorf("leave namespace %s out: %w", p.Name(), err)
		}
	}
	for _, p := range c.Writable {
		if err := unix.Mount(p, p, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("keep %s writable: %w", p, err)
		}
	}
	if err := setMounts("/", unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return fmt.Errorf("make mounts read-only: %w", err)
	}
	for _, p := range c.Writable {
		if err := setMounts(p, unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return fmt.Errorf("keep %s writable: %w", p, err)
		}
	}
	return nil
}

// setMounts changes the attributes of a mount and of the mounts below it.
func setMounts(path string, attr unix.MountAttr) error {
	return unix.MountSetattr(unix.AT_FDCWD, path, unix.AT_RECURSIVE, &attr)
}
