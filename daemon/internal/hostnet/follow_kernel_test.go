package hostnet

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"cnictl/daemon/hostnet/rules"
)

// follow looks at the backends once, as the periodic check does.
func (n *bed) follow(now time.Time, full bool) (*Move, error) {
	n.t.Helper()
	n.mu.Lock()
	n.runs = nil
	n.mu.Unlock()
	var move *Move
	err := n.ns.Do(func() (err error) {
		move, err = n.host.FollowBackend(n.t.Context(), now, input(v6Egress), full)
		return err
	})
	if n.tool = "iptables-nft"; n.host.Backend() == string(rules.IPTables) {
		n.tool = "iptables-legacy"
	}
	return move, err
}

// moved looks until it moves, at most twice. As in the daemon, the legacy backend, whose kernel
// sends no notifications, is looked at in full.
func (n *bed) moved(now time.Time) *Move {
	n.t.Helper()
	for range 2 {
		move, err := n.follow(now, n.tool == "iptables-legacy")
		if err != nil {
			n.t.Fatal(err)
		}
		if move != nil {
			return move
		}
	}
	return nil
}

// kubeProxys are kube-proxy's rules in table nat.
const kubeProxys = "$PROGRAM -t nat -N KUBE-SERVICES; $PROGRAM -t nat -A PREROUTING -j KUBE-SERVICES; $PROGRAM -t nat -A OUTPUT -j KUBE-SERVICES\n"

// TestFollowBackend: when kube-proxy or kubelet appears later in the other backend, the rules of
// both families move there. New connections of a pod are marked and translated all the time.
func TestFollowBackend(t *testing.T) {
	t.Parallel()
	v6 := func(script string) string { return strings.ReplaceAll(script, "iptables", "ip6tables") }
	in := func(program, script string) string { return strings.ReplaceAll(script, "$PROGRAM", program) }
	for _, row := range []struct{ name, before, later, from, to, reason string }{
		{"kubelet comes later, legacy", "", legacyChain, "iptables-nft", "iptables-legacy", "chain KUBE-KUBELET-CANARY"},
		{"kubelet comes later, IPv6 only", "", v6(legacyChain), "iptables-nft", "iptables-legacy", "chain KUBE-KUBELET-CANARY"},
		{"kube-proxy comes later, legacy", "", in("iptables-legacy", kubeProxys), "iptables-nft", "iptables-legacy", "more rules"},
		{"kube-proxy comes later, legacy, IPv6 only", "", in("ip6tables-legacy", kubeProxys), "iptables-nft", "iptables-legacy", "more rules"},
		{"kube-proxy comes later, nf_tables", in("iptables-legacy", "$PROGRAM -t nat -A OUTPUT -j ACCEPT"), in("iptables-nft", kubeProxys), "iptables-legacy", "iptables-nft", "more rules"},
		{"kubelet comes later, nf_tables", in("iptables-legacy", kubeProxys), nftChain, "iptables-legacy", "iptables-nft", "chain KUBE-KUBELET-CANARY"},
		{"kube-proxy changes its mode", legacyChain, "nft add table ip kube-proxy", "iptables-legacy", "iptables-nft", "table ip kube-proxy"},
		{"kubelet in both", legacyChain, nftChain, "iptables-legacy", "iptables-nft", "chain KUBE-KUBELET-CANARY in nf_tables"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			first := newBed(t, "iptables-nft")
			pod := first.pod()
			first.sh(row.before)
			n, _ := first.found(Options{IPTables: withPlain(t, "-nft")})
			n.setup(v6Egress)
			n.inBackend(row.from)
			now := time.Now()
			if move := n.moved(now); move != nil {
				t.Fatalf("moved before anything changed: %v", move)
			}

			stop, sent := make(chan struct{}), make(chan int)
			before := n.counters()
			go func() {
				count := 0
				defer func() { sent <- count }()
				for ; ; count++ {
					select {
					case <-stop:
						return
					default:
						n.send(pod, outside, 1)
					}
				}
			}()
			n.sh(row.later)
			move := n.moved(now)
			close(stop)
			count := <-sent
			seen := n.counters()
			for k, v := range before {
				seen[k] -= v
			}
			if count == 0 || seen["ours"] != count || seen["translated"] != count || seen["untranslated"] != 0 {
				t.Errorf("%d packets of new connections meanwhile: %v", count, seen)
			}
			if move == nil || !strings.Contains(move.Reason, row.reason) || n.tool != row.to {
				t.Fatalf("the move: %v, works with %s", move, n.tool)
			}
			n.inBackend(row.to)
			n.quiet(v6Egress)
			if seen := n.send(pod, outside, 3); seen["ours"] != 3 || seen["translated"] != 3 {
				t.Errorf("afterwards: %v", seen)
			}
			if again := n.moved(now); again != nil {
				t.Errorf("moved again: %v", again)
			}
			if fresh, log := n.found(Options{IPTables: n.host.opts.IPTables}); fresh.tool != row.to {
				t.Errorf("a restart chooses another backend:\n%s", log)
			}
		})
	}
}

