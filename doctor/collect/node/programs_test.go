package node

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"cnictl/doctor/evidence"
	"cnictl/testenv"
)

// TestPrograms: the output of a program is read. A program that hangs, or leaves a child holding
// its output, ends when the time of its source is up.
func TestPrograms(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	must(t, syscall.Mkfifo(fifo, 0o644))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	put := func(program, script string) {
		must(t, os.WriteFile(filepath.Join(dir, program), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	}
	read := func(c *collector) (kubelet evidence.Source[evidence.Log], filters evidence.Source[evidence.IPTables]) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		c.ctx = ctx
		source(c, &kubelet, c.kubeletLog)
		source(c, &filters, c.iptables)
		c.all.Wait()
		if ctx.Err() != nil {
			t.Fatal("reading did not end in time")
		}
		return kubelet, filters
	}
	of := func(timeout time.Duration) *collector {
		return newCollector(t.Context(), Options{Now: func() time.Time { return now }, Timeout: timeout})
	}
	patient := func() *collector { return of(30 * time.Second) }
	hasty := func() *collector { return of(time.Second) }

	put("journalctl", `echo "2026-11-23T09:59:00.000000+0000 host kubelet[7]: E1123 09:59:00.000000 7 pod.go:1] failed"`)
	put("iptables", "echo 'iptables v1.8.9 (nf_tables)'")
	put("iptables-nft-save", `printf '*filter\n:FORWARD DROP [0:0]\nCOMMIT\n'`)
	put("ip6tables-nft-save", "exit 1")
	put("nft", "printf 'table ip aws-cni\\n'")
	kubelet, filters := read(patient())
	if len(kubelet.Content.Lines) != 1 || kubelet.Content.Lines[0].Msg != "failed" || kubelet.Content.Lines[0].Level != "error" {
		t.Errorf("log.kubelet: %+v", kubelet)
	}
	if c := filters.Content; c.Mode != "nft" || c.Forward != "DROP" || strings.Join(c.NFTTables, ",") != "ip aws-cni" {
		t.Errorf("kern.ipt: %+v", filters)
	}

	put("journalctl", "exit 0")
	put("iptables-nft-save", "echo Operation not supported >&2; exit 4")
	if kubelet, filters = read(patient()); kubelet.Missing != evidence.MissingAbsent || !strings.Contains(filters.Missing, "Operation not supported") {
		t.Errorf("missing: %q, %q", kubelet.Missing, filters.Missing)
	}
	put("iptables-nft-save", "echo 'Permission denied (you must be root)' >&2; exit 4")
	if _, filters = read(patient()); filters.Missing != evidence.MissingForbidden {
		t.Errorf("missing: %q", filters.Missing)
	}
	put("iptables-nft-save", "echo nonsense")
	if _, filters = read(patient()); !strings.Contains(filters.Missing, "parse output of iptables-save") {
		t.Errorf("missing: %q", filters.Missing)
	}

	for name, script := range map[string]string{"hangs": "exec cat " + fifo, "leaves a child": "cat " + fifo + " &\nwait"} {
		put("journalctl", script)
		put("iptables-nft-save", script)
		kubelet, filters = read(hasty())
		if kubelet.Missing != evidence.MissingTimeout+": journalctl did not end" || filters.Missing != evidence.MissingTimeout+": iptables-nft-save did not end" {
			t.Errorf("a program that %s: %q, %q", name, kubelet.Missing, filters.Missing)
		}
	}
}

// TestPrograms_Spare: of a program that a source can do without and that hangs, only its part is
// missing.
func TestPrograms_Spare(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo") // hangs
	must(t, syscall.Mkfifo(fifo, 0o644))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	put := func(path, script string) {
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	}
	put(filepath.Join(dir, "iptables"), "echo 'iptables v1.8.9 (nf_tables)'")
	put(filepath.Join(dir, "iptables-nft-save"), `printf '*filter\n:FORWARD DROP [0:0]\nCOMMIT\n'`)
	put(filepath.Join(dir, "ip6tables-nft-save"), "exit 1")
	for _, program := range []string{"nft", "systemctl"} {
		put(filepath.Join(dir, program), "exec cat "+fifo)
	}
	root := filepath.Join(dir, "root")
	put(filepath.Join(root, "etc/cni/net.d/10-aws.conflist"), "")
	put(filepath.Join(root, "opt/cni/bin/aws-cni"), "exec cat "+fifo)
	put(filepath.Join(root, "opt/cni/bin/egress-cni"), "exec cat "+fifo)
	put(filepath.Join(root, "opt/cni/bin/loopback"), "")

	o := Options{Now: func() time.Time { return now }, Timeout: 2 * time.Second}
	host := newCollector(t.Context(), o)
	var filters evidence.Source[evidence.IPTables]
	var software evidence.Source[evidence.Packages]
	source(host, &filters, host.iptables)
	source(host, &software, host.packages)
	o.Root = root
	below := newCollector(t.Context(), o)
	var plugins evidence.Source[evidence.CNI]
	source(below, &plugins, below.cni)
	host.all.Wait()
	below.all.Wait()
	if c := filters.Content; !filters.OK() || c.Forward != "DROP" || c.NFTTables != nil {
		t.Errorf("kern.ipt: %+v", filters)
	}
	if !software.OK() || software.Content.LinkPolicy == "" && software.Content.Systemd != nil || software.Content.Units != nil {
		t.Errorf("host.pkg: %+v", software)
	}
	if bin := plugins.Content.Bin; !plugins.OK() || len(plugins.Content.Conf) != 1 || len(bin) != 3 || bin[0].Version != nil {
		t.Errorf("host.cni: %+v", plugins)
	}
}

// TestPrograms_LateOutput: on a busy node, what a program printed is read a while after its end.
func TestPrograms_LateOutput(t *testing.T) {
	t.Parallel()
	c := newCollector(t.Context(), Options{Timeout: 2 * time.Minute})
	ctx, cancel := within(t.Context(), c.Timeout)
	defer cancel()
	printed, err := run(ctx, "sh", "-c", "(sleep 0.5; echo second) & echo first")
	if err != nil || printed != "first\nsecond\n" {
		t.Errorf("%q, %v", printed, err)
	}
}

// TestWithin: a source ends when the reading has not gone on for its time, however slow it is, and
// after ten times that in any case.
func TestWithin(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ every, want time.Duration }{
		"hangs": {time.Hour, 3 * time.Second}, "is slow": {2 * time.Second, 30 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCollector(t.Context(), Options{Timeout: 3 * time.Second})
			began := time.Now()
			ctx, cancel := within(t.Context(), c.Timeout)
			defer cancel()
			tick := time.NewTicker(row.every)
			defer tick.Stop()
			for ctx.Err() == nil {
				select {
				case <-ctx.Done():
				case <-tick.C:
					progressOf(ctx).goesOn()
				}
			}
			if took := time.Since(began); took != row.want || !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
				t.Errorf("a source that %s ended after %v: %v", name, took, context.Cause(ctx))
			}
		})
	}
}

