package check

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// govulncheck builds the program once.
var govulncheck = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "govulncheck-")
	if err != nil {
		return "", err
	}
	built = dir
	file := filepath.Join(dir, "govulncheck")
	if text, err := exec.Command("go", "build", "-o", file, "golang.org/x/vuln/cmd/govulncheck").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, text)
	}
	return file, nil
})

var built string // directory, to remove

func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		os.RemoveAll(built)
	}
	os.Exit(code)
}

func write(t *testing.T, file, text string) string {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	return file
}

// database makes a database of vulnerabilities, with one if it affects a package of the standard
// library in all versions of Go.
func database(t *testing.T, affected string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir+"/index/db.json", `{"modified":"2026-01-01T00:00:00Z"}`)
	modules := `[]`
	if affected != "" {
		modules = `[{"path":"stdlib","vulns":[{"id":"GO-2026-0001","modified":"2026-01-01T00:00:00Z"}]}]`
		write(t, dir+"/ID/GO-2026-0001.json", `{"schema_version":"1.3.1","id":"GO-2026-0001","modified":"2026-01-01T00:00:00Z","published":"2026-01-01T00:00:00Z",
			"summary":"planted","details":"planted","database_specific":{"url":"https://example.com"},"affected":[{"package":{"name":"stdlib","ecosystem":"Go"},"ranges":[{"type":"SEMVER","events":[{"introduced":"0"}]}],
			"ecosystem_specific":{"imports":[{"path":"`+affected+`"}]}}]}`)
	}
	write(t, dir+"/index/modules.json", modules)
	return "file://" + dir
}

// proxy makes a module proxy that has some versions of Go, and points go at it.
func proxy(t *testing.T, versions ...string) (url string) {
	t.Helper()
	dir := t.TempDir()
	var list []string
	for _, v := range versions {
		name := "v0.0.1-" + v + ".linux-amd64"
		list = append(list, name)
		write(t, dir+"/golang.org/toolchain/@v/"+name+".info", `{"Version":"`+name+`","Time":"2026-01-01T00:00:00Z"}`)
	}
	write(t, dir+"/golang.org/toolchain/@v/list", strings.Join(list, "\n")+"\n")
	return "file://" + dir
}

