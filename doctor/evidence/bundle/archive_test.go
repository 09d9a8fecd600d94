package bundle

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestRefusals(t *testing.T) {
	t.Parallel()
	good := entry{name: "./ipamd/enis.json", text: "{}"}
	link := func(kind byte, to string) []byte {
		return packed(t, good, entry{name: "networking/iprule.txt", header: tar.Header{Typeflag: kind, Linkname: to}})
	}
	whole := packed(t, good, entry{name: "var_log/aws-routed-eni/ipamd.log", text: strings.Repeat("a line\n", 10_000)})
	bomb := packed(t, entry{name: "var_log/aws-routed-eni/ipamd.log", text: strings.Repeat("\x00", freeRatio+1<<20)})
	for name, c := range map[string]struct {
		archive io.Reader
		why     string
	}{
		"traversal":               {bytes.NewReader(packed(t, entry{name: "../../etc/passwd", text: "x"})), "not a path inside"},
		"traversal inside":        {bytes.NewReader(packed(t, entry{name: "ipamd/../enis.json", text: "x"})), "not a path inside"},
		"absolute":                {bytes.NewReader(packed(t, entry{name: "/etc/passwd", text: "x"})), "not a path inside"},
		"symbolic link, absolute": {bytes.NewReader(link(tar.TypeSymlink, "/etc/passwd")), "symbolic link out of"},
		"symbolic link, relative": {bytes.NewReader(link(tar.TypeSymlink, "../../etc/passwd")), "symbolic link out of"},
		"hard link":               {bytes.NewReader(link(tar.TypeLink, "/etc/shadow")), "hard link"},
		"named pipe":              {bytes.NewReader(link(tar.TypeFifo, "")), "named pipe"},
		"device":                  {bytes.NewReader(link(tar.TypeChar, "")), "device"},
		"sparse":                  {bytes.NewReader(block("ipamd/enis.json", tar.TypeGNUSparse, 0, 7<<30)), "7516192768 bytes; 2147483648 are accepted"},
		"large":                   {bytes.NewReader(block("ipamd/enis.json", tar.TypeReg, 7<<30, 0)), "7516192768 bytes; 2147483648 are accepted"},
		"large in sum":            {&again{data: block("ipamd/x", tar.TypeGNUSparse, 0, 1<<30), times: 10}, "more than 4294967296 bytes"},
		"entries":                 {&again{data: block("ipamd/x", tar.TypeReg, 0, 0), times: 1_000_000}, "more than 100000 entries"},
		"folders":                 {&again{data: block("ipamd/", tar.TypeDir, 0, 0), times: 1_000_000}, "more than 100000 entries"},
		"unknown kind":            {bytes.NewReader(block("ipamd/x", 'Q', 0, 0)), "kind"},
		"gzip twice":              {bytes.NewReader(zipped(t, whole)), "more than once"},
		"gzip twice inside":       {bytes.NewReader(packed(t, entry{name: "var_log/aws-routed-eni/ipamd.log.gz", text: string(zipped(t, zipped(t, []byte("x"))))})), "more than once"},
		"bomb":                    {bytes.NewReader(bomb), "more than 500 times its size"},
		"bomb inside":             {bytes.NewReader(tarred(t, entry{name: "var_log/aws-routed-eni/ipamd.log.gz", text: string(bomb)})), "more than 500 times its size"},
		"cut gzip":                {bytes.NewReader(whole[:len(whole)-20]), "truncated"},
		"cut tar":                 {bytes.NewReader(tarred(t, good, good)[:1400]), "truncated"},
		"damaged gzip":            {bytes.NewReader(append(bytes.Clone(whole[:40]), bytes.Repeat([]byte{0xff}, 400)...)), "damaged"},
		"damaged tar":             {bytes.NewReader(append(tarred(t, good)[:1024], bytes.Repeat([]byte("x"), 1024)...)), "damaged"},
		"large file":              {bytes.NewReader(packed(t, entry{name: "ipamd/enis.json", text: strings.Repeat("x", maxFile+1)})), "ipamd/enis.json has more than 16777216 bytes"},
		"zip":                     {strings.NewReader("PK\x03\x04" + strings.Repeat("x", 1000)), "zip"},
		"text":                    {strings.NewReader("hello"), "not a tar archive"},
		"nothing":                 {strings.NewReader(""), "empty"},
		"other tar":               {bytes.NewReader(packed(t, entry{name: "README.md", text: "x"})), "manifest.json"},
		"manifest alone":          {bytes.NewReader(packed(t, entry{name: "manifest.json", text: `{"kind":"EvidenceBundle"}`})), "nodes/NODE/evidence.yaml"},
		"other manifest":          {bytes.NewReader(packed(t, entry{name: "manifest.json", text: `{"kind":"Other"}`})), `kind "Other"`},
		"broken manifest":         {bytes.NewReader(packed(t, entry{name: "manifest.json", text: `{`})), "manifest.json: "},
		"broken evidence":         {bytes.NewReader(packed(t, entry{name: "nodes/a/evidence.yaml", text: "schemaVersion: 1\nat: yesterday\n"})), "nodes/a/evidence.yaml: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ev, _, err := Read(c.archive, "x.tar.gz")
			var refusal *Refusal
			if !errors.As(err, &refusal) || !strings.Contains(err.Error(), c.why) || ev != nil {
				t.Errorf("read %v, %v; want a refusal with %q", ev, err, c.why)
			}
		})
	}
}

// TestHarmlessLinks: links within the archive are skipped, with a note.
func TestHarmlessLinks(t *testing.T) {
	t.Parallel()
	_, notes, err := Read(bytes.NewReader(packed(t,
		entry{name: "./system/instance-id.txt", text: "i-0a"},
		entry{name: "./system/a", header: tar.Header{Typeflag: tar.TypeSymlink, Linkname: "../ipamd/enis.json"}},
		entry{name: "./system/b", header: tar.Header{Typeflag: tar.TypeLink, Linkname: "system/instance-id.txt"}},
	)), "")
	if err != nil || len(notes) != 2 || !strings.Contains(notes[0], "system/a is a symbolic link") || !strings.Contains(notes[1], "system/b is a hard link") {
		t.Errorf("notes %q, %v", notes, err)
	}
}