// TestSource_OwnTime: a source that works gives no time to one that is silent.
func TestSource_OwnTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCollector(t.Context(), Options{Timeout: 3 * time.Second})
		took := func(read func(context.Context)) func(context.Context) (time.Duration, error) {
			return func(ctx context.Context) (time.Duration, error) {
				began := time.Now()
				read(ctx)
				return time.Since(began), nil
			}
		}
		silent := func(ctx context.Context) { <-ctx.Done() }
		var working, hanging, probing evidence.Source[time.Duration]
		source(c, &working, took(func(ctx context.Context) {
			tick := time.NewTicker(time.Second)
			defer tick.Stop()
			for ctx.Err() == nil {
				select {
				case <-ctx.Done():
				case <-tick.C:
					progressOf(ctx).goesOn()
				}
			}
		}))
		source(c, &hanging, took(silent))
		source(c, &probing, took(func(ctx context.Context) {
			ctx, cancel := within(ctx, c.Timeout*2/3)
			defer cancel()
			silent(ctx)
		}))
		c.all.Wait()
		if working.Content != 30*time.Second || hanging.Content != 3*time.Second || probing.Content != 2*time.Second {
			t.Errorf("one that works ended after %+v, one that hangs after %+v, a part that hangs after %+v", working, hanging, probing)
		}
	})
}

