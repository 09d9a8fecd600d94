package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cnictl/testenv/kube/cluster"
	"cnictl/testenv/kube/kubeapi"
)

const (
	upWithin   = 15 * time.Minute // three minutes are typical on two busy processors
	downWithin = time.Minute
	pollEvery  = 100 * time.Millisecond
)

// up starts run in the background and shows its output until all nodes are Ready.
func up(ctx context.Context, o options) error {
	if os.Geteuid() != 0 {
		return errors.New("it needs root, for the cgroups of containers: sudo make cluster")
	}
	if err := cluster.Missing(o.bin); err != nil {
		return err
	}
	if err := prepare(o); err != nil {
		return err
	}
	child, err := launch(o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, upWithin)
	defer cancel()
	if err := follow(ctx, o, child); err != nil {
		return errors.Join(err, fmt.Errorf("its logs are in %s", o.dir), terminate(o))
	}
	programs, err := kubeapi.ProgramDir()
	if err != nil {
		return err
	}
	fmt.Printf(`
  export KUBECONFIG=%[1]s
  %[2]s get nodes
  %[3]s status          # nodes, node, pod, ips, enis, events, logs, top
  %[3]s doctor --via exec
  %[3]s tui
  %[4]s upgrade aws-vpc-cni %[5]s -n kube-system --reuse-values --set env.WARM_ENI_TARGET=2
`, o.state(kubeconfigFile), filepath.Join(programs, "kubectl"), filepath.Join(o.bin, "cnictl"), cluster.Helm(o.bin), cluster.Chart(o.bin))
	return nil
}

// prepare creates an empty directory, unless a cluster runs there.
func prepare(o options) error {
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return err
	}
	if err := clear(o); err != nil {
		return err
	}
	return os.MkdirAll(o.state("files"), 0o700)
}

// clear removes what a cluster left, and nothing else: the directory may be the wrong one.
func clear(o options) error {
	entries, err := os.ReadDir(o.dir)
	if err != nil {
		return err
	}
	known := map[string]bool{lockFile: true, pidFile: true, logFile: true, kubeconfigFile: true, "." + kubeconfigFile: true, "files": true}
	for _, e := range entries {
		if !known[e.Name()] {
			return fmt.Errorf("%s does not belong to a cluster: it contains %s", o.dir, e.Name())
		}
	}
	lock, err := takeLock(o)
	if err != nil {
		return err
	}
	defer lock.Close()
	for _, e := range entries {
		if err := os.RemoveAll(o.state(e.Name())); err != nil {
			return err
		}
	}
	return os.RemoveAll(o.state(lockFile))
}

// launch starts run, detached from this terminal.
func launch(o options) (*os.Process, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	socket, err := listener.(*net.TCPListener).File()
	if err != nil {
		return nil, err
	}
	defer socket.Close()
	log, err := os.OpenFile(o.state(logFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{runCommand, "--nodes", strconv.Itoa(o.nodes), "--type", o.instance, "--proxy", o.proxy, "--dir", o.dir, "--bin", o.bin}
	for name, value := range o.env {
		args = append(args, "--env", name+"="+value)
	}
	cmd := exec.Command(self, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = socket, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start in the background: %w", err)
	}
	return cmd.Process, os.WriteFile(o.state(pidFile), []byte(strconv.Itoa(cmd.Process.Pid)), 0o600)
}

// follow copies the log until the kubeconfig exists or run has ended.
func follow(ctx context.Context, o options, child *os.Process) error {
	log, err := os.Open(o.state(logFile))
	if err != nil {
		return err
	}
	defer log.Close()
	ended := make(chan struct{})
	go func() { // ends with the child or this process
		_, _ = child.Wait() // the log has the reason
		close(ended)
	}()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if _, err := io.Copy(os.Stdout, log); err != nil {
			return err
		}
		_, err := os.Stat(o.state(kubeconfigFile))
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		select {
		case <-ended:
			_, err := io.Copy(os.Stdout, log)
			return errors.Join(errors.New("it exited while starting"), err)
		case <-ctx.Done():
			return fmt.Errorf("start the cluster: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

// down ends the cluster and removes its files. It succeeds if there is no cluster.
func down(_ context.Context, o options) error {
	if _, err := os.Stat(o.dir); errors.Is(err, fs.ErrNotExist) {
		fmt.Println("no cluster in", o.dir)
		return nil
	}
	if err := terminate(o); err != nil {
		return err
	}
	if err := clear(o); err != nil {
		return err
	}
	if err := cluster.SweepCgroups(); err != nil {
		return err
	}
	if err := os.Remove(o.dir); err != nil {
		return err
	}
	fmt.Println("the cluster has stopped")
	return nil
}

// terminate stops run and waits until it has exited. If that takes too long, it kills run.
func terminate(o options) error {
	signal := unix.SIGTERM
	for deadline := time.Now().Add(downWithin); ; {
		lock, err := takeLock(o)
		if err == nil {
			return lock.Close()
		}
		if !errors.Is(err, errRuns) {
			return err
		}
		if signal != 0 { // once: the PID is valid while the lock is held
			if err := signalRun(o, signal); err != nil {
				return err
			}
			signal = 0
		}
		if time.Now().After(deadline) {
			return errors.Join(errors.New("it does not stop and is killed"), signalRun(o, unix.SIGKILL))
		}
		<-time.After(pollEvery)
	}
}

// signalRun sends a signal to run.
func signalRun(o options, signal syscall.Signal) error {
	text, err := os.ReadFile(o.state(pidFile))
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid < 2 {
		return fmt.Errorf("%s has no process number: %q", o.state(pidFile), text)
	}
	return unix.Kill(pid, signal)
}
