package image

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"cnictl/tools/release/software"
)

// place creates the directories of an image with small files, none of them built by Go.
func place(t *testing.T, archs ...string) (string, Image) {
	t.Helper()
	dir := t.TempDir()
	for _, arch := range archs {
		for name, mode := range map[string]os.FileMode{
			"plugins/portmap": 0o755, "plugins/tuning": 0o700, "bin/portmap": 0o755, "text": 0o600,
			"root/usr/sbin/xtables-nft-multi": 0o755, "root/etc/protocols": 0o640,
			"root/" + certificates: 0o644, "root/usr/share/doc/iptables/copyright": 0o644,
		} {
			write1(t, filepath.Join(dir, arch, name), arch+"'s "+name, mode)
		}
		write1(t, filepath.Join(dir, arch, "root", software.StatusDir, "iptables"), "Package: iptables\nVersion: 1:1.8.9-2\nArchitecture: "+arch+"\n", 0o644)
		if err := os.Symlink("xtables-nft-multi", filepath.Join(dir, arch, "root/usr/sbin/iptables")); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(dir, "{arch}", name) }
	return dir, Image{
		Name: "x", Title: "X", Workdir: "/init", Cmd: []string{"/init/portmap"}, Path: "/usr/sbin", Root: at("root"),
		Files: map[string]string{
			"/init/": at("plugins/"), "/init/portmap.reference": at("plugins/portmap"), "/init/portmap": at("bin/portmap"), "/init/text": at("text"),
		},
	}
}

func write1(t *testing.T, file, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, mode); err != nil {
		t.Fatal(err)
	}
}

func release() Release {
	return Release{
		Version: "v1.2.3", Revision: "abc", Source: "https://example.com/x", License: "ours\n", Time: time.Unix(1e9, 0),
		Inventory: func() *software.Inventory { return software.New("none", "none") },
	}
}

// pack packs twice, compares, and unpacks the archive.
func pack(t *testing.T, i Image, archs ...string) (dir, file string) {
	t.Helper()
	dir = t.TempDir()
	first, again := filepath.Join(dir, "1.tar"), filepath.Join(dir, "2.tar")
	for _, file := range []string{first, again} {
		if err := i.Pack(release(), "docker.io/cnictl/x:dev", archs, file); err != nil {
			t.Fatal(err)
		}
	}
	a, _ := os.ReadFile(first)
	b, err := os.ReadFile(again)
	if err != nil || !bytes.Equal(a, b) {
		t.Errorf("the same inputs make other bytes (%v)", err)
	}
	out := filepath.Join(dir, "layout")
	for r := tar.NewReader(bytes.NewReader(a)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out, first
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			write1(t, filepath.Join(out, h.Name), string(data), 0o644)
		}
	}
}

// lines lists the files of an image, with modes and targets.
func lines(t *testing.T, image v1.Image) (out []string, content map[string]string) {
	t.Helper()
	content = map[string]string{}
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range layers {
		u, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		for r := tar.NewReader(u); ; {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			data, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			if h.Uid != 0 || h.Gid != 0 || h.ModTime.Unix() != 0 {
				t.Errorf("%s: owner %d:%d, time %v", h.Name, h.Uid, h.Gid, h.ModTime)
			}
			content[h.Name] = string(data)
			if h.Typeflag != tar.TypeDir {
				out = append(out, strings.TrimSpace(fmt.Sprintf("%o %s %s", h.Mode, h.Name, h.Linkname)))
			}
		}
	}
	return out, content
}

// TestPack: the full contents of an image, for each architecture, with modes that do not depend on
// the umask of the build.
func TestPack(t *testing.T) {
	t.Parallel()
	_, i := place(t, "amd64", "arm64")
	dir, _ := pack(t, i, "amd64", "arm64")
	path, err := layout.FromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	top, err := path.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	named, err := top.IndexManifest()
	if err != nil || len(named.Manifests) != 1 || named.Manifests[0].Annotations["io.containerd.image.name"] != "docker.io/cnictl/x:dev" ||
		named.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "dev" {
		t.Fatalf("%v: %+v", err, named)
	}
	index, err := top.ImageIndex(named.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for n, arch := range []string{"amd64", "arm64"} {
		d := manifest.Manifests[n]
		if d.Platform.String() != "linux/"+arch {
			t.Errorf("image %d is for %v", n, d.Platform)
		}
		image, err := index.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		got, content := lines(t, image)
		want := []string{
			"644 etc/protocols", "644 etc/ssl/certs/ca-certificates.crt", "777 licenses/debian ../usr/share/doc", "777 usr/sbin/iptables xtables-nft-multi",
			"755 usr/sbin/xtables-nft-multi", "644 usr/share/doc/iptables/copyright", "644 var/lib/dpkg/status.d/iptables",
			"755 init/portmap", "755 init/portmap.reference", "644 init/text", "755 init/tuning",
			"644 licenses/LICENSE", "644 licenses/sbom.cdx.json",
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n%s\nwant\n%s", arch, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		for name, text := range map[string]string{"init/portmap": "bin/portmap", "init/portmap.reference": "plugins/portmap"} {
			if got := content[name]; got != arch+"'s "+text {
				t.Errorf("%s is %q", name, got)
			}
		}
		if !strings.Contains(content[SBOMFile], `"pkg:deb/debian/iptables@1%3A1.8.9-2?arch=`+arch+`"`) {
			t.Errorf("%s: %s", arch, content[SBOMFile])
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		labels := config.Config.Labels
		if config.Architecture != arch || config.Config.User != "" || labels["org.opencontainers.image.version"] != "v1.2.3" || labels["org.opencontainers.image.revision"] != "abc" ||
			labels["org.opencontainers.image.source"] != "https://example.com/x" || labels["org.opencontainers.image.licenses"] != "Apache-2.0" {
			t.Errorf("%s: %+v", arch, config)
		}
	}
}

// TestPack_Docker: Docker's format is included, with a name per architecture.
func TestPack_Docker(t *testing.T) {
	t.Parallel()
	_, i := place(t, "amd64", "arm64")
	for tag, archs := range map[string][]string{"docker.io/cnictl/x:dev-arm64": {"amd64", "arm64"}, "docker.io/cnictl/x:dev": {"arm64"}} {
		_, file := pack(t, i, archs...)
		manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(file) })
		if err != nil || len(manifest) != len(archs) || manifest[len(archs)-1].RepoTags[0] != tag {
			t.Fatalf("%v: %+v", err, manifest)
		}
		files := contents(t, file)
		last := manifest[len(archs)-1]
		var config v1.ConfigFile
		if err := json.Unmarshal(files[last.Config], &config); err != nil || config.Architecture != "arm64" || len(config.RootFS.DiffIDs) != len(last.Layers) {
			t.Errorf("%v: config %s", err, files[last.Config])
		}
		for _, l := range last.Layers {
			if len(files[l]) == 0 {
				t.Errorf("no %s", l)
			}
		}
	}
}

