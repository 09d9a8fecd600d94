package node

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"cnictl/doctor/evidence"
)

// rotated is a node with these logs, all written at the same time: only their names show their age.
func rotated(t *testing.T, files map[string][]byte) Options {
	t.Helper()
	root := t.TempDir()
	for name, data := range files {
		path := filepath.Join(root, "var/log", name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, data, 0o644))
		must(t, os.Chtimes(path, now, now))
	}
	return options(t, root)
}

func packed(t *testing.T, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(data)
	must(t, err)
	must(t, w.Close())
	return out.Bytes()
}

// said is a line that the daemon logged the given number of minutes ago.
func said(minutes int, msg string) []byte {
	at := now.Add(-time.Duration(minutes) * time.Minute).Format("2006-01-02T15:04:05.000Z")
	return fmt.Appendf(nil, `{"level":"error","ts":%q,"caller":"a.go:1","msg":%q}`+"\n", at, msg)
}

func messages(l evidence.Log) string {
	var out []string
	for _, line := range l.Lines {
		out = append(out, line.Msg)
	}
	return strings.Join(out, ", ")
}

// TestRotated: files rotated by lumberjack, logrotate and kubelet, compressed or not, are read with
// the current file, in order of time.
func TestRotated(t *testing.T) {
	t.Parallel()
	const routed, pod = "aws-routed-eni/", "pods/kube-system_aws-node-a_1/aws-node/"
	r := Read(t.Context(), rotated(t, map[string][]byte{
		routed + "ipamd.log":                                       said(1, "now"),
		routed + "ipamd-2026-11-23T09-58-30.000.log":               said(2, "plain"),
		routed + "ipamd-2026-11-23T09-57-30.000.log.gz":            packed(t, said(3, "packed")),
		routed + "ipamd-2026-11-23T09-56-30.000.log.gz":            packed(t, said(4, "packed before")),
		routed + "plugin.log":                                      said(1, "now"),
		routed + "plugin.log.1":                                    said(2, "first"),
		routed + "plugin.log.2.gz":                                 packed(t, said(3, "second")),
		routed + "egress-v4-plugin-2026-11-23T09-58-30.000.log.gz": packed(t, said(4, "egress")),
		routed + "network-policy-agent.log-20261123.gz":            packed(t, said(4, "agent")),
		pod + "3.log":                    []byte("2026-11-23T09:59:00.000000000Z stderr F now\n"),
		pod + "3.log.20261123-095830.gz": packed(t, []byte("2026-11-23T09:58:00.000000000Z stderr F before\n")),
		pod + "2.log.20261123-095700.gz": packed(t, []byte("2026-11-23T09:56:00.000000000Z stderr F earlier run\n")),
	}))
	awsNode := r.LogAWSNode.Content["aws-node"]
	if awsNode.Previous == nil {
		t.Fatalf("log.awsnode has no earlier run: %+v", r.LogAWSNode)
	}
	for _, l := range []struct {
		source, want string
		log          evidence.Log
	}{
		{"log.ipamd", "packed before, packed, plain, now", r.LogIPAMD.Content},
		{"log.plugin", "egress, second, first, now", r.LogPlugin.Content},
		{"log.np", "agent", r.LogAgent.Content},
		{"log.awsnode", "before, now", awsNode},
		{"log.awsnode, earlier run", "earlier run", *awsNode.Previous},
	} {
		if got := messages(l.log); got != l.want || l.log.Truncated {
			t.Errorf("%s: %q, want %q; truncated %v", l.source, got, l.want, l.log.Truncated)
		}
	}
}

// TestRotated_Bounds: only the end of a compressed file is read, whatever its size, and a damaged
// file affects no other.
func TestRotated_Bounds(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("skip: -short: decompresses 1 GB")
	}
	full := slices.Concat(said(30, "too old"), bytes.Repeat(said(20, "old"), maxLog/len(said(20, "old"))), said(2, "its end"))
	whole := packed(t, said(2, "lost"))
	bomb := packed(t, make([]byte, 512<<20))
	lie := slices.Concat(bomb[:len(bomb)-4], []byte{1, 0, 0, 0})
	for name, row := range map[string]struct {
		data []byte
		want string
	}{
		"full":       {packed(t, full), "old, its end, now"},
		"bomb":       {bomb, "now"},
		"lie":        {lie, "now"},
		"nested":     {packed(t, whole), "now"},
		"cut off":    {whole[:len(whole)/2], "now"},
		"not packed": {said(2, "lost"), "now"},
		"empty":      {nil, "now"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := Read(t.Context(), rotated(t, map[string][]byte{
				"aws-routed-eni/ipamd.log": said(1, "now"), "aws-routed-eni/ipamd-2026-11-23T09-58-30.000.log.gz": row.data,
			}))
			// The first line may be cut off.
			if got := messages(r.LogIPAMD.Content); !strings.HasSuffix(", "+got, ", "+row.want) || strings.Contains(got, "too old") || strings.Contains(got, "lost") || !r.LogIPAMD.Content.Truncated {
				t.Errorf("%q, want %q; truncated %v, missing %q", got, row.want, r.LogIPAMD.Content.Truncated, r.LogIPAMD.Missing)
			}
		})
	}
}

// TestRotated_Planted: what others put in the daemon's log directory leads to no other file of the
// node, and hides no log beside it.
func TestRotated_Planted(t *testing.T) {
	t.Parallel()
	for what, plant := range map[string]func(secret, path string) error{
		"link": os.Symlink, "hard link": os.Link,
		"FIFO": func(_, path string) error { return syscall.Mkfifo(path, 0o600) },
	} {
		for _, name := range []string{"ipamd.log", "ipamd.log.1", "ipamd-2026-11-23T09-58-30.000.log", "ipamd-2026-11-23T09-58-30.000.log.gz"} {
			t.Run(what+" "+name, func(t *testing.T) {
				t.Parallel()
				secret, data := filepath.Join(t.TempDir(), "secret"), said(2, "secret")
				if filepath.Ext(name) == ".gz" {
					data = packed(t, data)
				}
				must(t, os.WriteFile(secret, data, 0o600))
				o := rotated(t, map[string][]byte{"aws-routed-eni/ipamd-2026-11-23T09-57-30.000.log": said(3, "before")})
				must(t, plant(secret, filepath.Join(o.Root, "var/log/aws-routed-eni", name)))
				r := Read(t.Context(), o)
				if got := messages(r.LogIPAMD.Content); got != "before" || !r.LogIPAMD.Content.Truncated {
					t.Errorf("%q, truncated %v, missing %q", got, r.LogIPAMD.Content.Truncated, r.LogIPAMD.Missing)
				}
			})
		}
	}
}
