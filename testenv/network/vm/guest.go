package vm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"cnictl/testenv/network/netns"
)

// Maybe runs the guest's job and does not return if the process is process 1 of a guest.
// Programs that call Run call it before anything else.
func Maybe() {
	if _, ok := os.LookupEnv(guestVar); !ok || os.Getpid() != 1 {
		return
	}
	if err := guest(); err != nil {
		fmt.Fprintln(os.Stderr, "virtual machine:", err) // the console
		unix.Sync()
		_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF) // process 1 must not end
	}
	select {} // until the caller ends the machine
}

func guest() error {
	var j job
	data, err := os.ReadFile(jobPath)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &j); err != nil {
		return fmt.Errorf("read %s: %w", jobPath, err)
	}
	if err := loadModules(); err != nil {
		return err
	}
	if err := mountAll(j); err != nil {
		return err
	}
	if err := os.WriteFile("/proc/sys/kernel/modprobe", []byte(j.Loader), 0); err != nil {
		return fmt.Errorf("set the loader of modules: %w", err)
	}
	ports, err := openPorts(stdoutPort, stderrPort, resultPort)
	if err != nil {
		return err
	}
	var r result
	code, err := runJob(j, ports[0], ports[1])
	if r.Code = code; err != nil {
		r.Error = err.Error()
	}
	if err := json.NewEncoder(ports[2]).Encode(r); err != nil {
		return err
	}
	for _, port := range ports {
		if _, err := port.WriteString(j.End); err != nil {
			return err
		}
	}
	return nil
}

func loadModules() error {
	files, err := filepath.Glob(modulesDir + "/*") // sorted by name
	if err != nil {
		return err
	}
	for _, f := range files {
		module, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		if err := unix.InitModule(module, ""); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("load module %s: %w", f, err)
		}
	}
	return nil
}

// mountAll makes the machine's files the guest's root, mounts the usual file systems in it,
// and puts the program at its original path, from memory.
func mountAll(j job) error {
	const safe = unix.MS_NOSUID | unix.MS_NODEV
	for _, m := range []struct {
		kind, from, at, data string
		flags                uintptr
	}{
		{"9p", "machine", "/", "trans=virtio,version=9p2000.L,cache=loose,msize=512000", unix.MS_RDONLY},
		{"proc", "proc", "/proc", "", safe | unix.MS_NOEXEC},
		{"sysfs", "sysfs", "/sys", "", safe | unix.MS_NOEXEC},
		{"devtmpfs", "devtmpfs", "/dev", "mode=0755", unix.MS_NOSUID},
		{"tmpfs", "tmpfs", "/run", "mode=0755", safe},
		{"tmpfs", "tmpfs", j.Temp, "mode=1777", safe},
		{"", initPath, j.Program, "", unix.MS_BIND},
	} {
		if err := unix.Mount(m.from, machineDir+m.at, m.kind, m.flags, m.data); err != nil {
			return fmt.Errorf("mount %s on %s: %w", m.from, m.at, err)
		}
	}
	if err := os.Chdir(machineDir); err != nil {
		return err
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("move the root: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	if err := os.WriteFile(j.network(), nil, 0o400); err != nil {
		return err
	}
	if err := unix.Mount("/proc/self/ns/net", j.network(), "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("keep the guest's network: %w", err)
	}
	return os.MkdirAll(netns.Dir, 0o755)
}

// portsAppear limits the time until the kernel has created the files of the serial ports.
const portsAppear = time.Minute

// openPorts opens serial ports by their names.
func openPorts(names ...string) (ports []*os.File, err error) {
	for deadline := time.Now().Add(portsAppear); len(ports) < len(names); {
		port, err := openPort(names[len(ports)])
		switch {
		case err == nil:
			ports = append(ports, port)
		case time.Now().After(deadline):
			return nil, err
		default:
			<-time.After(time.Millisecond)
		}
	}
	return ports, nil
}

func openPort(name string) (*os.File, error) {
	files, err := filepath.Glob("/sys/class/virtio-ports/*/name")
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if text, err := os.ReadFile(f); err == nil && strings.TrimSpace(string(text)) == name {
			fd, err := unix.Open("/dev/"+filepath.Base(filepath.Dir(f)), unix.O_WRONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return nil, fmt.Errorf("open port %s: %w", name, err)
			}
			return os.NewFile(uintptr(fd), name), nil
		}
	}
	return nil, fmt.Errorf("no port %q among %v", name, files)
}

