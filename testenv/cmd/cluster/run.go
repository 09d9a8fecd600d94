package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"cnictl/testenv"
	"cnictl/testenv/kube/cluster"
)

// runCommand is what up starts in the background. Users do not run it.
const runCommand = "run"

// Files in the cluster's directory.
const (
	lockFile       = "lock"       // locked while the cluster runs
	pidFile        = "pid"        // PID of run
	logFile        = "log"        // output of run
	kubeconfigFile = "kubeconfig" // exists once all nodes are Ready
)

// run runs the cluster until it gets a signal. Its standard input is the listener in the
// machine's network namespace through which the API server is reached: no other descriptor is
// passed into a sandbox.
func run(ctx context.Context, o options) error {
	if err := testenv.Enter(); err != nil {
		return fmt.Errorf("the kernel does not allow the namespaces it needs: %w", err)
	}
	lock, err := takeLock(o)
	if err != nil {
		return err
	}
	defer lock.Close() // after everything is gone
	listener, err := net.FileListener(os.Stdin)
	if err != nil {
		return fmt.Errorf("take the listener (run is internal, use up): %w", err)
	}
	tcp, ok := listener.(*net.TCPListener)
	if !ok {
		return fmt.Errorf("the listener is a %T", listener)
	}
	c, err := cluster.Start(ctx, o.cluster())
	if err != nil {
		return err
	}
	_, stop := c.API.Forward(tcp)
	err = c.WriteKubeconfig(o.state("."+kubeconfigFile), tcp.Addr().String())
	if err == nil {
		err = os.Rename(o.state("."+kubeconfigFile), o.state(kubeconfigFile))
	}
	if err == nil {
		<-ctx.Done()
	}
	stop()
	return errors.Join(err, c.Close())
}

// errRuns means that the directory belongs to a running cluster.
var errRuns = errors.New("a cluster is already running there")

// takeLock locks the directory for this process.
func takeLock(o options) (*os.File, error) {
	f, err := os.OpenFile(o.state(lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = errRuns
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("use %s: %w", filepath.Clean(o.dir), err)
	}
	return f, nil
}
