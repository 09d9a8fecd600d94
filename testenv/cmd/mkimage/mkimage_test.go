package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"cnictl/daemon/install"
	"cnictl/deploy"
)

// place makes directories as the build does, with small files.
func place(t *testing.T, changes map[string]os.FileMode) sources {
	t.Helper()
	dir := t.TempDir()
	files := map[string]os.FileMode{"LICENSE": 0o600, "support.sh": 0o644, "reference/portmap": 0o755, "reference/tuning": 0o700, "root/usr/sbin/xtables-nft-multi": 0o755, "root/etc/protocols": 0o640}
	for _, name := range []string{"aws-cni", "aws-cni-grpc", "aws-k8s-agent", "aws-vpc-cni", "aws-vpc-cni-init", "cnictl", "egress-cni", "grpc-health-probe", "portmap", "demo"} {
		files["bin/"+name] = 0o755
	}
	for name, mode := range changes {
		files[name] = mode
	}
	for name, mode := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("text of "+name), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("xtables-nft-multi", filepath.Join(dir, "root/usr/sbin/iptables")); err != nil {
		t.Fatal(err)
	}
	return sources{filepath.Join(dir, "bin"), filepath.Join(dir, "reference"), filepath.Join(dir, "root"), filepath.Join(dir, "LICENSE"), filepath.Join(dir, "support.sh")}
}

// unpack returns the files of an archive, by name, and a line about each.
func unpack(t *testing.T, data []byte) (content map[string][]byte, lines []string) {
	t.Helper()
	content = map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return content, lines
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.ModTime.Unix() != 0 || h.Mode&0o7022 != 0 && h.Typeflag != tar.TypeSymlink {
			t.Errorf("%s: owner %d:%d, mode %o, time %v", h.Name, h.Uid, h.Gid, h.Mode, h.ModTime)
		}
		if content[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%o %s %s", h.Mode, h.Name, h.Linkname)))
	}
}

// packed is an image as a runtime sees it.
type packed struct {
	Config struct {
		Architecture string
		Config       struct {
			Entrypoint []string
			WorkingDir string
			Env        []string
		}
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	tags  []string
	files map[string][]byte
	lines []string // of all layers
}

func open(t *testing.T, data []byte) packed {
	t.Helper()
	files, _ := unpack(t, data)
	var manifest []struct {
		Config           string
		RepoTags, Layers []string
	}
	if err := json.Unmarshal(files["manifest.json"], &manifest); err != nil || len(manifest) != 1 {
		t.Fatalf("%v: %s", err, files["manifest.json"])
	}
	p := packed{tags: manifest[0].RepoTags, files: map[string][]byte{}}
	if err := json.Unmarshal(files[manifest[0].Config], &p.Config); err != nil {
		t.Fatal(err)
	}
	for i, layer := range manifest[0].Layers {
		if got := p.Config.RootFS.DiffIDs[i]; got != "sha256:"+digest(files[layer]) {
			t.Errorf("%s is %s in the config", layer, got)
		}
		content, lines := unpack(t, files[layer])
		if !slices.IsSorted(slices.Collect(func(yield func(string) bool) {
			for _, l := range lines {
				if !yield(strings.TrimSuffix(strings.Fields(l)[1], "/")) {
					return
				}
			}
		})) {
			t.Errorf("%s is not sorted: %q", layer, lines)
		}
		p.lines = append(p.lines, lines...)
		for name, data := range content {
			p.files[name] = data
		}
	}
	return p
}

func pack(t *testing.T, from sources, name string) packed {
	t.Helper()
	i := images()[slices.IndexFunc(images(), func(i image) bool { return i.name == name })]
	first, err := i.pack(from, "dev", "amd64")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := i.pack(from, "dev", "amd64"); err != nil || !bytes.Equal(first, again) {
		t.Errorf("the same inputs give other bytes, error %v", err)
	}
	return open(t, first)
}

// TestImages: all that is in them, with modes, whatever the umask of the build was.
func TestImages(t *testing.T) {
	t.Parallel()
	from := place(t, nil)
	app := pack(t, from, "aws-vpc-cni")
	want := []string{
		"755 etc/", "644 etc/protocols", "755 usr/", "755 usr/sbin/", "777 usr/sbin/iptables xtables-nft-multi", "755 usr/sbin/xtables-nft-multi",
		"755 app/", "644 app/10-aws.conflist", "644 app/LICENSE", "755 app/aws-cni", "755 app/aws-cni-grpc", "755 app/aws-k8s-agent", "755 app/aws-vpc-cni",
		"755 app/egress-cni", "644 app/eni-max-pods.txt", "755 app/grpc-health-probe", "755 usr/", "755 usr/bin/", "755 usr/bin/cnictl",
	}
	if diff := cmp.Diff(want, app.lines); diff != "" {
		t.Errorf("aws-vpc-cni (-want +got):\n%s", diff)
	}
	if string(app.files["app/10-aws.conflist"]) != install.Template || !strings.Contains(string(app.files["app/eni-max-pods.txt"]), "\nm5.large 29\n") {
		t.Errorf("conflist %q, eni-max-pods.txt %.200q", app.files["app/10-aws.conflist"], app.files["app/eni-max-pods.txt"])
	}
	first := pack(t, from, "aws-vpc-cni-init")
	want = []string{"755 init/", "644 init/LICENSE", "755 init/aws-cni-support.sh", "755 init/aws-vpc-cni-init", "755 init/portmap", "755 init/portmap.reference", "755 init/tuning"}
	if diff := cmp.Diff(want, first.lines); diff != "" {
		t.Errorf("aws-vpc-cni-init (-want +got):\n%s", diff)
	}
	for name, text := range map[string]string{"portmap": "bin/portmap", "portmap.reference": "reference/portmap", "aws-cni-support.sh": "support.sh"} {
		if got := string(first.files["init/"+name]); got != "text of "+text {
			t.Errorf("%s is %q", name, got)
		}
	}
}

// TestImages_Manifest: what the DaemonSet names is there: images, first programs, probes.
func TestImages_Manifest(t *testing.T) {
	t.Parallel()
	from := place(t, nil)
	objects, err := deploy.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	set := objects[slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "DaemonSet" })]
	template, _, err := unstructured.NestedMap(set.Object, "spec", "template", "spec")
	if err != nil {
		t.Fatal(err)
	}
	var spec corev1.PodSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(template, &spec); err != nil {
		t.Fatal(err)
	}
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		if c.Name == "aws-eks-nodeagent" {
			continue // AWS's
		}
		name, tag, _ := strings.Cut(path.Base(c.Image), ":")
		p := pack(t, from, name)
		if !slices.Contains(p.tags, "docker.io/cnictl/"+name+":"+tag) {
			t.Errorf("%s: the image is called %v", c.Image, p.tags)
		}
		commands := []string{p.Config.Config.Entrypoint[0]}
		for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe} {
			if probe != nil {
				commands = append(commands, probe.Exec.Command[0])
			}
		}
		for _, command := range commands {
			if path.Dir(command) != p.Config.Config.WorkingDir || !slices.Contains(p.lines, "755 "+command[1:]) {
				t.Errorf("%s: %s is not a program of %q", c.Image, command, p.lines)
			}
		}
	}
}