// runJob starts the program in a new network namespace and reaps all orphans until it ends.
func runJob(j job, stdout, stderr *os.File) (code int, err error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	type started struct {
		pid       int
		listeners []net.Listener
		err       error
	}
	done := make(chan started)
	go func() {
		// This thread stays in the namespace and ends with its goroutine; the other threads, which
		// dial, are outside.
		runtime.LockOSThread()
		var s started
		s.listeners, s.err = enterNamespace(j.Ports)
		if s.err == nil {
			s.pid, s.err = syscall.ForkExec(j.Program, j.Args, &syscall.ProcAttr{
				Dir: j.Dir, Env: j.Env, Files: []uintptr{null.Fd(), stdout.Fd(), stderr.Fd()},
			})
		}
		done <- s
	}()
	if len(j.Ports) > 0 {
		if err := configureNIC(); err != nil {
			return 0, err
		}
	}
	s := <-done
	if s.err != nil {
		return 0, fmt.Errorf("start %s: %w", j.Program, s.err)
	}
	for i, port := range j.Ports {
		go forward(s.listeners[i], net.JoinHostPort(hostAddress, fmt.Sprint(port)))
	}
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0, fmt.Errorf("wait: %w", err)
		case ended == s.pid && status.Signaled():
			return 128 + int(status.Signal()), nil
		case ended == s.pid:
			return status.ExitStatus(), nil
		}
	}
}

// enterNamespace moves the thread to a new network namespace and listens on ports of its
// loopback.
func enterNamespace(ports []int) (listeners []net.Listener, err error) {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("make network namespace: %w", err)
	}
	if err := netns.LoopbackUp(); err != nil {
		return nil, err
	}
	for _, port := range ports {
		l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", fmt.Sprint(port)))
		if err != nil {
			return nil, err
		}
		listeners = append(listeners, l)
	}
	return listeners, nil
}

// Addresses in QEMU's user-mode network: the guest's, and the one that leads to the host's
// loopback.
const (
	guestAddress = "10.0.2.15/24"
	hostAddress  = "10.0.2.2"
)

func configureNIC() error {
	links, err := netns.Dump(netlink.LinkList)
	if err != nil {
		return fmt.Errorf("list links: %w", err)
	}
	i := slices.IndexFunc(links, func(l netlink.Link) bool { return l.Type() == "device" && l.Attrs().Flags&net.FlagLoopback == 0 })
	if i < 0 {
		return errors.New("the network device is missing")
	}
	address, err := netlink.ParseAddr(guestAddress)
	if err != nil {
		return err
	}
	return errors.Join(netlink.AddrAdd(links[i], address), netlink.LinkSetUp(links[i]))
}

// forward relays connections to an address outside.
func forward(from net.Listener, to string) {
	for {
		inside, err := from.Accept()
		if err != nil {
			return
		}
		go func() {
			defer inside.Close()
			outside, err := net.Dial("tcp4", to)
			if err != nil {
				fmt.Fprintln(os.Stderr, "virtual machine:", err)
				return
			}
			defer outside.Close()
			done := make(chan struct{}, 2)
			for _, pair := range [][2]net.Conn{{inside, outside}, {outside, inside}} {
				go func() {
					_, _ = io.Copy(pair[0], pair[1])
					_ = pair[0].(*net.TCPConn).CloseWrite()
					done <- struct{}{}
				}()
			}
			<-done
			<-done
		}()
	}
}