func contents(t *testing.T, file string) map[string][]byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if out[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPack_Go: the image of a real program lists what it was built from, and the licenses.
func TestPack_Go(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", dir+"/program", "./testdata/program")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	i := Image{Name: "x", Entrypoint: []string{"/x/program"}, Files: map[string]string{"/x/program": dir + "/program"}, Licenses: "/x/LICENSE"}
	r := release()
	var err error
	if r.Inventory, err = software.Sources(); err != nil {
		t.Fatal(err)
	}
	image, err := i.build(r, "amd64")
	if err != nil {
		t.Fatal(err)
	}
	_, content := lines(t, image)
	std := "std@" + runtime.Version()
	if !strings.Contains(content["licenses/"+std+"/LICENSE"], "Copyright") || !strings.HasPrefix(content["x/LICENSE"], "ours\n") || !strings.Contains(content["x/LICENSE"], "The programs contain std "+runtime.Version()) {
		t.Errorf("terms: %q, %q", content["licenses/"+std+"/LICENSE"], content["x/LICENSE"])
	}
	if bom := content[SBOMFile]; !strings.Contains(bom, `"pkg:golang/std@`+strings.TrimPrefix(runtime.Version(), "go")) || !strings.Contains(bom, "program:x/program") {
		t.Error(bom)
	}
}

// TestPack_Certs: an image that needs only certificates has nothing else of the root.
func TestPack_Certs(t *testing.T) {
	t.Parallel()
	_, i := place(t, "amd64")
	i.Certs = true
	i.Files = map[string]string{"/x": i.Files["/init/text"]}
	image, err := i.build(release(), "amd64")
	if err != nil {
		t.Fatal(err)
	}
	got, content := lines(t, image)
	if want := []string{"644 etc/ssl/certs/ca-certificates.crt", "777 licenses/debian ../usr/share/doc", "644 x", "644 licenses/LICENSE", "644 licenses/sbom.cdx.json"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if strings.Contains(content[SBOMFile], "iptables") {
		t.Error(content[SBOMFile])
	}
}

// TestPack_Refused: an image that would be bad is refused, and the error names the problem.
func TestPack_Refused(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		spoil func(dir string, i *Image)
		says  string
	}{
		"a program that changes the user": {func(dir string, i *Image) {
			os.Chmod(dir+"/amd64/root/usr/sbin/xtables-nft-multi", os.ModeSetuid|0o755)
		}, "multi changes the user who starts it"},
		"a text among the programs": {func(dir string, i *Image) { os.Chmod(dir+"/amd64/plugins/tuning", 0o644) }, "tuning is not a program"},
		"no programs":               {func(dir string, i *Image) { os.Remove(dir + "/amd64/bin/portmap") }, "bin/portmap: no such file"},
		"no directory of programs":  {func(dir string, i *Image) { os.RemoveAll(dir + "/amd64/plugins") }, "plugins: no such file"},
		"no root":                   {func(dir string, i *Image) { i.Root += "-none" }, "run: tools/release/rootfs.sh"},
		"not what Go built":         {func(dir string, i *Image) { os.WriteFile(dir+"/amd64/bin/portmap", []byte("\x7fELF"), 0o755) }, "read the modules of"},
		"a relative path":           {func(dir string, i *Image) { i.Files["x"] = "y" }, "x is not an absolute path"},
	} {
		dir, i := place(t, "amd64")
		row.spoil(dir, &i)
		if err := i.Pack(release(), "docker.io/cnictl/x:dev", []string{"amd64"}, filepath.Join(dir, "x.tar")); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