// TestRun: what is wrong, or could not be checked, and whether it is refused always, or only where
// checks are required.
func TestRun(t *testing.T) {
	vulncheck, err := govulncheck()
	if err != nil {
		t.Fatal(err)
	}
	running, err := command(t.Context(), nil, "go", "env", "GOVERSION")
	if err != nil {
		t.Fatal(err)
	}
	sources := t.TempDir() + "/m"
	write(t, sources+"/go.mod", "module m\n\ngo 1.26\n")
	write(t, sources+"/main.go", "package main\n\nimport \"os\"\n\nfunc main() { os.Exit(0) }\n")
	write(t, sources+"/main_darwin.go", "package main\n\nimport \"encoding/ascii85\"\n\nvar _ = ascii85.MaxEncodedLen(1)\n")
	probe := sources + "/../probe"
	if text, err := exec.CommandContext(t.Context(), "go", "-C", sources, "build", "-o", probe, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	const always, ifRequired, never = "always", "if required", "never"
	for _, row := range []struct {
		name            string
		affected        string   // package with a vulnerability
		away            string   // URL of a database that is out of reach
		proxied         []string // versions of Go that the proxy has; nil: it is out of reach
		pinned, another string   // by the two modules
		scan            Scan     // in addition, of the same sources
		refused         string
		says            string
	}{
		{name: "sound", proxied: []string{running}, refused: never},
		{name: "a minor release is no patch", proxied: []string{running, "go1.99.1"}, refused: never},
		{name: "a vulnerability", affected: "os", proxied: []string{running}, refused: always, says: "GO-2026-0001"},
		{name: "a vulnerability of what is not linked", affected: "net/http/cgi", proxied: []string{running}, refused: never},
		{name: "a vulnerability on another system", affected: "encoding/ascii85", proxied: []string{running}, scan: Scan{Env: []string{"GOOS=darwin"}}, refused: always, says: "GO-2026-0001"},
		{name: "a vulnerability of a system that is not built for", affected: "encoding/ascii85", proxied: []string{running}, scan: Scan{Env: []string{"GOOS=linux"}}, refused: never},
		{name: "no database after a vulnerability", affected: "os", proxied: []string{running}, scan: Scan{Args: []string{"-db=http://127.0.0.1:1"}}, refused: always, says: "GO-2026-0001"},
		{name: "no database", away: "https://vuln.go.dev", proxied: []string{running}, refused: ifRequired, says: "vuln: NOT CHECKED for known vulnerabilities"},
		{name: "no mirror of the database", away: "http://127.0.0.1:1", proxied: []string{running}, refused: ifRequired, says: "vuln: NOT CHECKED for known vulnerabilities"},
		{name: "no proxy", refused: ifRequired, says: "toolchain: NOT CHECKED whether " + running + " is the newest patch"},
		{name: "a newer patch", proxied: []string{running, running + "9"}, refused: ifRequired, says: running + "9 is out"},
		{name: "another Go builds", pinned: "go1.26.0", another: "go1.26.0", proxied: []string{"go1.26.0"}, refused: ifRequired, says: running + " builds, and go.mod names go1.26.0"},
		{name: "two versions", pinned: running, another: "go1.26.0", proxied: []string{running}, refused: always, says: "give all the same"},
		{name: "no version", pinned: "none", proxied: []string{running}, refused: always, says: "has no line"},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			line := func(v, otherwise string) string {
				switch v {
				case "none":
					return "go 1.26\n"
				case "":
					v = otherwise
				}
				return "go 1.26\n\ntoolchain " + v + "\n"
			}
			b := Build{
				Go: "go", Govulncheck: vulncheck, Database: database(t, row.affected), Probe: probe,
				Modules: []string{write(t, dir+"/go.mod", "module a\n\n"+line(row.pinned, running)), write(t, dir+"/b/go.mod", "module b\n\n"+line(row.another, running))},
			}
			if row.affected != "" { // a scan takes a second
				b.Scans = []Scan{{Args: []string{"-C", sources, "."}}}
			}
			if row.scan.Args != nil || row.scan.Env != nil {
				row.scan.Args = append(row.scan.Args, "-C", sources, ".")
				b.Scans = append(b.Scans, row.scan)
			}
			if row.away != "" {
				b.Database = row.away
				t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
			}
			t.Setenv("GOPROXY", "off")
			if row.proxied != nil {
				t.Setenv("GOPROXY", proxy(t, row.proxied...))
			}
			for required, refused := range map[bool]bool{false: row.refused == always, true: row.refused != never} {
				var out strings.Builder
				err := b.Run(t.Context(), required, nil, &out)
				if (err != nil) != refused {
					t.Errorf("required %v: %v\n%s", required, err, &out)
				}
				if said := fmt.Sprint(err, &out); !strings.Contains(said, row.says) || row.refused == never && out.Len() > 0 {
					t.Errorf("required %v: it says %q, want %q", required, said, row.says)
				}
			}
		})
	}
}