// TestFollowBackend_StaysWithoutEvidence: what the choice of the start was made for may go, and
// only the other backend's rules move ours.
func TestFollowBackend_StaysWithoutEvidence(t *testing.T) {
	t.Parallel()
	first := newBed(t, "iptables-nft")
	first.sh(legacyChain)
	n, _ := first.found(Options{IPTables: withPlain(t, "-nft")})
	n.setup(v6Egress)
	n.sh("iptables-legacy -t mangle -X KUBE-KUBELET-CANARY")
	if move := n.moved(time.Now()); move != nil {
		t.Errorf("moved: %v", move)
	}
	n.inBackend("iptables-legacy")
}

// TestFollowBackend_Programs: on most nodes, which have no legacy table, a look runs none.
func TestFollowBackend_Programs(t *testing.T) {
	t.Parallel()
	first := newBed(t, "iptables-nft")
	first.sh(nftChain)
	n, _ := first.found(Options{IPTables: withPlain(t, "-nft")})
	n.setup()
	for _, full := range []bool{false, true} {
		if move, err := n.follow(time.Now(), full); move != nil || err != nil || n.programsRun() != nil {
			t.Errorf("%v, %v, ran %q", move, err, n.programsRun())
		}
	}
	n.sh("iptables-legacy -t filter -A INPUT -j ACCEPT")
	for i, want := range [][]string{{"iptables-legacy-save", "nft"}, nil} { // until a table comes or goes
		if move, err := n.follow(time.Now(), false); move != nil || err != nil {
			t.Errorf("%v, %v", move, err)
		}
		if got := slices.Sorted(slices.Values(n.programsRun())); !cmp.Equal(got, want) {
			t.Errorf("look %d ran %q, want %q", i, got, want)
		}
	}
}

// TestFollowBackend_Fails: a move that fails leaves the rules where they are, and the next look
// tries again.
func TestFollowBackend_Fails(t *testing.T) {
	t.Parallel()
	broken := []byte("#!/bin/sh\necho 'out of order' >&2\nexit 4\n")
	for _, row := range []struct {
		name, program string
		script        []byte // nil: the program is missing
		error         string // "" if nothing is attempted
	}{
		{"no program that writes", "iptables-legacy-restore", nil, ""},
		{"no program of IPv6", "ip6tables-legacy-restore", nil, "ip6tables-legacy"},
		{"a program that fails", "iptables-legacy-restore", broken, "out of order"},
		{"a program of IPv6 that fails", "ip6tables-legacy-restore", broken, "out of order"},
		{"rules that cannot be read", "iptables-legacy-save", broken, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			plain := withPlain(t, "-nft")
			n, _ := newBed(t, "iptables-nft").found(Options{IPTables: plain})
			n.setup(v6Egress)
			program := strings.TrimSuffix(plain, "iptables") + row.program
			err := os.Rename(program, program+".away")
			if row.script != nil {
				err = errors.Join(err, os.WriteFile(program, row.script, 0o700))
			}
			if err != nil {
				t.Fatal(err)
			}
			n.sh(legacyChain)
			for _, full := range []bool{true, false, true} {
				move, err := n.follow(time.Now(), full)
				if move != nil || (err != nil) != (row.error != "") || err != nil && !strings.Contains(err.Error(), row.error) {
					t.Errorf("%v, %v", move, err)
				}
				n.setup(v6Egress) // the pass that follows each look
				n.inBackend("iptables-nft")
				n.same(v6Egress)
			}
			if err := os.Rename(program+".away", program); err != nil {
				t.Fatal(err)
			}
			if move, err := n.follow(time.Now(), false); move == nil || err != nil {
				t.Errorf("once it works: %v, %v", move, err)
			}
		})
	}
}

