package hostnet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"cnictl/daemon/hostnet/rules"
)

// Run is one finished program run.
type Run struct {
	Program string // base name
	Args    []string
	Input   string
	Cleans  bool // it removes what an earlier run or setting left
	Took    time.Duration
	Err     error
}

// findPrograms finds the programs of the mode that the node uses and sets the backend. It
// returns the output of `iptables --version`.
func (h *Host) findPrograms(ctx context.Context) (version string, _ error) {
	iptables, err := lookPath(h.opts.IPTables)
	if err != nil {
		return "", fmt.Errorf("%s: %w", textBackend, err)
	}
	h.nft, err = lookPath(h.opts.NFT)
	if err != nil && !errors.Is(err, exec.ErrNotFound) {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, moveLimit)
	defer cancel()
	probe := h.startBackendProbe(ctx)
	p, err := h.start(ctx, "", iptables, "--version")
	if err == nil {
		version, err = p.wait()
	}
	if err != nil {
		probe.drop()
		return "", fmt.Errorf("%s: %w", textBackend, err)
	}
	version = strings.TrimSpace(version)
	h.plain, h.randomFully = readVersion(version)
	backend, reason := h.plain, "the mode of iptables"
	if probe != nil {
		backend, reason = probe.finish(ctx, h.plain)
	}
	in := h.choose(backend, reason)
	for _, part := range []string{"-save", "-restore"} {
		if _, err := lookPath(in.programs.name + part); err != nil {
			return "", fmt.Errorf("%s: %w", textNoIPTables, err)
		}
	}
	h.choice.Store(in)
	return version, nil
}

// lookPath also finds programs if PATH, as an ordinary user's, lacks the system directories.
func lookPath(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil || strings.Contains(name, "/") {
		return path, err
	}
	for _, dir := range []string{"/usr/sbin", "/sbin", "/usr/local/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", err
}

// readVersion parses "iptables v1.8.9 (nf_tables)". Only the word "legacy" means the
// iptables backend; old releases that name no mode count as nftables, as in upstream.
func readVersion(version string) (backend rules.Backend, randomFully bool) {
	backend = rules.NFTables
	if strings.Contains(version, "legacy") {
		backend = rules.IPTables
	}
	for _, word := range strings.Fields(version) {
		if number, ok := strings.CutPrefix(word, "v"); ok {
			return backend, atLeast(number, 1, 6, 2) // the first release with --random-fully
		}
	}
	return backend, false
}

func atLeast(version string, want ...int) bool {
	parts := strings.Split(version, ".")
	for i, w := range want {
		n := 0
		if i < len(parts) {
			n, _ = strconv.Atoi(parts[i]) // a suffix such as "2-rc1" reads as 0
		}
		if n != w {
			return n > w
		}
	}
	return true
}

// process is a running program.
type process struct {
	h        *Host
	cmd      *exec.Cmd
	run      Run
	began    time.Time
	out, err bytes.Buffer
	stopped  error // why its context ended first, nil otherwise
}

// outputWait is how long a program that has ended is waited for while a child of its own holds
// its output open.
const outputWait = 3 * time.Second

// start starts a program on the calling thread, hence in its network namespace, and does
// not wait for it.
func (h *Host) start(ctx context.Context, input, program string, args ...string) (*process, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	p := &process{h: h, cmd: cmd, began: time.Now()}
	p.run = Run{Program: filepath.Base(cmd.Path), Args: cmd.Args[1:], Input: input}
	cmd.Env = append(os.Environ(), "LC_ALL=C") // its messages are parsed
	cmd.Stdout, cmd.Stderr = &p.out, &p.err
	cmd.WaitDelay = outputWait
	if kill := cmd.Cancel; kill != nil {
		cmd.Cancel = func() error {
			p.stopped = ctx.Err()
			return kill()
		}
	}
	if input != "" {
		cmd.Stdin = strings.NewReader(input)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.run.Program, err)
	}
	return p, nil
}

// wait waits for the program to end and returns its output.
func (p *process) wait() (string, error) {
	err := p.cmd.Wait()
	if p.stopped != nil && err != nil {
		err = fmt.Errorf("did not end in time, and was stopped: %w", err)
	}
	if err != nil {
		err = &ProgramError{Program: p.run.Program, Message: strings.TrimSpace(p.err.String()), Err: err, Stopped: p.stopped}
	}
	p.run.Took, p.run.Err = time.Since(p.began), err
	if p.h.opts.Observe != nil {
		p.h.opts.Observe(p.run)
	}
	return p.out.String(), err
}

// ProgramError is the failure of a program.
type ProgramError struct {
	Program string
	Message string // what it wrote to standard error
	Err     error
	Stopped error // the error of the context that stopped it, nil otherwise
}

func (e *ProgramError) Error() string {
	text := fmt.Sprintf("run %s: %v", e.Program, e.Err)
	if e.Message != "" {
		text += ": " + strings.ReplaceAll(e.Message, "\n", "; ")
	}
	return text
}

func (e *ProgramError) Unwrap() []error {
	if e.Stopped != nil {
		return []error{e.Err, e.Stopped}
	}
	return []error{e.Err}
}