// TestRun_Release: a release is of a commit, for a project, and alone in its directory.
func TestRun_Release(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	git := func(args ...string) {
		t.Helper()
		if text, err := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	git("init", "-q")
	write(t, ".gitignore", "/dist/\n")
	write(t, "main.go", "package main\n")
	git("add", ".")
	git("commit", "-q", "-m", "first")
	const source = "https://example.com/cnictl"
	refused := func(r Release, says string) {
		t.Helper()
		if err := r.prepared(t.Context()); says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	refused(Release{source, "dist"}, "")
	refused(Release{"", "dist"}, "set SOURCE")
	refused(Release{"http://example.com", "dist"}, "set SOURCE")
	write(t, "dist/cnictl_v1.tar.gz", "of another build")
	refused(Release{source, "dist"}, "dist has files of another build; remove it")
	write(t, "extra.go", "package main\n")
	refused(Release{source, "new"}, "?? extra.go")
	git("config", "status.showUntrackedFiles", "no")
	refused(Release{source, "new"}, "?? extra.go")
	git("add", "extra.go")
	refused(Release{source, "new"}, "A  extra.go")
	git("commit", "-q", "-m", "second")
	refused(Release{source, "new"}, "")
	t.Setenv("GIT_DIR", dir+"/none")
	refused(Release{source, "new"}, "git status")
}

// TestMake: make release requires every check before it packs anything, whatever VULN says. Images
// and dist by themselves go on and say that they were not checked, unless they are told to check.
func TestMake(t *testing.T) {
	const unsaid, checks = "NOT CHECKED for known vulnerabilities", "/checkbuild -go"
	const plain, fresh = "GOWORK=off GOFLAGS=\"-trimpath -buildvcs=false\" GOAMD64=v1 GOARM64=v8.0 CGO_ENABLED=0", "FRESH=required tools/release/rootfs.sh amd64"
	for command, want := range map[string][]string{
		"release VERSION=v1.2.3 SOURCE=https://example.com/p":       {"vuln " + plain, checks, "-systems darwin,linux -required -release dist -source \"https://example.com/p\"", "pack-images " + plain, fresh, "-o dist -tag v1.2.3 deploy/images", "pack-dist " + plain, "/mkdist -version \"v1.2.3\"", "-o dist -images"},
		"release VERSION=v1.2.3 SOURCE=https://example.com/p VULN=": {checks, "-required -release dist", "/mkdist "},
		"release VERSION=abc":  {"set VERSION\"; exit 1"},
		"vuln":                 {checks},
		"vuln VULN=required":   {checks, "-required"},
		"dist":                 {unsaid, "/mkdist "},
		"dist VULN=required":   {checks, "-required", "/mkdist "},
		"images":               {unsaid, "-o dist  deploy/images"},
		"images VULN=required": {checks, "-required", "-o dist  deploy/images"},
		"verify":               {checks},
	} {
		c := exec.CommandContext(t.Context(), "make", append([]string{"-n", "-C", "../../.."}, strings.Fields(command)...)...)
		for _, v := range os.Environ() { // lint runs this test below make
			if !strings.HasPrefix(v, "MAKE") && !strings.HasPrefix(v, "MFLAGS=") {
				c.Env = append(c.Env, v)
			}
		}
		text, err := c.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", command, err, text)
		}
		rest := string(text)
		for _, part := range want {
			_, after, found := strings.Cut(rest, part)
			if !found {
				t.Errorf("make %s lacks %q, in this order:\n%s", command, part, text)
			}
			rest = after
		}
		if said := strings.Contains(string(text), fresh); said != strings.HasPrefix(command, "release") {
			t.Errorf("make %s wants new lists of packages: %v", command, said)
		}
		if said := strings.Contains(string(text), unsaid); said != slices.Contains(want, unsaid) {
			t.Errorf("make %s says that it was not checked: %v", command, said)
		}
	}
}

// TestMake_Committed: an untracked file counts, whatever git's settings say.
func TestMake_Committed(t *testing.T) {
	makefile, err := os.ReadFile("../../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	write(t, "Makefile", string(makefile))
	run := func(name string, args ...string) string {
		t.Helper()
		text, err := command(t.Context(), []string{"MAKEFLAGS=", "MAKEOVERRIDES="}, name, args...)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	run("git", "init", "-q")
	run("git", "config", "status.showUntrackedFiles", "no")
	run("git", "add", ".")
	run("git", "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "first")
	committed := func() string { return run("make", "-s", "--eval", "committed: ; @echo $(COMMITTED)", "committed") }
	if have, want := committed(), run("git", "rev-parse", "HEAD"); have != want {
		t.Errorf("commit %q, want %q", have, want)
	}
	write(t, "extra.go", "package main\n")
	if have := committed(); have != "" {
		t.Errorf("with a file in no commit: %q", have)
	}
}
