package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/node"
)

// churnEvery is the pause between two changes of the set of pods. It is gentle, like a
// cluster in which a deployment rolls now and then.
const churnEvery = 700 * time.Millisecond

// maxPods bounds the pods of one node.
const maxPods = 14

// live runs the lab with pods coming and going until the terminal view ends.
func live(ctx context.Context, o options, dir string) (err error) {
	l, err := newLab(pace{latency: fakeaws.RealisticLatency(), attachDelay: time.Second, linkDelay: 300 * time.Millisecond})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	if err := startLive(ctx, l, o.bin, dir); err != nil {
		return interrupted(ctx, err)
	}
	log, err := os.Create(filepath.Join(dir, "pods.log"))
	if err != nil {
		return err
	}
	defer log.Close()

	fmt.Printf("\nFrom another terminal:\n  export T=%s\n", l.targets())
	fmt.Printf("  %s status --targets $T\n  %s node show worker-1 --targets $T\n", filepath.Join(o.bin, cnictlBinary), filepath.Join(o.bin, cnictlBinary))
	fmt.Printf("  tail -f %s\nCtrl-C ends everything.\n\n", log.Name())

	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { churn(ctx, l, log) })
	err = watch(ctx, l, o.bin)
	cancel()
	wg.Wait()
	return err
}

func startLive(ctx context.Context, l *lab, bin, dir string) error {
	for _, w := range workers {
		n, err := l.boot(ctx, w, bin, dir)
		if err != nil {
			return err
		}
		fmt.Printf("booted %s  %s, %s, %s\n", n.Name, n.instanceType, n.mode, n.Primary.PrimaryIP)
	}
	errs := make([]error, len(l.nodes))
	var wg sync.WaitGroup
	for i, n := range l.nodes {
		wg.Go(func() { errs[i] = n.serve(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// interrupted treats Ctrl-C during the start as a normal exit.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// watch shows the nodes until the user quits: with cnictl's screens on a terminal, otherwise
// with its table.
func watch(ctx context.Context, l *lab, bin string) error {
	if onTerminal() {
		return show(ctx, bin, nil, nil, "tui", "--targets", l.targets())
	}
	return show(ctx, bin, nil, nil, "status", "-w", "--interval", "2s", "--targets", l.targets())
}

func onTerminal() bool {
	return term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stdout.Fd()))
}

// show runs cnictl in the foreground, with additional environment variables. The demo ends
// when cnictl exits, and cnictl gets SIGTERM if the demo dies. It holds the lifeline, too.
func show(ctx context.Context, bin string, lifeline *os.File, env []string, args ...string) error {
	runtime.LockOSThread() // the kernel watches the thread, not the process
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, cnictlBinary), args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGTERM}
	if lifeline != nil {
		cmd.ExtraFiles = []*os.File{lifeline}
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(unix.SIGTERM) }
	cmd.WaitDelay = 3 * time.Second
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil: // Ctrl-C reached this process as well
		return nil
	case errors.As(err, &exit) && (exit.ExitCode() == 130 || exit.ExitCode() == -1):
		return nil // interrupted by the user
	case err != nil:
		return fmt.Errorf("run cnictl %s: %w", args[0], err)
	}
	return nil
}

// churn adds and deletes pods until the context ends. One pod changes at a time,
// and each node drifts around a target that changes now and then, so that ENIs and prefixes
// come and go too.
func churn(ctx context.Context, l *lab, log io.Writer) {
	rnd := rand.New(rand.NewPCG(1, 2)) // the same sequence every time
	pods := map[*labNode][]*node.Pod{}
	wish := map[*labNode]int{}
	for _, n := range l.nodes {
		wish[n] = 3 + rnd.IntN(4)
	}
	tick := time.NewTicker(churnEvery)
	defer tick.Stop()
	for number := 0; ; number++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		n := l.nodes[rnd.IntN(len(l.nodes))]
		if rnd.IntN(20) == 0 {
			wish[n] = 1 + rnd.IntN(maxPods)
		}
		// At the target both are equally likely, so pods come and go even while their number
		// stays the same.
		more := len(pods[n]) < wish[n] || (len(pods[n]) == wish[n] && rnd.IntN(2) == 0)
		if more && len(pods[n]) < maxPods {
			pods[n] = addOne(n, pods[n], fmt.Sprintf("web-%d", number), log)
		} else if len(pods[n]) > 0 {
			pods[n] = deleteOne(n, pods[n], rnd.IntN(len(pods[n])), log)
		}
	}
}

func addOne(n *labNode, pods []*node.Pod, name string, log io.Writer) []*node.Pod {
	p, err := n.AddPod(node.PodSpec{Namespace: "default", Name: name})
	if err != nil {
		fmt.Fprintf(log, "%s  add     %s  FAIL %v\n", n.Name, name, err)
		return pods
	}
	fmt.Fprintf(log, "%s  add     %s  %s  %.1f ms\n", n.Name, name, p.IP, ms(p.Add.Wall))
	return append(pods, p)
}

func deleteOne(n *labNode, pods []*node.Pod, i int, log io.Writer) []*node.Pod {
	p := pods[i]
	if err := n.DelPod(p); err != nil {
		fmt.Fprintf(log, "%s  delete  %s  FAIL %v\n", n.Name, p.Name, err)
	} else {
		fmt.Fprintf(log, "%s  delete  %s  %s\n", n.Name, p.Name, p.IP)
	}
	return append(pods[:i:i], pods[i+1:]...)
}