// TestProgress: a program that works is progress, one that hangs is not.
func TestProgress(t *testing.T) {
	t.Parallel()
	if worked(os.Getpid()) == 0 {
		testenv.Missing(t, "root", "a kernel that counts how long a process works (CONFIG_SCHED_INFO)", "go test ./doctor/collect/node")
	}
	for script, works := range map[string]bool{"while :; do :; done": true, "exec sleep 1000": false} {
		cmd := command(t.Context(), "sh", "-c", script)
		must(t, cmd.Start())
		var p progress
		end := p.watch(cmd.Process.Pid)
		tick := time.NewTicker(50 * time.Millisecond)
		// One that hangs works while it starts.
		for last, idle := p.look(), 0; ; {
			<-tick.C
			now := p.look()
			if works && now >= 3 || !works && idle == 3 {
				break
			}
			if idle++; now != last {
				idle = 0
			}
			last = now
		}
		tick.Stop()
		end()
		must(t, cmd.Cancel())
		_ = cmd.Wait() // killed
	}
}

func TestSource_Panic(t *testing.T) {
	t.Parallel()
	c := newCollector(t.Context(), Options{Timeout: 2 * time.Minute})
	var s evidence.Source[int]
	source(c, &s, func(context.Context) (int, error) { var none []int; return none[1], nil })
	c.all.Wait()
	if !strings.Contains(s.Missing, "crashed") {
		t.Errorf("missing because of %q", s.Missing)
	}
}

func TestReason(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		evidence.MissingForbidden: &os.PathError{Op: "open", Path: "/x", Err: syscall.EACCES},
		evidence.MissingAbsent:    &os.PathError{Op: "open", Path: "/x", Err: syscall.ENOENT},
		evidence.MissingRefused:   syscall.ECONNREFUSED,
		evidence.MissingTimeout:   context.DeadlineExceeded,
	} {
		if got := reason(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
	if got := reason(syscall.EPERM); got != evidence.MissingForbidden {
		t.Errorf("EPERM: %q", got)
	}
}

// TestEnvironments: containerd supplies the environments of ended containers. Those of running
// processes take precedence, and work without containerd.
func TestEnvironments(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo") // hangs
	must(t, syscall.Mkfifo(fifo, 0o644))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	put := func(script string) {
		must(t, os.WriteFile(filepath.Join(dir, "ctr"), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	}
	read := func(timeout time.Duration) map[string]map[string]string {
		c := newCollector(t.Context(), Options{Now: func() time.Time { return now }, Timeout: timeout})
		c.processes = func() ([]process, error) { return []process{{pid: os.Getpid(), name: "aws-k8s-agent"}}, nil }
		env, err := c.environments(t.Context())
		must(t, err)
		return env
	}
	put(`case "$3" in
list) echo init; echo ended; echo gone ;;
info) case "$4" in
	init) echo '{"ID":"init","Labels":{"io.kubernetes.container.name":"aws-vpc-cni-init"},"CreatedAt":"2026-11-23T09:00:00.4Z","Spec":{"process":{"env":["DISABLE_TCP_EARLY_DEMUX=true"]}}}' ;;
	ended) echo '{"ID":"ended","Labels":{"io.kubernetes.container.name":"aws-node"},"CreatedAt":"2026-11-23T09:00:00.4Z","Spec":{"process":{"env":["OLD=1"]}}}' ;;
	*) echo 'no such container' >&2; exit 1 ;;
	esac ;;
esac`)
	env := read(time.Minute)
	if env["aws-vpc-cni-init"]["DISABLE_TCP_EARLY_DEMUX"] != "true" || len(env["aws-node"]) == 0 || env["aws-node"]["OLD"] != "" || len(env) != 2 {
		t.Errorf("environments: %v", env)
	}
	for _, script := range []string{"cat " + fifo, "exit 1", "echo nonsense"} {
		put(script)
		if env := read(300 * time.Millisecond); len(env["aws-node"]) == 0 || len(env) != 1 {
			t.Errorf("%s: %v", script, env)
		}
	}
}