// TestFollowBackend_Hangs: neither a start nor a look waits for ever for a program that does not end
// and whose child holds its output open. The next look moves.
func TestFollowBackend_Hangs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fifo, nft := filepath.Join(dir, "fifo"), filepath.Join(dir, "nft")
	if err := errors.Join(unix.Mkfifo(fifo, 0o600), os.WriteFile(nft, []byte("#!/bin/sh\n/bin/cat "+fifo+"\nexit 1\n"), 0o700)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // ends what still waits
		if end, err := os.OpenFile(fifo, os.O_RDWR, 0); err == nil {
			_ = end.Close()
		}
	})
	first := newBed(t, "iptables-nft")
	first.sh(legacyChain)
	n, log := first.found(Options{IPTables: withPlain(t, "-nft"), NFT: nft})
	if n.host.Backend() != string(rules.NFTables) || !strings.Contains(log, "did not end in time") {
		t.Fatalf("a start works with %s:\n%s", n.host.Backend(), log)
	}
	if move, err := n.follow(time.Now(), true); move != nil || err != nil || len(n.programsRun()) == 0 {
		t.Errorf("%v, %v, ran %q", move, err, n.programsRun())
	}
	works, err := lookPath("nft")
	if err != nil {
		t.Fatal(err)
	}
	n.host.nft = works
	if move, err := n.follow(time.Now(), false); move == nil || err != nil {
		t.Errorf("once it works: %v, %v", move, err)
	}
}

// xtablesLock holds the lock of the legacy programs. Tests that use it are not parallel: others'
// programs wait for it, too.
func xtablesLock(t *testing.T) (release func()) {
	t.Helper()
	lock, err := os.OpenFile("/run/xtables.lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lock.Close() })
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := unix.Flock(int(lock.Fd()), unix.LOCK_UN); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFollowBackend_ToLegacyUnderALock: the move waits a while for the lock and is tried again.
func TestFollowBackend_ToLegacyUnderALock(t *testing.T) { //nolint:paralleltest // see xtablesLock
	n, _ := newBed(t, "iptables-nft").found(Options{IPTables: withPlain(t, "-nft")})
	n.setup(v6Egress)
	n.sh(legacyChain)
	release := xtablesLock(t)
	if move, err := n.follow(time.Now(), true); move != nil || err == nil || !strings.Contains(err.Error(), "will be retried") {
		t.Errorf("under the lock: %v, %v", move, err)
	}
	release()
	n.inBackend("iptables-nft")
	if move, err := n.follow(time.Now(), false); move == nil || err != nil {
		t.Errorf("after the lock: %v, %v", move, err)
	}
	n.inBackend("iptables-legacy")
	n.quiet(v6Egress)
}

// TestFollowBackend_FromLegacyUnderALock: the move succeeds, and what remains in the legacy
// backend goes once the lock is free, marked as a cleanup.
func TestFollowBackend_FromLegacyUnderALock(t *testing.T) { //nolint:paralleltest // see xtablesLock
	first := newBed(t, "iptables-nft")
	first.sh(legacyChain)
	n, _ := first.found(Options{IPTables: withPlain(t, "-nft")})
	n.host.opts.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	n.setup(v6Egress)
	n.sh(nftChain)
	release := xtablesLock(t)
	if move, err := n.follow(time.Now(), true); move == nil || err != nil {
		t.Errorf("under the lock: %v, %v", move, err)
	}
	release()
	n.setup(v6Egress)
	for _, r := range n.runs {
		if r.Input != "" && !r.Cleans {
			t.Errorf("%s wrote:\n%s", r.Program, r.Input)
		}
	}
	n.inBackend("iptables-nft")
	n.quiet(v6Egress)
}
