package dist

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/blakesmith/ar"
	"github.com/sassoftware/go-rpmutils"

	"cnictl/tools/release/software"
)

// place lays out a release of a small program.
func place(t *testing.T) Release {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"man/cnictl.1": "page", "completions/bash": "of bash", "completions/zsh": "of zsh", "completions/fish": "of fish", "completions/powershell": "of powershell",
		"chart/a-chart-1.2.3.tgz": "a chart",
	} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, platform := range Platforms {
		build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(dir, "programs", platform, "cnictl"), "../image/testdata/program")
		build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux") // otherwise Go's standard library would have to be rebuilt
		if text, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	inventory, err := software.Sources()
	if err != nil {
		t.Fatal(err)
	}
	return Release{
		Version: "v1.2.3", Source: "https://example.com/cnictl", Revision: "ba60755800000000000000000000000000000000", Builder: "https://example.com/ci", Time: time.Unix(1e9, 0), License: "ours\n",
		Inventory: inventory,
		Programs:  dir + "/programs", Man: dir + "/man", Completions: dir + "/completions",
		Kubectl: "../../../deploy/krew/kubectl_complete-cni", Krew: "../../../deploy/krew/aws-cni.yaml", Charts: dir + "/chart",
	}
}

// TestBuild: the released files and their contents, which are identical in a second build.
func TestBuild(t *testing.T) {
	t.Parallel()
	r := place(t)
	out, again := t.TempDir(), t.TempDir()
	names, err := r.Build(out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Build(again); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"chart/a-chart-1.2.3.tgz", "cnictl-1.2.3-1.aarch64.rpm", "cnictl-1.2.3-1.x86_64.rpm", "cnictl_1.2.3_amd64.deb", "cnictl_1.2.3_arm64.deb",
		"cnictl_v1.2.3_darwin_amd64.cdx.json", "cnictl_v1.2.3_darwin_amd64.tar.gz", "cnictl_v1.2.3_darwin_arm64.cdx.json", "cnictl_v1.2.3_darwin_arm64.tar.gz",
		"cnictl_v1.2.3_linux_amd64.cdx.json", "cnictl_v1.2.3_linux_amd64.tar.gz", "cnictl_v1.2.3_linux_arm64.cdx.json", "cnictl_v1.2.3_linux_arm64.tar.gz",
		"krew/aws-cni.yaml", "krew/aws-cni_darwin_amd64.tar.gz", "krew/aws-cni_darwin_arm64.tar.gz", "krew/aws-cni_linux_amd64.tar.gz", "krew/aws-cni_linux_arm64.tar.gz",
		ProvenanceFile, "SHA256SUMS",
	}
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("made %q", names)
	}
	made := map[string][]byte{}
	for _, name := range names {
		a, err := os.ReadFile(filepath.Join(out, name))
		b, errAgain := os.ReadFile(filepath.Join(again, name))
		if err := errors.Join(err, errAgain); err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s is other bytes the second time (%v)", name, err)
		}
		made[name] = a
	}
	for _, name := range want {
		if name != "SHA256SUMS" && !strings.Contains(string(made["SHA256SUMS"]), digest(made[name])+"  "+name+"\n") {
			t.Errorf("SHA256SUMS lacks %s:\n%s", name, made["SHA256SUMS"])
		}
	}

	top := "cnictl_v1.2.3_linux_arm64/"
	same(t, "archive", unzipped(t, made["cnictl_v1.2.3_linux_arm64.tar.gz"]), []string{
		"644 " + top + "LICENSE", "644 " + top + "THIRD-PARTY-LICENSES", "755 " + top + "cnictl", "644 " + top + "completions/bash/cnictl", "644 " + top + "completions/fish/cnictl.fish",
		"644 " + top + "completions/powershell/cnictl.ps1", "644 " + top + "completions/zsh/_cnictl", "777 " + top + "kubectl-cni", "755 " + top + "kubectl_complete-cni",
		"644 " + top + "man/man1/cnictl.1", "644 " + top + "sbom.cdx.json",
	})
	same(t, "krew", unzipped(t, made["krew/aws-cni_linux_amd64.tar.gz"]), []string{"644 LICENSE", "755 kubectl-aws_cni"})
	installed := []string{
		"755 usr/bin/cnictl", "777 usr/bin/kubectl-cni", "755 usr/bin/kubectl_complete-cni", "644 usr/share/bash-completion/completions/cnictl", "644 usr/share/doc/cnictl/cnictl.ps1",
		"644 usr/share/doc/cnictl/copyright", "644 usr/share/doc/cnictl/sbom.cdx.json", "644 usr/share/fish/vendor_completions.d/cnictl.fish", "644 usr/share/man/man1/cnictl.1.gz",
		"644 usr/share/zsh/vendor-completions/_cnictl",
	}
	same(t, "deb", debian(t, made["cnictl_1.2.3_amd64.deb"]), installed)
	same(t, "rpm", redHat(t, made["cnictl-1.2.3-1.x86_64.rpm"]), installed)

	text := string(made["krew/aws-cni.yaml"])
	for _, wanted := range []string{digest(made["krew/aws-cni_darwin_arm64.tar.gz"]), "uri: https://example.com/cnictl/releases/download/v1.2.3/aws-cni_linux_amd64.tar.gz", "version: v1.2.3\n"} {
		if !strings.Contains(text, wanted) {
			t.Errorf("krew's manifest lacks %q:\n%s", wanted, text)
		}
	}
	if strings.Contains(text, "SHA256_") || strings.Contains(text, "BASE") {
		t.Errorf("left open:\n%s", text)
	}
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	slices.Sort(got)
	want = slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func unzipped(t *testing.T, data []byte) (lines []string) {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return lines
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.ModTime.Unix() != 1e9 {
			t.Errorf("%s: of %d, %v", h.Name, h.Uid, h.ModTime)
		}
		if h.Typeflag != tar.TypeDir {
			lines = append(lines, fmt.Sprintf("%o %s", h.Mode, strings.TrimPrefix(h.Name, "./")))
		}
	}
}