// TestImages_Exec: what cnictl --via exec starts in aws-node is on the image's PATH, where
// the Dockerfile puts it too.
func TestImages_Exec(t *testing.T) {
	t.Parallel()
	p := pack(t, place(t, nil), "aws-vpc-cni")
	text, err := os.ReadFile("../../../deploy/images/aws-vpc-cni.Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, variable := range p.Config.Config.Env {
		for _, dir := range strings.Split(strings.TrimPrefix(variable, "PATH="), ":") {
			program := path.Join(dir, "cnictl")
			found = found || slices.Contains(p.lines, "755 "+program[1:]) && strings.Contains(string(text), "COPY --chmod=0755 bin/cnictl "+program+"\n")
		}
	}
	if !found {
		t.Errorf("cnictl is not on the PATH %q of %q, or elsewhere in the Dockerfile", p.Config.Config.Env, p.lines)
	}
}

// TestImages_Refused: what would make a bad image is an error that names it.
func TestImages_Refused(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		changes map[string]os.FileMode
		spoil   func(*sources)
		says    string
	}{
		"a program that changes the user": {map[string]os.FileMode{"root/usr/bin/su": os.ModeSetuid | 0o755}, nil, "su changes the user who starts it"},
		"a file among the plugins":        {map[string]os.FileMode{"reference/README": 0o644}, nil, "README is not a plugin"},
		"a directory among the plugins":   {map[string]os.FileMode{"reference/more/x": 0o755}, nil, "x is not a plugin"},
		"no programs":                     {nil, func(s *sources) { s.bin += "-none" }, "run: make build"},
		"no plugins":                      {nil, func(s *sources) { s.reference += "-none" }, "no such file"},
		"no portmap among the plugins":    {map[string]os.FileMode{"others/tuning": 0o755}, func(s *sources) { s.reference = filepath.Join(s.bin, "..", "others") }, "no portmap in"},
		"no support script":               {nil, func(s *sources) { s.support += ".none" }, "support.sh.none"},
	} {
		from := place(t, row.changes)
		if row.spoil != nil {
			row.spoil(&from)
		}
		var err error
		for _, i := range images() {
			_, packErr := i.pack(from, "dev", "amd64")
			err = errors.Join(err, packErr)
		}
		if err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
