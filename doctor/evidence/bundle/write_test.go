package bundle

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cnictl/doctor/evidence"
	"cnictl/testenv/situation"
)

// everySituation is set at night.
var everySituation bool

// situations returns the causes' fixtures by name: all of them, or one for every each code.
func situations(t testing.TB, each int) map[string]*evidence.Evidence {
	t.Helper()
	paths, err := filepath.Glob("../../causes/testdata/*/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatal("no fixtures", err)
	}
	out := map[string]*evidence.Evidence{}
	if !everySituation {
		codes := slices.DeleteFunc(paths, func(path string) bool {
			return strings.ContainsAny(strings.TrimSuffix(filepath.Base(path), ".yaml"), "@.")
		})
		paths = nil
		for i := 0; i < len(codes); i += each {
			paths = append(paths, codes[i])
		}
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		ev, err := situation.Load(data)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		out[strings.TrimPrefix(path, "../../causes/testdata/")] = ev
	}
	return out
}

// through writes an archive and reads it back.
func through(t testing.TB, ev *evidence.Evidence, o Options) (*evidence.Evidence, Manifest) {
	t.Helper()
	var b bytes.Buffer
	m, err := Write(&b, ev, o)
	if err != nil {
		t.Fatal(err)
	}
	out, notes, err := Read(&b, "")
	if err != nil || len(notes) > 0 {
		t.Fatal(err, notes)
	}
	return out, m
}

var equal = cmp.Options{cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}), cmpopts.EquateEmpty()}

// TestRoundTrip: what was written is read back unchanged.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for name, ev := range situations(t, 5) {
		got, _ := through(t, ev, Options{})
		want := *ev
		want.Mode = evidence.ModeBundle
		if diff := cmp.Diff(&want, got, equal); diff != "" {
			t.Errorf("%s (-written +read):\n%s", name, diff)
		}
	}
}

// healthy is a node with its logs.
func healthy(t testing.TB, more string) *evidence.Evidence {
	t.Helper()
	ev, err := situation.Load([]byte("schemaVersion: 1\nat: 2026-11-21T12:00:00Z\nbase: healthy\n" + more))
	if err != nil {
		t.Fatal(err)
	}
	return ev
}

// TestWrite_Redacted: the archive contains nothing that must not leave the cluster.
func TestWrite_Redacted(t *testing.T) {
	t.Parallel()
	sandbox, token := strings.Repeat("0123456789abcdef", 4), "IQoJb3JpZ2luX2VjEXAMPLE"
	ev := healthy(t, `
sources:
  log.kubelet:
    lines:
      - {at: -1m, level: error, msg: "failed for `+sandbox+` x-amz-security-token: `+token+` arn:aws:iam::123456789012:role/x"}
  host.env: {aws-node: {DB_PASSWORD: hunter2, WARM_ENI_TARGET: "1", HTTPS_PROXY: "http://user:hunter2@proxy:80"}}
  k8s.ds: {images: {aws-node: "123456789012.dkr.ecr.us-west-2.amazonaws.com/amazon-k8s-cni:v1.23.1"}}
`)
	var b bytes.Buffer
	if _, err := Write(&b, ev, Options{}); err != nil {
		t.Fatal(err)
	}
	got, _, err := Read(bytes.NewReader(b.Bytes()), "")
	if err != nil {
		t.Fatal(err)
	}
	text := content(t, b.Bytes())
	for _, secret := range []string{sandbox, token, "hunter2", "123456789012"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is in the archive", secret)
		}
	}
	r := got.Nodes[0].First
	if r.ContainerEnv.Content["aws-node"]["WARM_ENI_TARGET"] != "1" || !strings.HasSuffix(r.DaemonSet.Content.Images["aws-node"], "/amazon-k8s-cni:v1.23.1") {
		t.Errorf("too much is taken out: %v %v", r.ContainerEnv.Content, r.DaemonSet.Content.Images)
	}
}