// debian lists the files of a package.
func debian(t *testing.T, data []byte) []string {
	t.Helper()
	return unzipped(t, partOf(t, data, "data.tar"))
}

// controlOf returns the control file of a Debian package.
func controlOf(t *testing.T, data []byte) string {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(partOf(t, data, "control.tar")))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if strings.TrimPrefix(h.Name, "./") == "control" {
			text, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
	}
}

func partOf(t *testing.T, data []byte, prefix string) []byte {
	t.Helper()
	for r := ar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(h.Name, prefix) {
			part, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			return part
		}
	}
}

func redHat(t *testing.T, data []byte) (lines []string) {
	t.Helper()
	p, err := rpmutils.ReadRpm(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	list, err := p.Header.GetFiles()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		if f.Mode()&0o170000 == 0o040000 {
			continue
		}
		if f.UserName() != "root" || f.Mtime() != 1e9 {
			t.Errorf("%s: of %s, %d", f.Name(), f.UserName(), f.Mtime())
		}
		mode := f.Mode() & 0o777
		if f.Linkname() != "" {
			mode = 0o777
		}
		lines = append(lines, fmt.Sprintf("%o %s", mode, strings.TrimPrefix(f.Name(), "/")))
	}
	return lines
}

// TestBuild_NoSource: without a project URL, no file names one.
func TestBuild_NoSource(t *testing.T) {
	t.Parallel()
	r := place(t)
	r.Source = ""
	out := t.TempDir()
	names, err := r.Build(out)
	if err != nil || slices.Contains(names, "krew/aws-cni.yaml") || slices.Contains(names, ProvenanceFile) || !slices.Contains(names, "krew/aws-cni_linux_arm64.tar.gz") {
		t.Fatalf("made %q, %v", names, err)
	}
	for _, name := range []string{"cnictl_1.2.3_amd64.deb", "cnictl-1.2.3-1.x86_64.rpm"} {
		data, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".rpm") {
			p, err := rpmutils.ReadRpm(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			if p.Header.HasTag(rpmutils.URL) {
				t.Errorf("%s names a home page", name)
			}
			continue
		}
		if control := controlOf(t, data); !strings.Contains(control, "Package: cnictl\n") || strings.Contains(control, "Homepage") {
			t.Errorf("%s:\n%s", name, control)
		}
	}
}

// TestBuild_Refused: a release that would be bad is refused, and the error says what is missing.
func TestBuild_Refused(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		spoil func(*Release)
		says  string
	}{
		"another URL":   {func(r *Release) { r.Source = "http://host/project" }, "set SOURCE"},
		"no charts":     {func(r *Release) { r.Charts += "-none" }, "chart-none"},
		"no pages":      {func(r *Release) { r.Man += "-none" }, "man-none"},
		"no completion": {func(r *Release) { os.Remove(filepath.Join(r.Completions, "fish")) }, "fish: no such file"},
		"no program":    {func(r *Release) { os.RemoveAll(filepath.Join(r.Programs, "darwin_arm64")) }, "darwin_arm64: "},
		"no manifest":   {func(r *Release) { r.Krew += "-none" }, "aws-cni.yaml-none"},
		"uncommitted":   {func(r *Release) { r.Images, r.Revision = true, "" }, "commit all files"},
		"no images":     {func(r *Release) { r.Images = true }, "no image archive"},
	} {
		r := place(t)
		row.spoil(&r)
		if _, err := r.Build(t.TempDir()); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestPackageVersion(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{"v1.2.3": "v1.2.3", "1.2.3-rc1": "1.2.3-rc1", "ba607558-dirty": "0.0.0-ba607558.dirty", "": "0.0.0-"} {
		if got := packageVersion(version); got != want {
			t.Errorf("%q: %q", version, got)
		}
	}
}