// content returns all files of an archive as one text.
func content(t testing.TB, data []byte) string {
	t.Helper()
	var out strings.Builder
	a := &archive{}
	if err := a.walk(bytes.NewReader(data), func(name string, body io.Reader) error {
		out.WriteString(name + "\n")
		_, err := io.Copy(&out, body)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestWrite_Size: the oldest lines are dropped first, and the manifest counts them.
func TestWrite_Size(t *testing.T) {
	t.Parallel()
	ev := healthy(t, "")
	const lines = 1000
	for _, r := range []*evidence.Reading{ev.Nodes[0].First, ev.Nodes[0].Second} {
		r.LogIPAMD.Content.Lines = nil
		for i := range lines {
			r.LogIPAMD.Content.Lines = append(r.LogIPAMD.Content.Lines, evidence.Line{At: noon.Add(time.Duration(i-2000) * time.Second), Level: "error", Msg: random(i)})
		}
		previous := evidence.Log{Lines: r.LogIPAMD.Content.Lines}
		r.LogAWSNode.Content = map[string]evidence.Log{"aws-node": {Lines: previous.Lines, Previous: &previous}}
	}
	whole, m := through(t, ev, Options{})
	if len(m.Nodes[0].Dropped) > 0 || len(whole.Nodes[0].First.LogIPAMD.Content.Lines) != lines {
		t.Errorf("dropped %v though there is room", m.Nodes[0].Dropped)
	}
	var b bytes.Buffer
	const most = 60 << 10
	m, err := Write(&b, ev, Options{MaxBytes: most})
	if err != nil || b.Len() > most || b.Len() < most/2 {
		t.Fatalf("%d bytes, want at most %d and not much less; %v", b.Len(), most, err)
	}
	got, _, err := Read(&b, "")
	if err != nil {
		t.Fatal(err)
	}
	r := got.Nodes[0].Last()
	container := r.LogAWSNode.Content["aws-node"]
	for id, log := range map[string]evidence.Log{"log.ipamd": r.LogIPAMD.Content, "log.awsnode/aws-node": container, "log.awsnode/previous/aws-node": *container.Previous} {
		n := len(log.Lines)
		if dropped := m.Nodes[0].Dropped[id]; dropped == 0 || n+dropped != lines || !log.Truncated || !log.From.Equal(log.Lines[0].At) || log.Lines[n-1].Msg != random(lines-1) {
			t.Errorf("%s: %d lines of %d, %d dropped, truncated %v from %v", id, n, lines, dropped, log.Truncated, log.From)
		}
	}
	if _, err := Write(&b, ev, Options{MaxBytes: 1000}); err == nil || !strings.Contains(err.Error(), "choose fewer nodes") {
		t.Errorf("an archive of 1,000 bytes: %v", err)
	}
}

// random returns a text that compresses badly.
func random(n int) string {
	sum := sha256.Sum256([]byte{byte(n), byte(n >> 8)})
	return hex.EncodeToString(sum[:30])
}

// TestWrite_Names: nodes whose names are invalid as paths, or the same, are kept apart.
func TestWrite_Names(t *testing.T) {
	t.Parallel()
	ev := healthy(t, "")
	for _, name := range []string{"../x", "a b", "same", "same", ""} {
		n := ev.Nodes[0]
		n.Name = name
		ev.Nodes = append(ev.Nodes, n)
	}
	got, m := through(t, ev, Options{Version: "v1.2.3"})
	for i, n := range got.Nodes {
		if want := ev.Nodes[i].Name; n.Name != want && want != "" {
			t.Errorf("node %d is %q, want %q", i, n.Name, want)
		}
	}
	var files []string
	for _, n := range m.Nodes {
		files = append(files, n.File)
	}
	want := []string{"nodes/node-1/evidence.yaml", "nodes/node-2/evidence.yaml", "nodes/node-3/evidence.yaml", "nodes/same/evidence.yaml", "nodes/node-5/evidence.yaml", "nodes/node-6/evidence.yaml"}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if m.Version != "v1.2.3" || m.Nodes[0].Missing["ec2.resv"] != evidence.MissingMode {
		t.Errorf("manifest %+v", m)
	}
}

// TestWrite_Same: the same evidence always yields the same bytes.
func TestWrite_Same(t *testing.T) {
	t.Parallel()
	for _, anonymize := range []bool{false, true} {
		var first []byte
		for range 5 {
			var b bytes.Buffer
			if _, err := Write(&b, healthy(t, "world: {enis: [{id: eni-a, ips: 9, assigned: 3}]}\n"), Options{Anonymize: anonymize}); err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = b.Bytes()
			}
			if !bytes.Equal(first, b.Bytes()) {
				t.Fatalf("written twice, it is not the same (anonymized %v)", anonymize)
			}
		}
	}
}
